"""Two traces compared in the order of execution, thread by thread: where they part, and where they meet again.

Runs in the controller. Traces of mode full only. Threads are those of the processes that are compared with each other,
in the order in which they were made. Paths are read piece by piece: memory does not grow with their length.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from clew.analysis.comparison.partings import End, Parting, Partings
from clew.analysis.comparison.sequences import PiecePlace, PieceSequence
from clew.analysis.comparison.starts import (
    BEGINNING,
    FoundStart,
    Start,
    find_images,
    find_own_start,
    find_start,
    parse_start,
)
from clew.analysis.order.path_code import ProcessCode, load_process_code
from clew.analysis.order.thread_path import PathPlace, ThreadPath
from clew.errors import UsageError
from clew.store.columns import Array, to_numpy

if TYPE_CHECKING:
    from clew.analysis.comparison.trace_diff import TraceDiff

__all__ = ["MAX_CALLS", "FoundParting", "OrderOfThreads", "SideOfParting", "compare_order"]

MAX_CALLS: Final = 32
"""So many open calls are told, the innermost."""

C_LIBRARY: Final = ("libc.so*", "libc-*.so", "ld-*.so*", "ld.so", "[[]vdso]")
"""Whose code is left out unless told otherwise: what it does hangs on where data lies and on the environment."""

_N_NEXT: Final = 4


@dataclass(frozen=True)
class SideOfParting:
    """Of a parting in one trace: how much was executed in front of it, the next pieces (rows) behind it, and the
    execution at which they meet again, None if they don't."""

    at: PathPlace
    next_pieces: list[int]
    met: PiecePlace | None


@dataclass(frozen=True)
class FoundParting:
    """Where two threads part. `last` is the last piece (a row of A's) that both ran, None at the beginning; `calls` are
    return addresses of the calls open in A there, the innermost first, at most MAX_CALLS of `n_calls`."""

    last: int | None
    calls: list[int]
    n_calls: int
    sides: tuple[SideOfParting, SideOfParting]


@dataclass(frozen=True)
class OrderOfThreads:
    """Two threads compared, or one that has no like. `start` is what both were begun at, in words, None if neither was
    compared; `starts` and `ends` are numbers of executions and instructions of both. `has_left_out` says whether code
    of the C library was left out.

    `end` is how the comparison ended: that of an `End`, `lost_in_a`, `lost_in_b`, or None if there was none. `last` is
    the last piece (a row of A's) that both ran in front of the end.
    """

    paths: tuple[ThreadPath | None, ThreadPath | None]
    start: str | None
    has_left_out: bool
    starts: tuple[PathPlace, PathPlace] | None
    partings: list[FoundParting]
    end: str | None
    ends: tuple[PathPlace, PathPlace] | None
    last: int | None


def compare_order(diff: TraceDiff, limit: int, start: str | None, images: str | None) -> list[OrderOfThreads]:
    """Compare the threads of two traces of mode full, each up to `limit` partings.

    It is begun at `start`, as `parse_start` has it, or BEGINNING; unless told at `main`. With `images`, a glob, only
    code of these is compared, else all but that of C_LIBRARY. Raises UsageError where nothing is at `start` in both.
    """
    comparison = _Comparison(diff, limit, start, images)
    found = list(comparison.compare())
    if comparison.start is not None and not any(threads.end for threads in found):
        raise UsageError(f"--from {start}: no thread came there in both traces, or not so often")
    return found


