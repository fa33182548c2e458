"""A thread that is about to execute a program, watched until it has.

Runs in the controller, in one thread. The watched thread is seized for that long only; its signals reach it as they
come.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from clew.address import Pid, Tid
from clew.dataclass import dataclass
from clew.process import ptrace
from clew.process.identity import is_traced_here
from clew.process.stopped_process import StoppedProcess

__all__ = ["Ended", "Execution", "stopped_at_start"]


@dataclass(frozen=True)
class Ended:
    """The thread ended instead; `status` is waitpid's, of its process if `is_process`; None: somebody else has it."""

    status: int | None
    is_process: bool


class Execution:
    """One call of execve under way, by thread `tid` of process `pid`.

    A thread that is not its process' first takes over the first one's number with the new program (execve(2)).
    """

    def __init__(self, tid: Tid, pid: Pid) -> None:
        """Seize the thread. Raises OSError if that is not allowed, or if it has a tracer."""
        self.tid = tid
        self.pid = pid
        self._is_interrupted = False
        ptrace.seize(Pid(tid), ptrace.OPTION_TRACEEXEC | ptrace.OPTION_TRACESYSGOOD)

    def poll(self) -> bool | Ended:
        """True when the new program is there, stopped inside execve; False while it is not."""
        is_gone = True
        for pid in dict.fromkeys((Pid(self.tid), self.pid)):
            with contextlib.suppress(ChildProcessError):
                status = ptrace.try_wait(pid)
                is_gone = False
                if status is None:
                    continue
                if not os.WIFSTOPPED(status):
                    return Ended(status, pid == self.pid)
                if status >> 16 == ptrace.EVENT_EXEC:
                    return True
                _go_on(pid, status)
        # Another thread's execve may have ended it, of a program that is not followed. While the process' first thread
        # is traced from here it is this one, with its new number.
        is_gone = is_gone or not (os.path.exists(f"/proc/{self.pid}/task/{self.tid}") or is_traced_here(self.pid))
        return Ended(None, is_process=False) if is_gone else False

    def let_go(self) -> bool | Ended:
        """Let the thread go: the call has failed. False: it has not stopped for that yet, ask again."""
        with contextlib.suppress(ProcessLookupError):
            if not self._is_interrupted:
                self._is_interrupted = True
                ptrace.interrupt(Pid(self.tid))
        try:
            while (status := ptrace.try_wait(Pid(self.tid))) is not None:
                if not os.WIFSTOPPED(status):
                    return Ended(status, Pid(self.tid) == self.pid)
                if status >> 16 == ptrace.EVENT_STOP:
                    ptrace.detach(Pid(self.tid))
                    return True
                ptrace.cont(Pid(self.tid), 0 if status >> 16 else os.WSTOPSIG(status))
        except ChildProcessError:
            return True
        except ProcessLookupError:
            # Killed: its end is told when it is waited for.
            return False
        return False


def _go_on(pid: Pid, status: int) -> None:
    stop_signal = os.WSTOPSIG(status)
    with contextlib.suppress(ProcessLookupError):
        if status >> 16 == ptrace.EVENT_STOP:
            if stop_signal in ptrace.GROUP_STOP_SIGNALS:
                ptrace.listen(pid)
            else:
                ptrace.cont(pid)
        else:
            ptrace.cont(pid, 0 if status >> 16 else stop_signal)


@contextlib.contextmanager
def stopped_at_start(pid: Pid) -> Iterator[StoppedProcess]:
    """A traced process that is stopped inside execve, at the start of its new program; it is let go at the end.

    Whatever is raised, it goes on as it would have. Raises TargetGoneError, OSError if it is gone.
    """
    process = StoppedProcess(pid)
    try:
        # Inside execve still: its result is to come. The end of the call is where the registers are final.
        process.check_width()
        process.run_to_syscall_stop()
        process.registers = process.processor.get_registers(pid)
        native = process.registers.copy()
        try:
            yield process
        except BaseException:
            process.registers = native
            raise
    finally:
        with contextlib.suppress(OSError):
            process.detach()
