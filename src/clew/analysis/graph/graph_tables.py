"""A process' graph, or that of some of its functions, as tables of nodes and edges, for Python programs.

Runs in the controller. networkx is asked for only by `to_networkx`, and is no part of what clew needs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.ranking.ranking import Row
from clew.errors import UsageError
from clew.protocol.words import EDGE_WORDS, EXIT_WORDS
from clew.store.columns import numbers, texts

if TYPE_CHECKING:
    from clew.analysis.tables.arrays import Array
    from clew.store.trace import Trace

__all__ = ["Graph", "find_busiest_process", "make_graph"]


class Graph:
    """Blocks and the edges between them, with how often each was executed by all threads.

    `nodes` has a row for each block: `block_id`, `app_pc`, `function`, `image`, `n_instructions`, `exit_kind`,
    `executions`; `edges` has `edge_id`, `source_block_id`, `target_block_id`, `kind`, `executions`. Functions are named
    demangled. In mode coverage executions are 1 for what ran.
    """

    def __init__(self, nodes: pa.Table, edges: pa.Table) -> None:
        self.nodes = nodes
        self.edges = edges

    def to_networkx(self) -> Any:
        """A networkx.MultiDiGraph: nodes are block ids, edges have their ids as keys; both have the columns as data.

        Raises ImportError where networkx is not installed.
        """
        import networkx

        graph = networkx.MultiDiGraph()
        for node in self.nodes.to_pylist():
            graph.add_node(node.pop("block_id"), **node)
        for edge in self.edges.to_pylist():
            ends = edge.pop("source_block_id"), edge.pop("target_block_id")
            graph.add_edge(*ends, key=edge.pop("edge_id"), **edge)
        return graph


def make_graph(trace: Trace, process_id: int | None, function: str | None) -> Graph:
    """The graph of a process, by default of the one that executed most; with `function` of those that have that name.

    Edges that lead out of what was asked for are left out. Raises UsageError if there is no such process or function.
    """
    if process_id is None:
        process_id = find_busiest_process(trace)
    graph = ProcessGraph(trace, process_id)
    counts = graph.count()
    blocks: Array = np.arange(graph.n_blocks)
    if function is not None:
        wanted = np.array([name == function for name in graph.names], bool)
        if not wanted.any():
            raise UsageError(f"{trace.directory}: no function {function!r} in process {process_id}")
        blocks = np.flatnonzero(wanted[graph.function])
    is_wanted = np.zeros(graph.n_blocks + 1, bool)
    is_wanted[blocks] = True
    edges = np.flatnonzero(is_wanted[graph.source] & is_wanted[graph.target])
    images = [image["path"] for image in graph.images]
    functions = graph.function[blocks].tolist()
    nodes = {
        "block_id": numbers(graph.block_id[blocks], pa.int64()),
        "app_pc": numbers(graph.app_pc[blocks], pa.uint64()),
        "function": texts([graph.names[one] for one in functions]),
        "image": texts([images[graph.image[one]] if graph.image[one] >= 0 else None for one in functions]),
        "n_instructions": numbers(graph.n_instructions[blocks], pa.int64()),
        "exit_kind": texts(_words(EXIT_WORDS, graph.exit_kind[blocks])),
        "executions": numbers(counts.blocks[blocks], pa.int64()),
    }
    links = {
        "edge_id": numbers(graph.edge_id[edges], pa.int64()),
        "source_block_id": numbers(graph.block_id[graph.source[edges]], pa.int64()),
        "target_block_id": numbers(graph.block_id[graph.target[edges]], pa.int64()),
        "kind": texts(_words(EDGE_WORDS, graph.kind[edges])),
        "executions": numbers(counts.edges[edges], pa.int64()),
    }
    return Graph(pa.table(nodes), pa.table(links))


def _words(known: tuple[str, ...], index: Array) -> list[str | None]:
    return [known[one] if one >= 0 else None for one in index.tolist()]


def find_busiest_process(trace: Trace) -> int:
    """The process_id of the process that executed most. Raises UsageError if there is none."""
    threads: list[Row] = trace.read("threads", ["process_id", "instructions"]).to_pylist()
    work: dict[int, int] = dict.fromkeys(trace.read("processes", ["process_id"])["process_id"].to_pylist(), 0)
    for thread in threads:
        if thread["process_id"] in work:
            work[thread["process_id"]] += thread["instructions"]
    if not work:
        raise UsageError(f"{trace.directory}: no process in it")
    return max(work, key=lambda process_id: work[process_id])
