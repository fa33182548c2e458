"""The code of a process as text: instructions of blocks, where their branches lead, and who comes to them.

Runs in the controller. Blocks and functions are named by their indices in the graph; addresses are hexadecimal strings,
names are demangled. The bytes are those that were recorded: files are not looked at. Nor are source lines known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final

import numpy as np

from clew.analysis.code.functions import NO_OFFSET
from clew.analysis.graph.graph import CALLS, GraphCounts, ProcessGraph
from clew.analysis.tables.arrays import Array
from clew.binary.architectures.architecture import Architecture
from clew.binary.disassembly import DisassembledInstruction, disassemble
from clew.protocol.words import EDGE_WORDS, EXIT_WORDS

__all__ = ["MAX_WAYS_OUT", "CodeText"]

Row = dict[str, Any]

MAX_WAYS_OUT: Final = 16
"""Of a block that leads into many other functions, those that are told: the most taken ones."""


class CodeText:
    """Text of the code of the process that `graph` is of. Reads the trace: its methods raise TraceDamagedError."""

    def __init__(self, graph: ProcessGraph) -> None:
        self._graph = graph

    def describe_blocks(self, blocks: Sequence[int], counts: GraphCounts) -> list[Row]:
        """What some blocks are: `block` (index), `function`, `address`, `size_bytes`, `exit`, `code_version`,
        `is_recorded`, `executions`, `taken` and `not_taken` (of conditional branches, else None) and `instructions`.

        An instruction has `address`, `bytes`, `text` and, if it is a direct branch or call, `target`.
        """
        graph = self._graph
        content = graph.arrays.trace.read_rows("blocks", graph.block_row[list(blocks)].tolist(), ["bytes"])
        decoded = [
            disassemble(row["bytes"] or b"", int(graph.app_pc[block]), graph.architecture)
            for block, row in zip(blocks, content, strict=True)
        ]
        targets = self._find_targets(decoded)
        return [
            {
                "block": block,
                "function": int(graph.function[block]),
                "address": hex(int(graph.app_pc[block])),
                "size_bytes": int(graph.size_bytes[block]),
                "exit": _word(EXIT_WORDS, int(graph.exit_kind[block])),
                "code_version": int(graph.code_version[block]),
                "is_recorded": bool(graph.is_recorded[block]),
                "executions": int(counts.blocks[block]),
                **self._share_out(block, counts),
                "instructions": [_describe(one, targets, graph.architecture) for one in instructions],
            }
            for block, instructions in zip(blocks, decoded, strict=True)
        ]

    def describe_function(self, function: int, counts: GraphCounts, most_blocks: int) -> Row:
        """What a function is: `function` (index), `name`, `image` (a path, or None), `address`, `n_blocks`,
        `entry_block`; its first `most_blocks` blocks, the `edges` between these, and the `ways_out` of them, which lead
        into other functions or back to its start by a call.
        """
        graph = self._graph
        first = int(graph.first_block[function])
        n_blocks = int(graph.first_block[function + 1]) - first
        last = first + min(n_blocks, most_blocks)
        entry, image = int(graph.entry_block[function]), int(graph.image[function])
        out = self._edges_of(self._by_source, first, last)
        is_inside = (graph.target[out] >= first) & (graph.target[out] < last)
        is_call = graph.arrays.is_kind(*CALLS)[out]
        is_way_out = (graph.target[out] >= 0) & (is_call | (graph.function[graph.target[out]] != function))
        return {
            "function": function,
            "name": graph.names[function],
            "image": graph.images[image]["path"] if image >= 0 else None,
            "address": hex(int(graph.app_pc[entry])),
            "n_blocks": n_blocks,
            "entry_block": entry,
            "blocks": self.describe_blocks(range(first, last), counts),
            "edges": [self._describe_edge(edge, counts) for edge in out[is_inside & ~is_call].tolist()],
            "ways_out": [
                self._describe_edge(edge, counts) for edge in self._take_most(out[is_way_out], graph.source, counts)
            ],
        }

    def find_references(self, block: int, counts: GraphCounts, most: int) -> Row:
        """Who comes to a block (`in`) and where it leads (`out`), the most taken first, `most` of each at most; `n_in`
        and `n_out` say how many there are."""
        inward = self._edges_of(self._by_target, block, block + 1)
        out = self._edges_of(self._by_source, block, block + 1)
        return {
            "block": block,
            "n_in": len(inward),
            "n_out": len(out),
            "in": [self._describe_reference(edge, True, counts) for edge in _sort(inward, counts)[:most].tolist()],
            "out": [self._describe_reference(edge, False, counts) for edge in _sort(out, counts)[:most].tolist()],
        }

    def place(self, block: int) -> Row:
        """Where a block is: `block`, `function`, `name` of the function, `address`, `function_offset` (bytes, or None
        where the function's start is not known)."""
        graph = self._graph
        function = int(graph.function[block])
        start = self._starts[function]
        return {
            "block": block,
            "function": function,
            "name": graph.names[function],
            "address": hex(int(graph.app_pc[block])),
            "function_offset": None if start is None else int(graph.app_pc[block]) - start,
        }

    @cached_property
    def _starts(self) -> list[int | None]:
        """Addresses at which functions start."""
        graph = self._graph
        return [
            None if offset == NO_OFFSET or image < 0 else graph.images[image]["base"] + offset
            for image, offset in zip(graph.image.tolist(), graph.offset.tolist(), strict=True)
        ]

    @cached_property
    def _by_source(self) -> tuple[Array, Array]:
        return _sort_by(self._graph.source)

    @cached_property
    def _by_target(self) -> tuple[Array, Array]:
        return _sort_by(self._graph.target)

    @cached_property
    def by_address(self) -> Array:
        """Blocks in the order of their addresses, and of several at one address, of their versions."""
        graph = self._graph
        found: Array = np.lexsort((graph.code_version, graph.app_pc))
        return found

    @staticmethod
    def _edges_of(sorted_edges: tuple[Array, Array], first: int, last: int) -> Array:
        """Edges whose block is from one up to another."""
        ends, edges = sorted_edges
        low, high = np.searchsorted(ends, [first, last])
        return edges[int(low) : int(high)]

    def _share_out(self, block: int, counts: GraphCounts) -> Row:
        """How a conditional branch went."""
        if _word(EXIT_WORDS, int(self._graph.exit_kind[block])) != "conditional":
            return {"taken": None, "not_taken": None}
        edges = self._edges_of(self._by_source, block, block + 1)
        kinds = self._graph.kind[edges]
        return {
            name: int(counts.edges[edges[kinds == EDGE_WORDS.index(name)]].sum()) for name in ("taken", "not_taken")
        }

    def _take_most(self, edges: Array, ends: Array, counts: GraphCounts) -> list[int]:
        """Of each block's edges the most taken ones."""
        kept: list[int] = []
        of_block: dict[int, int] = {}
        for edge in _sort(edges, counts).tolist():
            block = int(ends[edge])
            of_block[block] = of_block.get(block, 0) + 1
            if of_block[block] <= MAX_WAYS_OUT:
                kept.append(edge)
        return kept

    def _describe_edge(self, edge: int, counts: GraphCounts) -> Row:
        graph = self._graph
        target = int(graph.target[edge])
        function = int(graph.function[target])
        return {
            "source": int(graph.source[edge]),
            "target": target,
            "function": function,
            "name": graph.names[function],
            "kind": _word(EDGE_WORDS, int(graph.kind[edge])),
            "executions": int(counts.edges[edge]),
        }

    def _describe_reference(self, edge: int, is_in: bool, counts: GraphCounts) -> Row:
        graph = self._graph
        other, callee = int((graph.source if is_in else graph.target)[edge]), int(graph.callee[edge])
        return {
            "kind": _word(EDGE_WORDS, int(graph.kind[edge])),
            "executions": int(counts.edges[edge]),
            "from" if is_in else "to": self.place(other) if other >= 0 else None,
            "callee": self.place(callee) if callee >= 0 else None,
        }

    def _find_targets(self, decoded: Sequence[Sequence[DisassembledInstruction]]) -> dict[int, Row]:
        """Where direct branches lead, by address: `address`, and as far as it is known `block`, `function`, `name`."""
        texts = (one.text for instructions in decoded for one in instructions)
        leads = set(map(self._graph.architecture.find_target, texts))
        wanted = sorted(address for address in leads if address is not None)
        graph, order = self._graph, self.by_address
        pcs = graph.app_pc[order]
        at = np.searchsorted(pcs, np.array(wanted, np.uint64), "right").tolist()
        found: dict[int, Row] = {}
        for address, behind in zip(wanted, at, strict=True):
            row: Row = {"address": hex(address), "block": None, "function": None, "name": None}
            before = int(order[behind - 1]) if behind else -1
            after = int(order[behind]) if behind < len(order) else -1
            if before >= 0 and int(graph.app_pc[before]) == address:
                # Of several versions of the code the first.
                row["block"] = int(order[int(np.searchsorted(pcs, np.uint64(address)))])
                row["function"] = int(graph.function[row["block"]])
            elif before >= 0 and after >= 0 and graph.function[before] == graph.function[after]:
                # Not executed, and in the midst of a function's code that was.
                row["function"] = int(graph.function[before])
            if row["function"] is not None:
                row["name"] = self._name_address(row["function"], address)
            found[address] = row
        return found

    def _name_address(self, function: int, address: int) -> str:
        name, start = self._graph.names[function], self._starts[function]
        return name if start is None or address <= start else f"{name}+{address - start:#x}"


def _describe(instruction: DisassembledInstruction, targets: dict[int, Row], architecture: Architecture) -> Row:
    row: Row = {"address": hex(instruction.address), "bytes": instruction.code.hex(), "text": instruction.text}
    target = architecture.find_target(instruction.text)
    return row if target is None else row | {"target": targets[target]}


def _word(words: Sequence[str], index: int) -> str | None:
    return words[index] if 0 <= index < len(words) else None


def _sort(edges: Array, counts: GraphCounts) -> Array:
    found: Array = edges[np.lexsort((edges, -counts.edges[edges]))]
    return found


def _sort_by(ends: Array) -> tuple[Array, Array]:
    order = np.argsort(ends, kind="stable")
    return ends[order], order
