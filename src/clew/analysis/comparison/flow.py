"""How often two traces ran each piece of code, and took each edge between pieces.

Runs in the controller. Edges leave the last piece of their source and lead to the first one of their target; those of
kind signal and fault came before their source ran, and leave its first piece. Where a block was cut, the straight line
leads from each of its pieces to the next one, as often as the block ran, by an edge of kind fall_through.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from clew.analysis.comparison.content import mix, number_keys
from clew.analysis.comparison.pieces import Pieces
from clew.analysis.comparison.places import Code, Places, Spaces
from clew.protocol.words import EDGE_WORDS
from clew.store.columns import Array

__all__ = ["FALL_THROUGH", "Flow", "SideBySide", "compare_edges", "compare_pieces"]

FALL_THROUGH = EDGE_WORDS.index("fall_through")
_NONE = -1


@dataclass(frozen=True)
class SideBySide:
    """Things that are in two traces, or in one of them, by their number.

    `executions` and `instructions` have a row for A and one for B. `first` has one of the rows that the thing is in
    each trace (of the pieces, or of the flow), -1 where it is in none. What is not `is_comparable` can't be known in
    the other trace.
    """

    executions: Array
    instructions: Array
    first: Array
    is_comparable: Array

    @property
    def ran(self) -> Array:
        """Whether it ran, in A and in B."""
        has_run: Array = self.executions > 0
        return has_run

    def is_only_in(self, side: int) -> Array:
        """What ran in one trace (0: A, 1: B), and not in the other, where that can be told."""
        ran = self.ran
        only: Array = ran[side] & ~ran[1 - side] & self.is_comparable
        return only

    @property
    def differs(self) -> Array:
        """What did not run as often in both, where that can be told; what is only in one as well."""
        unequal: Array = (self.executions[0] != self.executions[1]) & self.is_comparable
        return unequal


@dataclass(frozen=True)
class Flow:
    """The edges of a trace, between pieces by their numbers: `source` is -1 for a start, `callee` where there is none.

    `row` is the edge's in the table, -1 for one inside a block; `source_piece`, `target_piece` and `callee_piece` are
    rows of the pieces.
    """

    source: Array
    target: Array
    kind: Array
    callee: Array
    executions: Array
    row: Array
    source_piece: Array
    target_piece: Array
    callee_piece: Array


def compare_pieces(
    n: int, both: tuple[tuple[Code, Places, Pieces], tuple[Code, Places, Pieces]], spaces: Spaces, *, is_counted: bool
) -> SideBySide:
    """The pieces of two traces side by side; `n` is how many different ones there are. Not counted, each ran once."""
    executions, instructions = np.zeros((2, n), np.int64), np.zeros((2, n), np.int64)
    first = np.full((2, n), _NONE)
    is_comparable = np.ones(n, bool)
    for side, (code, places, pieces) in enumerate(both):
        ran = code.arrays.block_executions[pieces.block]
        if not is_counted:
            ran = (ran > 0).astype(np.int64)
        np.add.at(executions[side], pieces.number, ran)
        if is_counted:
            np.add.at(instructions[side], pieces.number, ran * pieces.n_instructions)
        # Of several rows the first, of those that ran if there are some.
        for rows in (np.arange(len(ran)), np.flatnonzero(ran)):
            first[side, pieces.number[rows[::-1]]] = rows[::-1]
        is_comparable[pieces.number] = spaces.is_comparable[places.space[pieces.block]]
        if not is_counted:
            np.minimum(executions[side], 1, out=executions[side])
            instructions[side] = executions[side] * np.append(pieces.n_instructions, 0)[first[side]]
    return SideBySide(executions, instructions, first, is_comparable)


def compare_edges(
    both: tuple[tuple[Code, Pieces], tuple[Code, Pieces]], compared: SideBySide, *, is_counted: bool
) -> tuple[SideBySide, tuple[Flow, Flow]]:
    """The edges of two traces side by side; `instructions` are those of the piece entered. And the edges of each."""
    flows = tuple(_find_flow(code, pieces) for code, pieces in both)
    n, numbers = number_keys(*(mix(flow.source, flow.target, flow.kind, flow.callee) for flow in flows))
    executions, instructions = np.zeros((2, n), np.int64), np.zeros((2, n), np.int64)
    first = np.full((2, n), _NONE)
    is_comparable = np.ones(n, bool)
    # One more, for no piece.
    knows = np.append(compared.is_comparable, True)
    for side, (flow, number, (_, pieces)) in enumerate(zip(flows, numbers, both, strict=True)):
        ran = flow.executions if is_counted else (flow.executions > 0).astype(np.int64)
        np.add.at(executions[side], number, ran)
        if not is_counted:
            np.minimum(executions[side], 1, out=executions[side])
        first[side, number[::-1]] = np.arange(len(ran))[::-1]
        entered = np.append(flow.target_piece, _NONE)[first[side]]
        instructions[side] = executions[side] * np.append(pieces.n_instructions, 0)[entered]
        is_comparable[number] = knows[flow.source] & knows[flow.target] & knows[flow.callee]
    return SideBySide(executions, instructions, first, is_comparable), (flows[0], flows[1])


def _find_flow(code: Code, pieces: Pieces) -> Flow:
    arrays = code.arrays
    first, last = np.append(pieces.first[:-1], _NONE), np.append(pieces.first[1:] - 1, _NONE)
    came_before = arrays.is_kind("signal", "fault")
    source = np.where(came_before, first[arrays.edge_source], last[arrays.edge_source])
    target, callee = first[arrays.edge_target], first[arrays.callee]
    # Of a damaged trace edges may lead nowhere.
    known = np.flatnonzero(target >= 0)
    inner = np.flatnonzero(pieces.block[1:] == pieces.block[:-1])
    inner = inner[arrays.block_executions[pieces.block[inner]] > 0]
    number = np.append(pieces.number, _NONE)

    def join(of_edges: Array, of_inner: Any) -> Array:
        filled = np.empty(len(inner), np.int64)
        filled[:] = of_inner
        return np.concatenate([of_edges[known].astype(np.int64), filled])

    source_piece, target_piece, callee_piece = join(source, inner), join(target, inner + 1), join(callee, _NONE)
    return Flow(
        source=number[source_piece],
        target=number[target_piece],
        kind=join(arrays.edge_kind, FALL_THROUGH),
        callee=number[callee_piece],
        executions=join(arrays.edge_executions, arrays.block_executions[pieces.block[inner]]),
        row=join(np.arange(arrays.n_edges), _NONE),
        source_piece=source_piece,
        target_piece=target_piece,
        callee_piece=callee_piece,
    )