class _Comparison:
    def __init__(self, diff: TraceDiff, limit: int, start: str | None, images: str | None) -> None:
        self.diff, self.limit = diff, limit
        self.text = start
        self.start: Start | None = None if start in (None, BEGINNING) else parse_start(str(start))
        self.only = images
        self.is_compared = self._find_compared(images)

    def _find_compared(self, images: str | None) -> Array | None:
        """By number of a piece whether it is looked at, in either trace; None if all are."""
        is_compared = np.ones(len(self.diff.blocks.is_comparable), bool)
        for code, pieces in zip(self.diff.code, self.diff.pieces, strict=True):
            image = code.arrays.block_image[pieces.block]
            patterns = C_LIBRARY if images is None else (images,)
            is_named = np.logical_or.reduce([find_images(code, pattern) for pattern in patterns])[image]
            is_compared[pieces.number[is_named if images is None else ~is_named]] = False
        if is_compared.any():
            return None if is_compared.all() else is_compared
        if images is not None:
            raise UsageError(f"--only {images}: no code ran in an image of this name")
        return None

    def compare(self) -> Iterator[OrderOfThreads]:
        tables = [trace.read("processes", ["process_id", "executable"]) for trace in self.diff.traces]
        process_ids = [to_numpy(table["process_id"]).tolist() for table in tables]
        executables = [table["executable"].to_pylist() for table in tables]
        threads = [_list_threads(trace.paths.to_pylist()) for trace in self.diff.traces]
        for pair in self.diff.processes.pairs:
            of_pair = (pair.row_a, pair.row_b)
            codes: list[ProcessCode | None] = [None, None]
            rows: list[list[dict[str, Any]]] = [[], []]
            for side, row in enumerate(of_pair):
                if row is not None:
                    rows[side] = threads[side].get(process_ids[side][row], [])
                    if rows[side]:
                        codes[side] = load_process_code(self.diff.traces[side], process_ids[side][row])
            for index in range(max(map(len, rows))):
                paths: list[ThreadPath | None] = [None, None]
                for side, code in enumerate(codes):
                    if code is not None and index < len(rows[side]):
                        paths[side] = ThreadPath(self.diff.traces[side], rows[side][index], code)
                names = ["" if row is None else executables[side][row] for side, row in enumerate(of_pair)]
                yield self._compare_threads(paths[0], paths[1], (names[0], names[1]), is_first=index == 0)

    def _compare_threads(
        self, a: ThreadPath | None, b: ThreadPath | None, executables: tuple[str, str], *, is_first: bool
    ) -> OrderOfThreads:
        has_left_out = self.only is None and self.is_compared is not None
        if a is None or b is None:
            return OrderOfThreads((a, b), None, has_left_out, None, [], None, None, None)
        word, starts = self._find_starts(a, b, executables, is_first=is_first)
        if starts is None:
            return OrderOfThreads((a, b), None, has_left_out, None, [], None, None, None)
        both = tuple(
            PieceSequence(path, code, pieces, start.execution, start.skipped, self.is_compared)
            for path, code, pieces, start in zip((a, b), self.diff.code, self.diff.pieces, starts, strict=True)
        )
        sides = (both[0], both[1])
        for side in sides:
            side.ahead.front()
        begun = (sides[0].find_place(0), sides[1].find_place(0))
        comparison = Partings(sides[0].ahead, sides[1].ahead, self.limit)
        partings = [self._note(a, sides, parting) for parting in comparison]
        assert comparison.end is not None
        end = comparison.end.value
        for name, side in zip("ab", sides, strict=True):
            # Apart, it was looked for a meeting up to the loss.
            at_loss = comparison.end == End.APART or not len(side.ahead.front())
            if side.ahead.is_cut and at_loss and not end.startswith("lost"):
                end = f"lost_in_{name}"
        last = sides[0].find(sides[0].ahead.position - 1)
        ends = (sides[0].find_place(sides[0].ahead.position), sides[1].find_place(sides[1].ahead.position))
        return OrderOfThreads(
            (a, b), word, has_left_out, begun, partings, end, ends, None if last is None else last.piece
        )

    def _find_starts(
        self, a: ThreadPath, b: ThreadPath, executables: tuple[str, str], *, is_first: bool
    ) -> tuple[str | None, tuple[FoundStart, FoundStart] | None]:
        """Where both are begun, and how that is called."""
        both = list(zip((a, b), self.diff.code, self.diff.pieces, executables, strict=True))
        if self.start is not None:
            found = [find_start(self.start, path, code, pieces) for path, code, pieces, _ in both]
            return (None, None) if None in found else (self.text, (found[0], found[1]))  # type: ignore[return-value]
        beginning = (BEGINNING, (FoundStart(0, 0), FoundStart(0, 0)))
        if self.text == BEGINNING or not is_first:
            return beginning
        of_main = [
            find_start(Start(_literal(executable), "main", None, 0), path, code, pieces)
            for path, code, pieces, executable in both
        ]
        if of_main[0] is not None and of_main[1] is not None:
            return "main", (of_main[0], of_main[1])
        own = [find_own_start(path, code, executable) for path, code, _, executable in both]
        if own[0] is not None and own[1] is not None:
            return executables[0].rsplit("/", 1)[-1], (own[0], own[1])
        return beginning

    def _note(self, a: ThreadPath, sides: tuple[PieceSequence, PieceSequence], parting: Parting) -> FoundParting:
        last = sides[0].find(parting.a - 1)
        where = last or sides[0].find(parting.a)
        calls = np.zeros(0, np.uint64)
        if where is not None:
            calls = a.calls_at(PathPlace(where.execution, where.instruction))
        told = [
            _note_side(side, at, met)
            for side, at, met in zip(sides, (parting.a, parting.b), (parting.met_a, parting.met_b), strict=True)
        ]
        innermost = calls[::-1][:MAX_CALLS].tolist()
        return FoundParting(None if last is None else last.piece, innermost, len(calls), (told[0], told[1]))


def _note_side(side: PieceSequence, at: int, met: int | None) -> SideOfParting:
    # One more, since one that runs nothing of its own goes on where they meet.
    n = _N_NEXT if met is None else min(_N_NEXT, met - at + 1)
    return SideOfParting(side.find_place(at), side.find_pieces(at, n), None if met is None else side.find(met))


def _list_threads(rows: list[dict[str, Any]]) -> dict[int, list[dict[str, Any]]]:
    """The paths of each process, in the order in which their threads were made."""
    threads: dict[int, list[dict[str, Any]]] = {}
    # The kernel counts threads up, and begins anew; of two made at once either may be the first that runs.
    for row in sorted(rows, key=lambda row: (row["tid"] < row["pid"], row["tid"], row["start_ns"])):
        threads.setdefault(row["process_id"], []).append(row)
    return threads


def _literal(path: str) -> str:
    """A glob that is of this path alone."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in path)
