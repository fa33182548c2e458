"""The graphs of two processes as one: its functions, the pieces of their blocks, and the edges of both.

Runs in the controller. What is drawn of two traces that are compared. Functions, nodes and edges are numbered as in a
`ProcessGraph`: functions in the order in which they were discovered, those that only B has behind who called them
first; nodes function by function and by place within one. A *node* is a piece (see `comparison/pieces.py`), the
same of both; where A has one it is told of A's.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import numpy as np

from clew.analysis.comparison.trace_diff import TraceDiff
from clew.analysis.graph.function_links import find_entering, link_functions
from clew.analysis.graph.graph import CALLS, ENTRIES, ProcessGraph
from clew.protocol.words import EDGE_WORDS, EXIT_WORDS, EdgeWord
from clew.store.columns import Array

__all__ = ["UnionGraph"]

_FALL_THROUGH: Final = EXIT_WORDS.index("fall_through")
_NEVER: Final = np.iinfo(np.int64).max


class UnionGraph:
    """The graph of what `diff` compares, the processes that `graphs` are of.

    By node: `number` (of its piece), `function`, `app_pc`, `distance` (bytes from where its function starts),
    `size_bytes`, `n_instructions`, `exit_kind`, `code_version`, `first_ns` (since its recording began), `is_recorded`,
    `is_comparable`; with a row for A and one for B: `block`, the index that the graph of each has for the block that it
    is of, -1 for none; `piece`, its row of the pieces; `executions`. By edge: `source`, `target`, `callee` (nodes, -1
    for none), `kind`; `edge_executions` of both. By function: `names`, `image` (a row of `images`, or -1), `offset`,
    `discovered_ns`, `caller`, `depth`, `is_stub`, `first_block`, and `graph_function`, the index that the graph of each
    has for it, -1 for none.
    """

    def __init__(self, diff: TraceDiff, graphs: tuple[ProcessGraph, ProcessGraph]) -> None:
        self.diff, self.graphs = diff, graphs
        # Of what both have A's is told.
        self._side = np.where(diff.blocks.first[0] >= 0, 0, 1)
        self._blocks = np.stack([self._find_blocks(side) for side in (0, 1)])
        self._graph_functions = np.stack([self._find_functions(side) for side in (0, 1)])
        self._sort_functions()
        self._sort_nodes()
        self._take_edges()

    @property
    def n_functions(self) -> int:
        return len(self.first_block) - 1

    @property
    def n_nodes(self) -> int:
        return len(self.number)

    @property
    def n_edges(self) -> int:
        return len(self.source)

    def _find_blocks(self, side: int) -> Array:
        """By number of a piece the block that it is of, as the graph of a side has it."""
        rows, pieces = self.diff.blocks.first[side], self.diff.pieces[side]
        block = np.append(pieces.block, -1)[rows]
        found: Array = np.where(rows >= 0, self.graphs[side].index_of_row[block], -1)
        return found

    def _find_functions(self, side: int) -> Array:
        """By number of a function the one that the graph of a side has for it: that of its lowest piece there."""
        functions, graph = self.diff.functions, self.graphs[side]
        _, start = self.diff.place
        known = np.flatnonzero(self._blocks[side] >= 0)
        known = known[np.argsort(start[known], kind="stable")[::-1]]
        found = np.full(len(functions.piece), -1)
        found[functions.of_piece[known]] = graph.function[self._blocks[side][known]]
        return found

    def _number_functions(self, side: int) -> Array:
        """By function of the graph of a side its number; -1 behind the last."""
        graph, pieces = self.graphs[side], self.diff.pieces[side]
        rows = graph.block_row[graph.entry_block]
        return np.append(self.diff.functions.of_piece[pieces.number[pieces.first[rows]]], -1)

    def _sort_functions(self) -> None:
        """Functions by their discovery, which of those that only B has is never before that of their caller."""
        n = len(self.diff.functions.piece)
        own = np.where(self._graph_functions[0] >= 0, 0, 1)
        discovered, caller, depth = np.zeros(n, np.int64), np.full(n, -1), np.zeros(n, np.int64)
        for side, graph in enumerate(self.graphs):
            rows = np.flatnonzero(own == side)
            of_graph = self._graph_functions[side, rows]
            discovered[rows] = graph.discovered_ns[of_graph] - graph.trace.manifest.start_ns
            caller[rows] = self._number_functions(side)[graph.caller[of_graph]]
            depth[rows] = graph.depth[of_graph]
        # The clocks of two recordings have nothing to do with each other.
        later = np.flatnonzero(own == 1)
        for function in later[np.argsort(self._graph_functions[1, later])].tolist():
            if caller[function] >= 0:
                discovered[function] = max(discovered[function], discovered[caller[function]])
        tie = np.where(own == 0, self._graph_functions[0], self._graph_functions[1])
        order = np.lexsort((tie, own, discovered))
        self._rank = np.empty(n, np.int64)
        self._rank[order] = np.arange(n)
        self.discovered_ns = discovered[order]
        ranked = np.append(self._rank, -1)[caller[order]]
        self.caller = np.where(ranked < np.arange(n), ranked, -1)
        self.depth = depth[order]
        self.graph_function = self._graph_functions[:, order]
        self._own = own[order]

    def _sort_nodes(self) -> None:
        diff = self.diff
        _, start = diff.place
        function = self._rank[diff.functions.of_piece]
        n = len(function)
        self.number = np.lexsort((np.arange(n), start, function))
        self.node_of_number = np.full(n + 1, -1)
        self.node_of_number[self.number] = np.arange(n)
        self.function = function[self.number]
        self.first_block = np.searchsorted(self.function, np.arange(len(self._rank) + 1))
        self.block = self._blocks[:, self.number]
        self.piece = diff.blocks.first[:, self.number]
        self.executions = diff.blocks.executions[:, self.number]
        self.is_comparable = diff.blocks.is_comparable[self.number]
        self.app_pc = self._tell(
            lambda graph, block, pieces, row: graph.app_pc[block] + pieces.into[row].astype(np.uint64)
        )
        self.size_bytes = self._tell(lambda _graph, _block, pieces, row: pieces.size_bytes[row])
        self.n_instructions = self._tell(lambda _graph, _block, pieces, row: pieces.n_instructions[row])
        self.code_version = self._tell(lambda graph, block, _pieces, _row: graph.code_version[block])
        self.is_recorded = self._tell(lambda graph, block, _pieces, _row: graph.is_recorded[block])
        self.first_ns = self._tell(lambda graph, block, _p, _row: graph.first_ns[block] - graph.trace.manifest.start_ns)
        self.exit_kind = self._tell(
            lambda graph, block, pieces, row: np.where(
                pieces.first[pieces.block[row] + 1] - 1 == row, graph.exit_kind[block], _FALL_THROUGH
            )
        )
        starts = self._tell(lambda graph, block, _p, _row: graph.app_pc[graph.entry_block[graph.function[block]]])
        self.distance = (self.app_pc - starts).astype(np.int64)
        self.block_id = self._tell(lambda graph, block, _pieces, _row: graph.block_id[block])

    def _tell(self, of: Any) -> Array:
        """A column of the nodes: `of` a graph, its blocks, its pieces and their rows; of A's where A has them."""
        side = self._side[self.number]
        found: Array | None = None
        for number, graph in enumerate(self.graphs):
            rows = np.flatnonzero(side == number)
            values = of(graph, self.block[number, rows], self.diff.pieces[number], self.piece[number, rows])
            if found is None:
                found = np.zeros(self.n_nodes, values.dtype)
            found[rows] = values
        assert found is not None
        return found

    def _take_edges(self) -> None:
        edges = self.diff.edges
        n = len(edges.is_comparable)
        columns = {name: np.full(n, -1) for name in ("source", "target", "callee", "kind")}
        for side in (1, 0):
            rows = np.flatnonzero(edges.first[side] >= 0)
            flow = self.diff.flows[side]
            for name, column in columns.items():
                column[rows] = getattr(flow, name)[edges.first[side, rows]]
        self.source, self.target, self.callee = (
            self.node_of_number[columns[name]] for name in ("source", "target", "callee")
        )
        self.kind = columns["kind"]
        self.edge_executions = edges.executions

    def is_kind(self, *kinds: EdgeWord) -> Array:
        """Which edges are of one of `kinds`."""
        return np.isin(self.kind, [EDGE_WORDS.index(kind) for kind in kinds])

    @cached_property
    def entry_block(self) -> Array:
        """By function the node at which it is entered."""
        found = self.first_block[:-1].copy()
        for side in (1, 0):
            graph, pieces = self.graphs[side], self.diff.pieces[side]
            rows = np.flatnonzero(self._own == side)
            entry = graph.block_row[graph.entry_block[self.graph_function[side, rows]]]
            node = self.node_of_number[pieces.number[pieces.first[entry]]]
            inside = self.function[node] == rows
            found[rows[inside]] = node[inside]
        return found

    @cached_property
    def names(self) -> list[str]:
        """Names of functions, demangled."""
        return [
            self.graphs[side].names[function]
            for side, function in zip(
                self._own.tolist(), self.graph_function[self._own, np.arange(self.n_functions)].tolist(), strict=True
            )
        ]

    @cached_property
    def is_stub(self) -> Array:
        """Which functions only lead to those of another image."""
        return self._tell_functions(lambda graph, functions: graph.is_stub[functions])

    @cached_property
    def offset(self) -> Array:
        """By function where it starts in its image, u64, NO_OFFSET where that is not known."""
        return self._tell_functions(lambda graph, functions: graph.offset[functions].astype(np.uint64))

    @cached_property
    def _images(self) -> tuple[list[dict[str, Any]], list[Array]]:
        """Images of both, a file that both have once; and by row of the images of each which of them it is."""
        found: list[dict[str, Any]] = []
        rows_of: dict[int, int] = {}
        of_side = []
        for code, graph in zip(self.diff.code, self.graphs, strict=True):
            files = (self.diff.files.of_a if code is self.diff.code[0] else self.diff.files.of_b).tolist()
            rows = []
            for file, image in zip(files, graph.images, strict=False):
                if file not in rows_of:
                    rows_of[file] = len(found)
                    found.append(image)
                rows.append(rows_of[file])
            of_side.append(np.array([*rows, -1], np.int64))
        return found, of_side

    @property
    def images(self) -> list[dict[str, Any]]:
        """Rows of the images that `image` names: `path`, `base`, `size_bytes`, `build_id`; A's of what both have."""
        return self._images[0]

    @cached_property
    def image(self) -> Array:
        """By function its image, a row of `images`, -1 for none."""
        found = np.full(self.n_functions, -1)
        for side, (graph, rows) in enumerate(zip(self.graphs, self._images[1], strict=True)):
            own = np.flatnonzero(self._own == side)
            found[own] = rows[graph.image[self.graph_function[side, own]]]
        return found

    def _tell_functions(self, of: Any) -> Array:
        found: Array | None = None
        for side, graph in enumerate(self.graphs):
            rows = np.flatnonzero(self._own == side)
            values = of(graph, self.graph_function[side, rows])
            if found is None:
                found = np.zeros(self.n_functions, values.dtype)
            found[rows] = values
        assert found is not None
        return found

    @cached_property
    def links(self) -> tuple[Array, Array, Array, Array]:
        """Edges between functions, as `link_functions` has them."""
        return link_functions(
            self.source,
            self.target,
            self.function,
            self.n_functions,
            is_call=self.is_kind(*CALLS),
            is_return=self.is_kind("return"),
        )

    def sum_links(self) -> Array:
        """How often each edge between functions was taken, by A and by B."""
        source, _, _, of_edge = self.links
        known = of_edge >= 0
        total = np.zeros((2, len(source)), np.int64)
        for side in (0, 1):
            np.add.at(total[side], of_edge[known], self.edge_executions[side, known])
        return total

    def count_entries(self) -> Array:
        """By function how often control came to its start, in A and in B."""
        enters = find_entering(
            self.source,
            self.target,
            self.function,
            self.entry_block,
            comes=self.is_kind(*ENTRIES),
            is_call=self.is_kind("call", "indirect_call"),
        )
        entries = np.zeros((2, self.n_functions), np.int64)
        for side in (0, 1):
            np.add.at(entries[side], self.function[self.target[enters]], self.edge_executions[side, enters])
        return entries

    def sum_functions(self, values: Array) -> Array:
        """Sums by function of what nodes have, i64, of each row."""
        total = np.zeros((len(values), self.n_functions), np.int64)
        for sums, of_nodes in zip(total, values, strict=True):
            np.add.at(sums, self.function, of_nodes.astype(np.int64))
        return total

    def find_nodes(self, side: int) -> tuple[Array, Array]:
        """By block of the graph of a side its first node; by function its function here. -1 behind the last."""
        graph, pieces = self.graphs[side], self.diff.pieces[side]
        nodes = self.node_of_number[pieces.number[pieces.first[graph.block_row]]]
        functions = np.append(self._rank, -1)[self._number_functions(side)]
        return np.append(nodes, -1), functions
