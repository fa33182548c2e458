"""The threads of a session's target, as they are at one moment.

Runs in the controller.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from clew.address import Pid, Tid
from clew.dataclass import dataclass
from clew.errors import ControlError
from clew.process.identity import iter_threads
from clew.recording.control.commands import Control
from clew.sessions.backtrace import Frame

if TYPE_CHECKING:
    import drgn

__all__ = ["SessionThread", "read_name", "read_threads"]


@dataclass(frozen=True)
class SessionThread:
    """A thread, as it was when it was asked for.

    `state` is `stopped`, `waiting` (in a system call, which `system_call` names) or `running`; `registers` are those of
    a stopped one by name, without a sign, in front of the instruction it would execute next; None of others.
    """

    tid: int
    name: str
    state: str
    system_call: str | None
    registers: Mapping[str, int] | None
    _unwind: Callable[[Mapping[str, int]], list[Frame]]

    def backtrace(self) -> list[Frame]:
        """The open calls of a stopped thread, from the innermost on; empty of others."""
        return [] if self.registers is None else self._unwind(self.registers)

    def drgn_stack(self, program: drgn.Program) -> drgn.StackTrace:
        """The open calls of a stopped thread with their variables, as drgn has them; `Session.drgn_program` gives
        `program`.

        Raises ControlError for a thread that is not stopped.
        """
        from clew.sessions.drgn_program import trace_stack

        if self.registers is None:
            raise ControlError(f"thread {self.tid} is not stopped")
        return trace_stack(program, self.registers)

    def __repr__(self) -> str:
        return f"<thread {self.tid} {self.name!r}, {self.state}>"


def read_threads(
    control: Control, pid: Pid, unwind: Callable[[Mapping[str, int]], list[Frame]]
) -> Iterator[list[SessionThread] | None]:
    """The threads of process `pid`. Raises ControlError if it is not followed."""
    followed = control.find({"pid": pid})
    holding = control.processes.holdings.of(followed)
    threads = []
    with contextlib.suppress(OSError):
        for task in iter_threads(Pid(followed.memory_pid)):
            tid = followed.number_of(task)
            thread = holding.stopped.get(tid)
            call = None if thread is not None else holding.calls.find(task)
            named = None if call is None or call < 0 else holding.processor.architecture.name_wait(call)
            state = "stopped" if thread is not None else "waiting" if named is not None else "running"
            registers = None if thread is None else thread.by_name
            threads.append(SessionThread(tid, read_name(followed.memory_pid, task), state, named, registers, unwind))
    yield sorted(threads, key=lambda thread: thread.tid)


def read_name(pid: Pid, task: Tid) -> str:
    """What the kernel calls a thread; empty if it is gone."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/task/{task}/comm").read_text(errors="replace").rstrip("\n")
    return ""
