"""Two traces compared: which code ran in one of them only, and what did not run as often in both.

Runs in the controller. Whole columns at a time, of both traces at once. What differs is described by
`clew.analysis.comparison.rows`. Their order, where it is known, is `clew.analysis.comparison.order`'s.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any, Final

import numpy as np

from clew.analysis.comparison.content import SIDES, mix, number_keys
from clew.analysis.comparison.flow import compare_edges, compare_pieces
from clew.analysis.comparison.matching import match_files, match_processes
from clew.analysis.comparison.pieces import cut_blocks
from clew.analysis.comparison.places import Code, lay_out
from clew.analysis.tables.arrays import TraceArrays
from clew.errors import UsageError
from clew.store.columns import Array
from clew.store.trace import Trace

__all__ = ["SUBJECTS", "Functions", "TraceDiff"]

Row = dict[str, Any]

SUBJECTS: Final = ("function", "block", "edge")
"""What the differences can be told of."""


class TraceDiff:
    """What differs between the traces `a` and `b`, or between those at paths.

    Code is compared by image and offset, in pairs of processes that executed the same, in their order; with `merge`
    by image and offset alone, added up over processes. Blocks of both are cut where those of the other begin and end,
    so all numbers of blocks here are of such pieces. If one of the traces is of mode coverage, only which code ran is
    compared (`is_counted` is false): each block and each edge that ran counts 1.

    Raises ClewError where one can't be read.
    """

    def __init__(self, a: Trace | str | os.PathLike[str], b: Trace | str | os.PathLike[str], *, merge: bool = False):
        self.traces = (_open(a), _open(b))
        self.is_merged = merge
        self.is_counted = all(trace.mode != "coverage" for trace in self.traces)
        self.processes = match_processes(*self.traces)
        self.files = match_files(*self.traces, self.processes)
        of_trace = (self.processes.of_a, self.files.of_a), (self.processes.of_b, self.files.of_b)
        code_a, code_b = (Code(TraceArrays(trace), *of) for trace, of in zip(self.traces, of_trace, strict=True))
        self.code = (code_a, code_b)
        self.spaces, places_a, places_b = lay_out(code_a, code_b, self.processes, self.files, merge=merge)
        self.places = (places_a, places_b)
        n, pieces_a, pieces_b = cut_blocks(code_a, code_b, self.spaces, places_a, places_b)
        self.pieces = (pieces_a, pieces_b)
        self.blocks = compare_pieces(
            n, ((code_a, places_a, pieces_a), (code_b, places_b, pieces_b)), self.spaces, is_counted=self.is_counted
        )
        self.edges, self.flows = compare_edges(
            ((code_a, pieces_a), (code_b, pieces_b)), self.blocks, is_counted=self.is_counted
        )

    @property
    def is_equal(self) -> bool:
        """Whether nothing differs, and nothing ran that can't be compared."""
        return not any((side.differs | (side.ran.any(axis=0) & ~side.is_comparable)).any() for side in self._both())

    @property
    def differs(self) -> bool:
        """Whether something that can be compared differs."""
        return any(bool(side.differs.any()) for side in self._both())

    def _both(self) -> tuple[Any, Any]:
        return self.blocks, self.edges

    def rows(self, by: str = "function", n: int = 20) -> list[Row]:
        """What ran in both and not as often: the `n` rows with the greatest `difference`, as `to_dict` has them.

        `by` is `function`, `block` or `edge`.
        """
        from clew.analysis.comparison.rows import list_differing

        return list_differing(self, by, n)

    def rows_only_in(self, side: str, by: str = "function", n: int = 20) -> list[Row]:
        """What ran only in `a` or `b`: the `n` rows with the most instructions there; of edges, executions."""
        from clew.analysis.comparison.rows import list_alone

        return list_alone(self, SIDES.index(side), by, n)

    @property
    def is_ordered(self) -> bool:
        """Whether the order of both is known: they are of mode full."""
        return all(trace.mode == "full" for trace in self.traces)

    def order(self, partings: int = 5, *, start: str | None = None, only: str | None = None) -> list[Row]:
        """Where threads part and where they meet again, as `to_dict` has it in `order`; [] if not `is_ordered`.

        Of each pair of threads at most so many partings. `start` is a place, `[IMAGE!]SYMBOL[:N]` or
        `IMAGE+0xOFFSET[:N]`, at the execution N of which both are begun, or `0` for their first instruction; by default
        it is `main`, or where the program's file is entered. With `only`, a glob, just code of these images is
        compared, else all but that of the C library, since what it does hangs on where data lies.
        Raises ClewError where a path can't be read, or nothing is at `start`.
        """
        from clew.analysis.comparison.order import compare_order
        from clew.analysis.comparison.order_rows import describe_order

        if not self.is_ordered:
            if start is not None or only is not None:
                raise UsageError("the order is known only of traces of mode full; record with --mode full")
            return []
        return describe_order(self, compare_order(self, partings, start, only))

    def to_dict(
        self, by: str = "function", n: int = 20, partings: int = 5, *, start: str | None = None, only: str | None = None
    ) -> Row:
        """All that `clew diff --json` prints: see docs/diff.md. Addresses are hexadecimal strings.

        `partings`, `start` and `only` are as for `order`; the order is not looked at with 0 `partings`.
        """
        from clew.analysis.comparison.summary import summarize_diff

        order = self.order(partings, start=start, only=only) if partings else []
        is_parted = any(threads["end"] != "together" or threads["partings"] for threads in order)
        summary = summarize_diff(self)
        return {
            **summary,
            "equal": summary["equal"] and not is_parted,
            "order": order if self.is_ordered and partings else None,
            "by": by,
            "only_in_a": self.rows_only_in("a", by, n),
            "only_in_b": self.rows_only_in("b", by, n),
            "rows": self.rows(by, n),
        }

    @cached_property
    def place(self) -> tuple[Array, Array]:
        """Of each piece, by its number, its space and its place."""
        spaces, starts = np.zeros(len(self.blocks.is_comparable), np.int64), np.zeros_like(self.blocks.first[0])
        for places, pieces in zip(self.places, self.pieces, strict=True):
            spaces[pieces.number] = places.space[pieces.block]
            starts[pieces.number] = pieces.start
        return spaces, starts

    @cached_property
    def functions(self) -> Functions:
        """The functions that the pieces are of."""
        return Functions(self)


