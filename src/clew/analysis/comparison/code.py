"""The code of a function of two processes that are compared, as text: that of A and that of B.

Runs in the controller. Blocks, functions and edges are named by their numbers in the graph of both; what is the same
code has one number on both sides. The bytes are those that each recorded.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from clew.analysis.comparison.content import SIDES
from clew.analysis.comparison.union_graph import UnionGraph
from clew.analysis.graph.function_code import MAX_WAYS_OUT, CodeText
from clew.analysis.graph.graph import CALLS
from clew.protocol.words import EDGE_WORDS
from clew.store.columns import Array

__all__ = ["ComparedCode"]

Row = dict[str, Any]


class ComparedCode:
    """Text of the code of what `union` is of. Reads traces: its methods raise TraceDamagedError."""

    def __init__(self, union: UnionGraph) -> None:
        self._union = union
        self._text = tuple(CodeText(graph) for graph in union.graphs)
        self._counts = tuple(graph.count() for graph in union.graphs)

    def describe_function(self, function: int, most_blocks: int) -> Row:
        """What a function is: `function`, `name`, and for `a` and `b` what `CodeText.describe_function` says of it, of
        its first `most_blocks` nodes; None where it has no code."""
        union = self._union
        first, last = (int(union.first_block[function + more]) for more in (0, 1))
        return {
            "function": function,
            "name": union.names[function],
            **{
                name: self._describe_side(side, function, np.arange(first, last), most_blocks)
                for side, name in enumerate(SIDES)
            },
        }

    def _describe_side(self, side: int, function: int, nodes: Array, most_blocks: int) -> Row | None:
        union, graph = self._union, self._union.graphs[side]
        nodes = nodes[union.block[side, nodes] >= 0]
        if not len(nodes):
            return None
        shown = nodes[:most_blocks]
        is_shown = np.zeros(union.n_nodes + 1, bool)
        is_shown[shown] = True
        own = int(union.graph_function[side, function])
        image = int(graph.image[own])
        out = np.flatnonzero(is_shown[union.source] & (union.edge_executions[side] > 0))
        is_call = union.is_kind(*CALLS)[out]
        target = union.target[out]
        is_way_out = (target >= 0) & (is_call | (union.function[target] != function))
        entry = self._nodes[side][0][int(graph.entry_block[own])]
        return {
            "function": function,
            "name": graph.names[own],
            "image": graph.images[image]["path"] if image >= 0 else None,
            "address": hex(int(graph.app_pc[graph.entry_block[own]])),
            "n_blocks": len(nodes),
            "entry_block": int(entry if is_shown[entry] else shown[0]),
            "blocks": self._describe_nodes(side, shown),
            "edges": [self._describe_edge(side, edge) for edge in out[is_shown[target] & ~is_call].tolist()],
            "ways_out": [self._describe_edge(side, edge) for edge in self._take_most(side, out[is_way_out])],
        }

    @cached_property
    def _nodes(self) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
        return self._union.find_nodes(0), self._union.find_nodes(1)

    def _describe_nodes(self, side: int, nodes: Array) -> list[Row]:
        """Of each node the part of its block's code that it is."""
        union = self._union
        blocks, which = np.unique(union.block[side, nodes], return_inverse=True)
        described = self._text[side].describe_blocks(blocks.tolist(), self._counts[side])
        pieces = union.diff.pieces[side]
        found = []
        for node, number in zip(nodes.tolist(), which.tolist(), strict=True):
            row, block = int(union.piece[side, node]), described[number]
            first, last = (int(pieces.first[pieces.block[row] + more]) for more in (0, 1))
            skipped = int(pieces.n_instructions[first:row].sum())
            inside = block["instructions"][skipped : skipped + int(pieces.n_instructions[row])]
            is_last = row == last - 1
            found.append(
                {
                    **block,
                    "block": node,
                    "function": int(union.function[node]),
                    "address": hex(int(block["address"], 16) + int(pieces.into[row])),
                    "size_bytes": int(pieces.size_bytes[row]),
                    "exit": block["exit"] if is_last else "fall_through",
                    "executions": int(union.executions[side, node]),
                    "taken": block["taken"] if is_last else None,
                    "not_taken": block["not_taken"] if is_last else None,
                    "instructions": [self._name_target(side, one) for one in inside],
                }
            )
        return found

    def _name_target(self, side: int, instruction: Row) -> Row:
        """With the numbers that the graph of both has for where it leads."""
        target = instruction.get("target")
        if target is None:
            return instruction
        nodes, functions = self._nodes[side]
        block, function = target["block"], target["function"]
        return instruction | {
            "target": target
            | {
                "block": None if block is None else int(nodes[block]),
                "function": None if function is None else int(functions[function]),
            }
        }

    def _take_most(self, side: int, edges: Array) -> list[int]:
        """Of each node's edges the most taken ones."""
        executions = self._union.edge_executions[side]
        kept: list[int] = []
        of_node: dict[int, int] = {}
        for edge in edges[np.lexsort((edges, -executions[edges]))].tolist():
            node = int(self._union.source[edge])
            of_node[node] = of_node.get(node, 0) + 1
            if of_node[node] <= MAX_WAYS_OUT:
                kept.append(edge)
        return kept

    def _describe_edge(self, side: int, edge: int) -> Row:
        union = self._union
        target = int(union.target[edge])
        kind = int(union.kind[edge])
        return {
            "source": int(union.source[edge]),
            "target": target,
            "function": int(union.function[target]),
            "name": union.names[int(union.function[target])],
            "kind": EDGE_WORDS[kind] if kind >= 0 else None,
            "executions": int(union.edge_executions[side, edge]),
        }
