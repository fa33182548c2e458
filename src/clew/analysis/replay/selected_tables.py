"""Blocks, edges and functions of a graph as tables, all of them or some: what is taken out of the viewer.

Pure. Blocks and functions are named by their indices in the graph and by what the trace's own tables call them.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from clew.analysis.graph.graph import GraphCounts, ProcessGraph
from clew.analysis.tables.arrays import Array
from clew.protocol.words import EDGE_WORDS, EXIT_WORDS
from clew.store.columns import numbers, texts

__all__ = ["TABLES", "find_edges_at", "tabulate"]

TABLES: Final = ("blocks", "edges", "functions")
"""What there is a table of."""


def find_edges_at(graph: ProcessGraph, blocks: Array) -> Array:
    """Edges that lead to or away from one of `blocks`, by index, rising."""
    is_wanted = np.zeros(graph.n_blocks + 1, bool)
    is_wanted[blocks] = True
    # -1, for no block, is the last element, which is never wanted.
    found: Array = np.flatnonzero(is_wanted[graph.source] | is_wanted[graph.target])
    return found


def tabulate(graph: ProcessGraph, counts: GraphCounts, of: str, rows: Array, start_ns: int) -> pa.Table:
    """The table of `rows`, indices of what `of` names (one of TABLES). Times are nanoseconds since `start_ns`.

    Of blocks: `block` (index), `block_id`, `address`, `function`, `image` (a path, or null), `size_bytes`,
    `n_instructions`, `exit`, `code_version`, `first_ns`, `executions`. Of edges: `edge` (index), `source_block_id`,
    `source_address`, `target_block_id`, `target_address` (null where no block is known), `kind`, `callee_block_id` (of
    a return, or null), `executions`. Of functions: `function` (index), `name`, `image`, `address`, `n_blocks`,
    `discovered_ns`, `entries`, `instructions` (executed).
    """
    columns = {"blocks": _blocks, "edges": _edges, "functions": _functions}[of]
    return pa.table(columns(graph, counts, rows, start_ns))


def _blocks(graph: ProcessGraph, counts: GraphCounts, rows: Array, start_ns: int) -> dict[str, pa.Array]:
    function = graph.function[rows]
    return {
        "block": numbers(rows, pa.uint32()),
        "block_id": numbers(graph.block_id[rows], pa.int64()),
        "address": numbers(graph.app_pc[rows], pa.uint64()),
        "function": texts([graph.names[one] for one in function.tolist()]),
        "image": _images(graph, function),
        "size_bytes": numbers(graph.size_bytes[rows], pa.uint32()),
        "n_instructions": numbers(graph.n_instructions[rows], pa.uint32()),
        "exit": _words(EXIT_WORDS, graph.exit_kind[rows]),
        "code_version": numbers(graph.code_version[rows], pa.uint32()),
        "first_ns": numbers(graph.first_ns[rows] - start_ns, pa.int64()),
        "executions": numbers(counts.blocks[rows], pa.int64()),
    }


def _edges(graph: ProcessGraph, counts: GraphCounts, rows: Array, start_ns: int) -> dict[str, pa.Array]:
    del start_ns
    found = {"edge": numbers(rows, pa.uint32())}
    for name, blocks in (("source", graph.source[rows]), ("target", graph.target[rows])):
        found[f"{name}_block_id"] = numbers(graph.block_id[blocks], pa.int64(), blocks < 0)
        found[f"{name}_address"] = numbers(graph.app_pc[blocks], pa.uint64(), blocks < 0)
    found["kind"] = _words(EDGE_WORDS, graph.kind[rows])
    callee = graph.callee[rows]
    found["callee_block_id"] = numbers(graph.block_id[callee], pa.int64(), callee < 0)
    found["executions"] = numbers(counts.edges[rows], pa.int64())
    return found


def _functions(graph: ProcessGraph, counts: GraphCounts, rows: Array, start_ns: int) -> dict[str, pa.Array]:
    return {
        "function": numbers(rows, pa.uint32()),
        "name": texts([graph.names[one] for one in rows.tolist()]),
        "image": _images(graph, rows),
        "address": numbers(graph.app_pc[graph.entry_block[rows]], pa.uint64()),
        "n_blocks": numbers(graph.first_block[rows + 1] - graph.first_block[rows], pa.uint32()),
        "discovered_ns": numbers(graph.discovered_ns[rows] - start_ns, pa.int64()),
        "entries": numbers(graph.count_entries(counts)[rows], pa.int64()),
        "instructions": numbers(graph.sum_functions(counts)[rows], pa.int64()),
    }


def _images(graph: ProcessGraph, functions: Array) -> pa.Array:
    paths = [image["path"] for image in graph.images]
    return texts([paths[image] if image >= 0 else None for image in graph.image[functions].tolist()])


def _words(known: tuple[str, ...], index: Array) -> pa.Array:
    return texts([known[one] if one >= 0 else None for one in index.tolist()])
