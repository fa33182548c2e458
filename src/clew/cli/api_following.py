"""How `clew api` follows what it shows the calls of: until that has ended, or is left.

Runs in the controller, in the main thread, which takes the signals to this process.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Final

from clew.address import Pid
from clew.cli.console import say

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.recording.session.interrupts import InterruptGuard
    from clew.sessions.api_calls import ApiCall, ApiLog
    from clew.sessions.session import Session

__all__ = ["follow_to_the_end"]

_LOOK_SECONDS: Final = 0.1
_TELL_AFTER_SECONDS: Final = 2.0
_CALLS_AT_ONCE: Final = 1000


def follow_to_the_end(
    session: Session,
    guard: InterruptGuard,
    log: ApiLog | None,
    take: Callable[[list[ApiCall]], None] | None,
    end: float | None,
    *,
    is_left: bool,
) -> int:
    """Have all calls taken until the program and all that descend from it have ended, or until `end` or a signal where
    it is left; the exit status of the program, as shells have it."""

    asked_before: int | None = None
    """How many signals had come when nothing was followed any more: one more, and nothing more is told."""

    def tell(*, is_last: bool = False) -> None:
        nonlocal asked_before
        calls = [] if log is None else log.read(is_last=is_last)
        for start in range(0, len(calls), _CALLS_AT_ONCE):
            if not session.is_following and asked_before is None:
                asked_before = guard.n_stop_requests
            if asked_before is not None and guard.n_stop_requests > asked_before:
                say(f"{len(calls) - start} calls are not told")
                return
            if take is not None:
                take(calls[start : start + _CALLS_AT_ONCE])

    alone_since, is_told = None, False
    if end is not None:
        # Telling may take longer than that.
        timer = threading.Timer(max(end - time.monotonic(), 0), session.detach, kwargs={"wait": False})
        timer.daemon = True
        timer.start()
    while not session.wait_for_all(_LOOK_SECONDS):
        guard.stop_with(Pid(session.pid))
        tell()
        if is_left or session.exit_code is None or not session.is_following:
            continue
        alone_since = alone_since or time.monotonic()
        if not is_told and time.monotonic() - alone_since > _TELL_AFTER_SECONDS:
            is_told = True
            ways = guard.ways_out
            until = f", until {' or '.join(ways)}" if ways else ""
            say(f"the program has ended; descendants of it still run and their calls are told{until}")
    # Calls that threads are in are told as they are left.
    session.detach()
    tell(is_last=True)
    status = session.exit_code
    if status is None:
        # It goes on: as `clew record` has it.
        return 0 if is_left else 143
    return status if status >= 0 else 128 - status
