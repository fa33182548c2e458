"""A thread that is about to execute a program: it is followed into that, which gets the probes before it runs.

Runs in the controller, in the thread that owns the session. The thread waits in the runtime, at a probe at `execve`; it
is traced from there on until it has become the program, or could not.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import Final

from clew.address import Pid, Tid
from clew.errors import StuckError, TargetGoneError
from clew.process import ptrace
from clew.process.linux import number_of_call
from clew.process.processors.chosen import native_processor, processor_of
from clew.process.stopped_process import StoppedProcess
from clew.process.waiting import wait_stop

__all__ = ["EXECUTING_FUNCTIONS", "begin_following", "follow_execution"]

EXECUTING_FUNCTIONS: Final = ("execve", "execveat", "fexecve")
"""Of C libraries: all others come to one of these."""
_OPTIONS: Final = ptrace.OPTION_TRACEEXEC | ptrace.OPTION_TRACESYSGOOD


def begin_following(tid: Tid) -> bool:
    """Trace a thread that waits; whether that is possible. It is stopped then."""
    try:
        ptrace.seize(tid, _OPTIONS)
        ptrace.interrupt(tid)
        wait_stop(tid)
    except (OSError, StuckError):
        return False
    return True


def follow_execution(pid: Pid, tid: Tid, signal_mask: int | None = None) -> StoppedProcess | None:
    """Let the traced thread run until it has executed a program; that process, stopped before its first instruction. It
    will have these signals blocked, None: those that it has blocked. None: it could not execute, and goes on without a
    tracer; or it is gone."""
    calls = {number_of_call(name, native_processor().architecture) for name in ("execve", "execveat")}
    is_in_call = False
    task: Pid | Tid = tid
    while True:
        with contextlib.suppress(ProcessLookupError):
            ptrace.resume_to_syscall(task)
        try:
            status = wait_stop(task)
        except ChildProcessError:
            if task == pid:
                return None
            # A thread that executes a program goes on under its process' number.
            task = pid
            continue
        except StuckError:
            return None
        if not os.WIFSTOPPED(status):
            if task == pid:
                return None
            task = pid
            continue
        number, event = os.WSTOPSIG(status), status >> 16
        if event == ptrace.EVENT_EXEC:
            return _at_start(pid, signal_mask)
        if number == ptrace.SYSCALL_STOP_SIGNAL:
            call = processor_of(task).get_registers(task).call_number
            if is_in_call:
                ptrace.detach(task)
                return None
            is_in_call = call in calls
        elif event == 0 and number != signal.SIGTRAP:
            ptrace.detach(task, number)
            return None


def _at_start(pid: Pid, signal_mask: int | None) -> StoppedProcess | None:
    """The process inside execve still, whose result is to come."""
    try:
        process = StoppedProcess(pid, signal_mask)
        process.check_width()
        process.run_to_syscall_stop()
        process.registers = process.processor.get_registers(pid)
    except (TargetGoneError, OSError):
        return None
    return process
