"""Trees of calls, made of entries and returns: of each thread all calls, or of all threads the paths of calls.

Pure. The time of a call is its own (self) but for what calls within it took, which is told whether these are shown or
not. A call that was left took as long as until that showed: no longer than the one outside of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from clew.dataclass import dataclass, field
from clew.export.probes.event_types import EventBatch
from clew.export.probes.open_calls import CallEnd, CallStep, CallSteps, Thread

__all__ = ["Call", "CallPath", "CallPaths", "CallTrees", "TreeChoice", "walk", "walk_paths"]


@dataclass(frozen=True)
class TreeChoice:
    """What of the calls is asked for: those that took as long as `min_duration_ns`, of paths all their calls together;
    those that are no deeper than `depth`, from 1 on; those of function `within` and what they call."""

    min_duration_ns: int = 0
    depth: int | None = None
    within: str | None = None


@dataclass
class Call:
    """A call; `calls` are those that it made, in their order, as far as they were asked for."""

    function: str
    start_ns: int
    total_ns: int = 0
    self_ns: int = 0
    end: CallEnd = CallEnd.OPEN
    calls: list[Call] = field(default_factory=list)


@dataclass
class CallPath:
    """Calls of one function that were made on one path: how many of them returned or not, how long all of them took,
    the shortest and the longest; and the paths on from here."""

    function: str
    count: int = 0
    n_left: int = 0
    total_ns: int = 0
    self_ns: int = 0
    least_ns: int = 0
    most_ns: int = 0
    calls: dict[str, CallPath] = field(default_factory=dict)

    def add(self, total_ns: int, self_ns: int, end: CallEnd) -> None:
        """One more call."""
        self.least_ns = min(self.least_ns, total_ns) if self.count else total_ns
        self.most_ns = max(self.most_ns, total_ns)
        self.count += 1
        self.n_left += end is not CallEnd.RETURNED
        self.total_ns += total_ns
        self.self_ns += self_ns


class _Frame:
    """An open call: when it began, how long calls within it took, and what it is shown as: None if it is not."""

    __slots__ = ("inner_ns", "is_outermost", "shown", "start_ns")

    def __init__(self, start_ns: int, shown: Call | CallPath | None, is_outermost: bool) -> None:
        self.start_ns, self.shown, self.is_outermost = start_ns, shown, is_outermost
        self.inner_ns = 0


class _Ended(NamedTuple):
    """A call that is over, and shown. `parent`: what the call around it is shown as, if it is."""

    thread: Thread
    shown: Call | CallPath
    parent: Call | CallPath | None
    total_ns: int
    self_ns: int
    end: CallEnd


class _Thread:
    """The open calls of a thread, and how many of them are of `within`, or inside."""

    def __init__(self) -> None:
        self.frames: list[_Frame] = []
        self.depth = 0


class _Follower:
    """Follows the calls of all threads: what they come to is for others to say."""

    def __init__(self, choice: TreeChoice) -> None:
        self._choice = choice
        self._steps = CallSteps()
        self._threads: dict[Thread, _Thread] = {}

    @property
    def n_unmatched(self) -> int:
        """Returns whose entry nobody told."""
        return self._steps.n_unmatched

    def write(self, batch: EventBatch) -> None:
        """Take events. Raises ValueError if a table is not of its type."""
        self._follow(self._steps.add(batch))

    def end_thread(self, pid: int, tid: int) -> None:
        """Nothing more comes of a thread: its open calls are over."""
        self._follow(self._steps.end_thread(pid, tid))
        self._threads.pop((pid, tid), None)

    def close(self) -> None:
        """Nothing more comes at all."""
        self._follow(self._steps.close())
        self._threads.clear()

    def _follow(self, steps: Iterable[CallStep]) -> None:
        for step in steps:
            thread = self._threads.get(step.thread)
            if thread is None:
                thread = self._threads[step.thread] = _Thread()
            if step.end is None:
                self._enter(thread, step)
            else:
                self._leave(thread, step, step.end)

    def _enter(self, thread: _Thread, step: CallStep) -> None:
        outer = thread.frames[-1] if thread.frames else None
        is_inside = thread.depth > 0 or self._choice.within in (None, step.function)
        thread.depth += is_inside
        is_shown = is_inside and (self._choice.depth is None or thread.depth <= self._choice.depth)
        is_outermost = thread.depth == 1
        parent = None if outer is None or is_outermost else outer.shown
        shown = self._show(step, parent) if is_shown else None
        thread.frames.append(_Frame(step.time_ns, shown, is_outermost))

    def _leave(self, thread: _Thread, step: CallStep, end: CallEnd) -> None:
        frame = thread.frames.pop()
        thread.depth -= thread.depth > 0
        total = step.time_ns - frame.start_ns
        outer = thread.frames[-1] if thread.frames else None
        if outer is not None:
            outer.inner_ns += total
        if frame.shown is not None:
            parent = None if outer is None or frame.is_outermost else outer.shown
            self._end(_Ended(step.thread, frame.shown, parent, total, total - frame.inner_ns, end))

    def _show(self, step: CallStep, parent: Call | CallPath | None) -> Call | CallPath:
        raise NotImplementedError

    def _end(self, over: _Ended) -> None:
        raise NotImplementedError


class CallTrees(_Follower):
    """All calls, thread by thread: `threads` are the outermost ones in their order, when they are over.

    What is kept grows with the calls that are asked for: a call that is too short is let go of when it is over.
    """

    def __init__(self, choice: TreeChoice | None = None) -> None:
        super().__init__(choice or TreeChoice())
        self.threads: dict[Thread, list[Call]] = {}

    def _show(self, step: CallStep, parent: Call | CallPath | None) -> Call:
        return Call(step.function, step.time_ns)

    def _end(self, over: _Ended) -> None:
        call = over.shown
        assert isinstance(call, Call)
        if over.total_ns < self._choice.min_duration_ns:
            return
        call.total_ns, call.self_ns, call.end = over.total_ns, over.self_ns, over.end
        siblings = over.parent.calls if isinstance(over.parent, Call) else self.threads.setdefault(over.thread, [])
        siblings.append(call)


class CallPaths(_Follower):
    """The calls of all threads by their paths: `root.calls` are those that begin one.

    What is kept grows with the paths that there are, not with calls.
    """

    def __init__(self, choice: TreeChoice | None = None) -> None:
        super().__init__(choice or TreeChoice())
        self.root = CallPath("")

    def close(self) -> None:
        """Nothing more comes at all: paths that took too little time are let go of."""
        super().close()
        waiting = [self.root]
        while waiting:
            path = waiting.pop()
            path.calls = {
                name: one
                for name, one in path.calls.items()
                if one.count and one.total_ns >= self._choice.min_duration_ns
            }
            waiting += path.calls.values()

    def _show(self, step: CallStep, parent: Call | CallPath | None) -> CallPath:
        outer = parent if isinstance(parent, CallPath) else self.root
        path = outer.calls.get(step.function)
        if path is None:
            path = outer.calls[step.function] = CallPath(step.function)
        return path

    def _end(self, over: _Ended) -> None:
        assert isinstance(over.shown, CallPath)
        over.shown.add(over.total_ns, over.self_ns, over.end)


def walk(roots: Iterable[Call]) -> Iterator[tuple[int, Call]]:
    """Calls with their depth, from 0 on, each in front of those that it made."""
    waiting: list[tuple[int, Call]] = [(0, one) for one in reversed([*roots])]
    while waiting:
        depth, call = waiting.pop()
        yield depth, call
        waiting += [(depth + 1, one) for one in reversed(call.calls)]


def walk_paths(root: CallPath) -> Iterator[tuple[int, CallPath]]:
    """All paths but the root with their depth, from 0 on: of one function's those that took longest come first."""

    def listed(path: CallPath) -> list[CallPath]:
        return sorted(path.calls.values(), key=lambda one: (one.total_ns, one.function))

    waiting = [(0, one) for one in listed(root)]
    while waiting:
        depth, path = waiting.pop()
        yield depth, path
        waiting += [(depth + 1, one) for one in listed(path)]
