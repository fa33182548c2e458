"""What has become of calls that did not return: they were left by a jump or an exception, or ended with their thread,
or their program was replaced by another one.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Final

from clew.sessions.call_logs import CallEnd

if TYPE_CHECKING:
    from clew.recording.sinks.sink import Identity
    from clew.sessions.api_calls import ApiCall

__all__ = ["CallEnds"]

_Key = tuple[int, int, int, int]
"""Process, thread, when it began and where the stack was: no two calls of a function have the same."""


_CLOCKS_NS: Final = 1_000_000
"""So far apart are the clocks of captures and of processes at most; no program executes another one so soon."""


class CallEnds:
    """Tells which calls are over, out of what was recorded of them.

    `begun` gives the processes that have begun, and the programs that they executed: each with when, in ns since 1970.
    """

    def __init__(self, begun: Callable[[], list[tuple[Identity, int]]]) -> None:
        self._begun = begun
        self._executing: dict[tuple[int, int], dict[_Key, ApiCall]] = {}
        """By process and thread: calls that are over if another program is executed."""

    def start_again(self) -> CallEnds:
        """The same from the beginning."""
        return CallEnds(self._begun)

    def settle(self, told: Iterable[tuple[CallEnd, ApiCall]], *, is_last: bool) -> list[ApiCall]:
        """Those of some calls that are over, and of earlier ones; `is_last`: of all that are left."""
        calls: list[ApiCall] = []
        left: dict[_Key, ApiCall] = {}
        for end, call in told:
            key, waiting = _key(call), self._executing.get((call.pid, call.tid))
            if end == CallEnd.EXECUTING:
                self._executing.setdefault((call.pid, call.tid), {})[key] = call
                continue
            if waiting is not None:
                waiting.pop(key, None)
            if end == CallEnd.LEFT:
                left[key] = call
            elif end == CallEnd.RETURNED:
                calls.append(call)
        if left:
            # Of one that ended with its process the thread ran on meanwhile, and came back from it after all; or it
            # ended when it had just said so.
            for call in calls:
                left.pop(_key(call), None)
        calls += left.values()
        for who, waiting in list(self._executing.items()):
            is_replaced = self._has_executed(who, waiting)
            if is_last or is_replaced:
                del self._executing[who]
                calls += map(_replaced, waiting.values()) if is_replaced else waiting.values()
        return sorted(calls, key=lambda call: call.end_ns)

    def _has_executed(self, who: tuple[int, int], waiting: dict[_Key, ApiCall]) -> bool:
        """Whether another program began behind calls of a process and thread that wait for that: in that process, or,
        of a child that vfork made, which was in its parent's memory until then, in its own."""
        told_ns = max((call.end_ns for call in waiting.values()), default=0)
        return any(int(one.pid) in who and start_ns > told_ns - _CLOCKS_NS for one, start_ns in self._begun())


def _replaced(call: ApiCall) -> ApiCall:
    """A call of a program in whose place another one is by now; it took as long as that one's code ran."""
    result = call.function.unreturned
    return call if result is None else call._replace(result=result, duration_ns=call.end_ns - call.time_ns)


def _key(call: ApiCall) -> _Key:
    return call.pid, call.tid, call.time_ns, call.frame or 0
