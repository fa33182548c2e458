"""What of a trace ran most: functions, blocks, edges, lines, images or threads, of its processes or of all together.

Runs in the controller. A trace of several processes is gone through in pieces, so that no more of it is in memory than
its largest process needs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Final

from clew.analysis.ranking.merged import MergedFunctions, MergedImages
from clew.analysis.ranking.ranking import Ranking, Row
from clew.analysis.ranking.rankings import BlockRanking, EdgeRanking, FunctionRanking, ImageRanking, ThreadRanking
from clew.analysis.tables.arrays import TraceArrays
from clew.analysis.tables.split import iter_by_pid
from clew.store.excerpt import excerpt_of_pid
from clew.store.trace import Trace

__all__ = ["MERGEABLE", "RANKINGS", "Ranked", "rank"]

_RANKINGS: Final[dict[str, type[Ranking]]] = {
    "function": FunctionRanking,
    "block": BlockRanking,
    "edge": EdgeRanking,
    "image": ImageRanking,
    "thread": ThreadRanking,
}
_MERGED: Final[dict[str, type[Ranking]]] = {"function": MergedFunctions, "image": MergedImages}

MERGEABLE: Final = ("function", "line", "image")
"""What can be added up over processes."""


@dataclass(frozen=True)
class Ranked:
    """A ranking's rows; of blocks and lines also which images code ran in, as rows of the images."""

    rows: list[Row]
    image_rows: set[int] = field(default_factory=set)


def rank(trace: Trace, by: str, n: int, *, pid: int | None = None, merge: bool = False) -> Ranked:
    """The `n` highest rows by `by`, a key of RANKINGS; with `pid` of what that process ran.

    With `merge` of all processes together, which are told by their number, `processes`, in place of `pid`.
    """
    if pid is not None:
        pieces: Iterable[TraceArrays] = [TraceArrays(excerpt_of_pid(trace, pid))]
    else:
        # Threads are few beside blocks and counts: cutting the trace would cost more than looking at them.
        pieces = [TraceArrays(trace)] if by == "thread" else _Pieces(trace)
    return _rank(by, trace, pieces, n, merge)


def _rank(by: str, trace: Trace, pieces: Iterable[TraceArrays], n: int, merge: bool) -> Ranked:
    if by == "line":
        ranking = _make_line_ranking(trace, pieces, n, merge)
    else:
        ranking = (_MERGED if merge else _RANKINGS)[by](n)
    for arrays in pieces:
        ranking.add(arrays)
    return Ranked(ranking.rows(), ranking.image_rows)


def _make_line_ranking(trace: Trace, pieces: Iterable[TraceArrays], n: int, merge: bool) -> Ranking:
    # What reads debugging information is loaded only where it is used.
    from clew.analysis.ranking.code_lines import CodeLines
    from clew.analysis.ranking.hot_lines import LineRanking, MergedLines

    lines = CodeLines(trace)
    for arrays in pieces:
        lines.note(arrays)
    lines.look_up()
    return (MergedLines if merge else LineRanking)(n, lines)


def _rank_one(by: str, arrays: TraceArrays, n: int) -> list[Row]:
    return _rank(by, arrays.trace.whole, [arrays], n, merge=False).rows


RANKINGS: Final[dict[str, Callable[[TraceArrays, int], list[Row]]]] = {
    by: partial(_rank_one, by) for by in ("function", "block", "edge", "line", "image", "thread")
}
"""The `n` highest rows of a trace that is looked at as a whole, by what is ranked."""


class _Pieces:
    """The pieces of a trace, each time anew; but if it is one, its columns are kept."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._only: TraceArrays | None = None

    def __iter__(self) -> Iterator[TraceArrays]:
        if self._only is not None:
            yield self._only
            return
        for piece in iter_by_pid(self._trace):
            arrays = TraceArrays(piece)
            if piece is self._trace:
                self._only = arrays
            yield arrays
