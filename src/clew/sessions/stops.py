"""Threads that wait at a function, or behind a call of one, until somebody was told.

Runs in the controller, in any thread.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from clew.address import Pid
from clew.capture.interpreter import Value
from clew.dataclass import dataclass

if TYPE_CHECKING:
    from clew.capture.form import Form
    from clew.recording.following.holding import Holding
    from clew.recording.following.stopped_thread import StoppedThread

__all__ = ["Stop"]


@dataclass(frozen=True)
class Stop:
    """A thread that waits at a function, or behind a call of it (`is_return`).

    `probes` are those who want to know, by their numbers, with what each takes there; `call` numbers the calls of a
    session, from 1 on, 0 for one whose return nobody wants to know of; `function` is the address of what was called.
    Of one that has returned, `kept` is what probes had kept when it began, at `began_ns` of CLOCK_MONOTONIC. `then` is
    what is to be told of the thread as well: of several calls that return at once the latest comes first.
    """

    holding: Holding
    thread: StoppedThread
    probes: dict[int, Form]
    is_return: bool
    call: int
    function: int
    kept: dict[int, tuple[Value, ...]]
    began_ns: int | None
    then: Stop | None

    def __init__(
        self,
        holding: Holding,
        thread: StoppedThread,
        probes: dict[int, Form],
        *,
        is_return: bool,
        call: int,
        function: int,
        kept: dict[int, tuple[Value, ...]] | None = None,
        began_ns: int | None = None,
        then: Stop | None = None,
    ) -> None:
        # The thread waits meanwhile: a third of the time that it takes for any fields.
        own = self.__dict__
        own["holding"], own["thread"], own["probes"] = holding, thread, probes
        own["is_return"], own["call"], own["function"] = is_return, call, function
        own["kept"], own["began_ns"], own["then"] = kept or {}, began_ns, then

    def all(self) -> Iterator[Stop]:
        """It, and what is to be told as well."""
        one: Stop | None = self
        while one is not None:
            yield one
            one = one.then

    @property
    def pid(self) -> Pid:
        return self.holding.followed.pid

    @property
    def memory_pid(self) -> Pid:
        """Whose files in /proc show its memory."""
        return self.holding.followed.memory_pid

    def let_go(self, registers: list[int] | None = None) -> None:
        """Let the thread go on, with other registers if some are given, unless it has gone on already."""
        self.holding.let_go(self.thread.tid, registers)
