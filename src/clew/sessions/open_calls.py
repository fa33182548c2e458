"""Calls of a session's threads that are to be told of when they return.

Runs in the controller, under the lock of the places. A call is known by where the stack pointer is when its function
begins, just below where it is when it has returned: so other stacks, exceptions and longjmp make no difference. What
never returns stays until another call of the function begins at the same place, or there are too many.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Final

from clew.address import Pid, Tid
from clew.capture.interpreter import Value
from clew.dataclass import dataclass

if TYPE_CHECKING:
    from clew.recording.following.followed import FollowedProcess
    from clew.recording.following.stopped_thread import StoppedThread

__all__ = ["WORD_BYTES", "OpenCall", "OpenCalls"]

WORD_BYTES: Final = 8
"""Of a return address, which is on the stack until the call has returned."""

MAX_OPEN_CALLS: Final = 4096
"""Of a thread."""


@dataclass(frozen=True)
class OpenCall:
    """A call of `function`, numbered `call`, whose return some `probes` are to be told of.

    `kept` is what these had kept when it began, at `began_ns` of CLOCK_MONOTONIC.
    """

    return_pc: int
    stack_pointer: int
    probes: list[int]
    call: int
    function: int
    kept: dict[int, tuple[Value, ...]]
    began_ns: int


_Calls = dict[tuple[int, int], OpenCall]


class OpenCalls:
    """Those of one session."""

    def __init__(self) -> None:
        self._by_thread: dict[tuple[Pid, Tid], _Calls] = {}
        self._inherited: dict[Pid, _Calls] = {}
        self._numbers = count(1)
        self.n_forgotten = 0
        """Calls that were forgotten, for there were too many."""

    def open(
        self,
        followed: FollowedProcess,
        thread: StoppedThread,
        return_pc: int,
        probes: list[int],
        kept: dict[int, tuple[Value, ...]],
        began_ns: int,
    ) -> int:
        """Note a call in front of whose first instruction a thread is; its number."""
        calls = self._of(followed.pid, thread.tid)
        number = next(self._numbers)
        key = int(thread.stack_pointer), int(thread.pc)
        # The latest last, also where one was left otherwise whose place it takes.
        calls.pop(key, None)
        calls[key] = OpenCall(return_pc, key[0], probes, number, key[1], kept, began_ns)
        if len(calls) > MAX_OPEN_CALLS:
            del calls[next(iter(calls))]
            self.n_forgotten += 1
        return number

    def close(self, followed: FollowedProcess, thread: StoppedThread) -> OpenCall | None:
        """A call that a thread has come back from, the latest of them, if there is one; it is open no more."""
        if not self._by_thread and not self._inherited:
            return None
        calls = self._of(followed.pid, thread.tid)
        below, pc = int(thread.stack_pointer) - WORD_BYTES, int(thread.pc)
        for key, call in reversed(calls.items()):
            if key[0] == below and call.return_pc == pc:
                return calls.pop(key)
        return None

    def inherit(self, child: Pid, parent: Pid) -> None:
        """A child begins, which returns from what a thread of its parent's has called; which one the stack tells."""
        calls = {key: call for (pid, _), own in self._by_thread.items() if pid == parent for key, call in own.items()}
        if calls:
            self._inherited[child] = calls

    def return_places(self, pid: Pid) -> set[int]:
        """Where calls of a process return to."""
        own = [calls for (owner, _), calls in self._by_thread.items() if owner == pid]
        return {call.return_pc for calls in (*own, self._inherited.get(pid, {})) for call in calls.values()}

    def _of(self, pid: Pid, tid: Tid) -> _Calls:
        if (pid, tid) not in self._by_thread:
            # A child begins with one thread.
            self._by_thread[pid, tid] = self._inherited.pop(pid, {}) if int(pid) == int(tid) else {}
        return self._by_thread[pid, tid]
