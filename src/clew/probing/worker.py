"""The task in a probed process that is the runtime's: made by one of its threads, and from then on its own.

Runs in the controller. It shares the process' memory and nothing else (clone(2), CLONE_VM alone): it is no thread of
it, sends no signal when it ends, and its descriptors are copies, which it closes. So whatever has to be done in the
process, such as mapping memory, is done in this task: no thread of the program waits for that.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from clew.address import Pid, RemoteAddress, Tid
from clew.errors import AttachError, TargetGoneError
from clew.process import ptrace
from clew.process.attachable import has_own_namespace
from clew.process.stopped_process import StoppedProcess
from clew.process.thread_state import give_back, read_state
from clew.process.waiting import wait_stop

__all__ = ["clone_worker", "reap_worker", "stopped_worker"]

_CLONE_VM: Final = 0x100
_WALL, _WNOHANG = 0x40000000, 1
_OPTIONS: Final = ptrace.OPTION_TRACESYSGOOD


def clone_worker(process: StoppedProcess) -> StoppedProcess:
    """Have a stopped thread, which is traced with OPTION_TRACECLONE, make the task; it is stopped before it runs at
    all. Raises RemoteCallError if that is refused."""
    made = process.call("clone", _CLONE_VM)
    task = _seen_from_here(process, made)
    wait_stop(task)
    worker = StoppedProcess(task)
    ptrace.set_options(task, _OPTIONS)
    return worker


@contextlib.contextmanager
def stopped_worker(task: Pid, call_at: RemoteAddress) -> Iterator[StoppedProcess]:
    """The running task, stopped meanwhile: system calls can be made in it, at the instruction `call_at`, from where it
    goes on should this process be killed. Raises TargetGoneError if it is gone."""
    try:
        ptrace.seize(task, _OPTIONS)
        ptrace.interrupt(task)
        status = wait_stop(task)
    except (ProcessLookupError, ChildProcessError) as error:
        raise TargetGoneError(task, f"process {task}: what serves the probes is gone") from error
    if not os.WIFSTOPPED(status):
        raise TargetGoneError(task, f"process {task}: what serves the probes has ended", status)
    # All signals are blocked in it, so nothing else stops it.
    worker = StoppedProcess(task)
    worker.call_at(call_at)
    state = read_state(worker, Tid(task))
    try:
        yield worker
    finally:
        with contextlib.suppress(OSError):
            give_back(state)
        worker.close()
        with contextlib.suppress(ProcessLookupError):
            ptrace.detach(task)


def reap_worker(process: StoppedProcess, task: int) -> None:
    """Have a stopped thread of the program wait for the task, which has ended: nobody else would."""
    process.call("wait4", task, 0, _WNOHANG | _WALL, 0)


def _seen_from_here(process: StoppedProcess, number: int) -> Pid:
    """What the task is called here, that is `number` in the process' own pid namespace."""
    if not has_own_namespace(process.pid):
        return Pid(number)
    children = Path(f"/proc/{process.task}/task/{process.task}/children").read_text().split()
    for child in map(int, children):
        status = Path(f"/proc/{child}/status").read_text()
        inside = next((line.split() for line in status.splitlines() if line.startswith("NSpid:")), [])
        if inside and int(inside[-1]) == number:
            return Pid(child)
    raise AttachError(process.pid, f"process {process.pid}: what it has made is not to be found")