class Functions:
    """Functions of the code of two traces, by symbol or unwind table; without either, all code of a file is one.

    `of_piece` has the number of each piece's function. By function: `piece` is the number of its first piece; `blocks`,
    `executions` and `instructions` have a row for A and one for B; `only` have of what ran only there; `difference` is
    by how many instructions its pieces differ, added up.
    """

    def __init__(self, diff: TraceDiff) -> None:
        space, start = diff.place
        offset = np.full(len(space), -1)
        for code, pieces, first in zip(diff.code, diff.pieces, diff.blocks.first, strict=True):
            known = (first >= 0) & (offset < 0)
            offset[known] = code.distances("function_offset")[pieces.block[first[known]]]
        is_function = diff.spaces.is_function[space]
        offset[is_function | (diff.spaces.file[space] < 0)] = -1
        owner = np.where(is_function, space, -1)
        key = mix(diff.spaces.pair[space], diff.spaces.file[space], owner, offset)
        n, (self.of_piece,) = number_keys(key)
        self.offset = np.full(n, -1)
        self.offset[self.of_piece] = offset
        self.piece = np.zeros(n, np.int64)
        order = np.argsort(start, kind="stable")[::-1]
        self.piece[self.of_piece[order]] = order
        counted = diff.blocks.is_comparable
        ran = diff.blocks.ran & counted
        alone = np.stack([diff.blocks.is_only_in(side) for side in (0, 1)])
        self.executions, self.instructions, self.blocks = (
            self._add_up(n, values) for values in (diff.blocks.executions * ran, diff.blocks.instructions * ran, ran)
        )
        self.only_executions, self.only_instructions, self.only_blocks = (
            self._add_up(n, values)
            for values in (diff.blocks.executions * alone, diff.blocks.instructions * alone, alone)
        )
        apart = np.abs(diff.blocks.instructions[0] - diff.blocks.instructions[1]) * counted
        self.difference: Array = self._add_up(n, apart[np.newaxis])[0]

    def _add_up(self, n: int, values: Array) -> Array:
        """Sums by function of what pieces have, row by row."""
        sums = np.zeros((len(values), n), np.int64)
        for total, of_pieces in zip(sums, values, strict=True):
            np.add.at(total, self.of_piece, of_pieces.astype(np.int64))
        return sums


def _open(trace: Trace | str | os.PathLike[str]) -> Trace:
    return trace if isinstance(trace, Trace) else Trace(trace)
