"""Calls as a tree of text, thread by thread: under each those that were made within it, with how long they took.

Runs in the controller. Calls are told when they return, the inner ones first: all is kept until the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from clew.dataclass import dataclass

if TYPE_CHECKING:
    from clew.sessions.api_calls import ApiCall

__all__ = ["CallTree"]

_INDENT: Final = "  "
_NO_TIME: Final = " " * 12
_UNITS: Final = ((1_000, "us"), (1_000_000, "ms"), (1_000_000_000, "s "))


@dataclass(frozen=True)
class _Node:
    """A call that was over at `end_ns`, and began where the stack was at `frame`; `lines` tell it, `within` are those
    that it made."""

    end_ns: int
    duration_ns: int | None
    frame: int
    lines: Sequence[str]
    within: Sequence[_Node]


class CallTree:
    """The calls of all threads so far."""

    def __init__(self) -> None:
        self._threads: dict[tuple[int, int], list[_Node]] = {}

    def add(self, call: ApiCall, lines: Sequence[str]) -> None:
        """One more call, told by some lines: those of a thread in the order in which they were over."""
        nodes = self._threads.setdefault((call.pid, call.tid), [])
        start = end = len(nodes)
        # What was over since it began was made within it.
        while start and call.frame is not None and nodes[start - 1].end_ns > call.time_ns:
            start -= 1
        if call.duration_ns is None:
            # It was left at some time: what began where its own frame was came later.
            end = next((at for at in range(start, end) if nodes[at].frame >= (call.frame or 0)), end)
        node = _Node(call.end_ns, call.duration_ns, call.frame or 0, lines, nodes[start:end])
        nodes[start:end] = [node]

    def lines(self) -> Iterator[str]:
        """All of them, in the order in which they began: how long each took, the thread, and what it was."""
        for (_, tid), nodes in self._threads.items():
            waiting = [(0, one) for one in reversed(nodes)]
            while waiting:
                depth, node = waiting.pop()
                first, *others = node.lines
                yield f"{_time_text(node.duration_ns)} [{tid:>7}] | {_INDENT * depth}{first}"
                for other in others:
                    yield f"{_NO_TIME}           | {_INDENT * depth}{other}"
                waiting += [(depth + 1, one) for one in reversed(node.within)]


def _time_text(duration_ns: int | None) -> str:
    """A time in twelve characters, with the unit that it needs."""
    if duration_ns is None:
        return _NO_TIME
    size, unit = next((one for one in _UNITS if duration_ns < 1000 * one[0]), _UNITS[-1])
    return f"{duration_ns / size:9.3f} {unit}"
