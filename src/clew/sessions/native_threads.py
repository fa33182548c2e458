"""Which threads of a session are followed; the others run natively.

Runs in the controller, in the caller's threads and one of its own.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from clew.address import Pid, Tid
from clew.dataclass import dataclass
from clew.errors import ControlError
from clew.sessions.choice import EVERYBODY, Choice
from clew.sessions.threads import read_name

if TYPE_CHECKING:
    from clew.recording.control.commands import Control
    from clew.sessions.target import SessionTarget

__all__ = ["NativeThreads"]

LOOK_SECONDS: Final = 0.1
"""How often it is looked for threads that are new, or have another name, and for programs that processes execute."""


@dataclass(frozen=True)
class _Thread:
    pid: Pid
    slot: int
    tid: int
    name: str
    is_followed: bool


class NativeThreads:
    """Of the session of `target`. `fail` takes what a choice raised."""

    def __init__(self, target: SessionTarget, fail: Callable[[BaseException], None]) -> None:
        self._target, self._fail = target, fail
        self.choice = EVERYBODY
        self._looker: threading.Thread | None = None
        self._is_over = threading.Event()
        self._lock = threading.Lock()

    def choose(self, choice: Choice) -> None:
        """Have those followed that are chosen, and the others run natively. Raises ControlError, and what the choice
        raises."""
        with self._lock:
            if choice is EVERYBODY and self.choice is EVERYBODY:
                return
            self.choice = choice
            self._look()
        if self._looker is None:
            self._looker = threading.Thread(target=self._go_on_looking, name="clew-native", daemon=True)
            self._looker.start()

    def close(self) -> None:
        """Look no more."""
        self._is_over.set()
        if self._looker is not None:
            self._looker.join()

    def _go_on_looking(self) -> None:
        seconds = LOOK_SECONDS
        while not self._is_over.wait(seconds):
            # What has ended needs nothing.
            with self._lock, contextlib.suppress(ControlError):
                if self.choice is EVERYBODY:
                    continue
                started = time.monotonic()
                try:
                    self._look()
                except ControlError:
                    raise
                except BaseException as error:
                    self.choice = EVERYBODY
                    self._fail(error)
                # Of very many threads it takes a while: not more than a tenth of the time.
                seconds = max(LOOK_SECONDS, 10 * (time.monotonic() - started))

    def _look(self) -> None:
        """Have each thread followed, or not, as it is chosen."""
        choice = self.choice
        changes = [
            thread
            for thread in self._target.run(lambda control: self._find_threads(control, choice))
            if choice.includes(thread.pid, thread.tid, thread.name) != thread.is_followed
        ]
        if changes:
            self._target.run(lambda control: self._change(control, changes))

    def _find_threads(self, control: Control, choice: Choice) -> Iterator[list[_Thread]]:
        """All there are; those that begin in new processes and programs are followed, or not, from now on."""
        found = []
        for followed in control.processes.live:
            followed.shared.follow_new(choice.follows_new)
            drain = followed.drain
            for slot, tid, is_followed in [] if drain is None else drain.find_threads():
                name = read_name(Pid(followed.memory_pid), Tid(tid)) if choice.is_by_name else ""
                found.append(_Thread(followed.pid, slot, tid, name, is_followed))
        yield found

    def _change(self, control: Control, changes: list[_Thread]) -> Iterator[bool]:
        """Those are followed from now on that were not, and the other way round."""
        for followed in control.processes.live:
            drain, own = followed.drain, [thread for thread in changes if thread.pid == followed.pid]
            if drain is None or not own:
                continue
            for thread in own:
                drain.follow(thread.slot, thread.tid, is_followed=not thread.is_followed)
            followed.shared.give_directive()
            holding = control.processes.holdings.of(followed)
            if not holding.is_held:
                holding.bring_in()
        yield True
