"""Waiting for a task that this process traces: with a limit, a reason that can be told, and a way out.

Runs in the controller. A task that runs may never stop: it waits in the kernel, for a device or another process, or is
frozen. What such a task was to do is given up; it is let go when it stops after all, by `release_abandoned`.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Callable
from typing import Final

from clew.address import Pid, Tid
from clew.errors import StuckError
from clew.process import ptrace
from clew.process.freezer import is_frozen
from clew.process.identity import read_stat

__all__ = [
    "LIMIT_SECONDS",
    "MAX_PAUSE_SECONDS",
    "abandon",
    "explain_wait",
    "is_runnable",
    "reclaim",
    "release_abandoned",
    "wait_stop",
]

LIMIT_SECONDS: Final = 5.0
BUSY_SECONDS: Final = 20.0
"""A task that could run gets more: where many wait for a processor that takes seconds."""

SPIN_SECONDS: Final = 0.0002
MAX_PAUSE_SECONDS: Final = 0.002

_abandoned = threading.local()
"""By the thread that seized them, which is the only one that may speak of them."""


def wait_stop(
    task: ptrace.TaskId, *, limit_seconds: float | None = None, is_given_up: Callable[[], bool] = lambda: False
) -> int:
    """Wait until `task` stops or ends, by default up to LIMIT_SECONDS; the status as waitpid gives it.

    Raises StuckError, with the reason, if that takes too long or `is_given_up` says so, and ChildProcessError.
    """
    limit_seconds = LIMIT_SECONDS if limit_seconds is None else limit_seconds
    started = time.monotonic()
    pause_seconds = 0.0
    while (status := ptrace.try_wait(task)) is None:
        now = time.monotonic()
        if is_given_up():
            raise StuckError(task, f"process {task}: let go, as told, while {explain_wait(task)}")
        if now > started + limit_seconds and (now > started + BUSY_SECONDS or not is_runnable(task)):
            raise StuckError(task, f"process {task}: does not go on: {explain_wait(task)}")
        if now < started + SPIN_SECONDS:
            os.sched_yield()
        else:
            pause_seconds = min(pause_seconds * 2 or SPIN_SECONDS / 4, MAX_PAUSE_SECONDS)
            time.sleep(pause_seconds)
    return status


def is_runnable(task: ptrace.TaskId) -> bool:
    """Whether a thread runs, or would if it had a processor."""
    return read_stat(Pid(task))[:1] == [b"R"]


def explain_wait(task: ptrace.TaskId) -> str:
    """Why a thread does not stop, for people."""
    if is_frozen(task):
        return "it is frozen (its control group is; thaw that)"
    match read_stat(Pid(task))[:1]:
        case []:
            return "it has ended"
        case [b"R"]:
            return "it waits for a processor"
        case [b"D"]:
            return "it waits in the kernel (for a child that vfork started, or for a device or file system)"
    return "it waits in the kernel"


def abandon(task: ptrace.TaskId, give_back: Callable[[], object] = lambda: None) -> None:
    """Have a traced task that does not stop let go once it does, after `give_back` gave it its own state."""
    _of_this_thread()[task] = give_back


def reclaim(task: ptrace.TaskId) -> bool:
    """Take an abandoned task back, which is traced still; False if it is none."""
    return _of_this_thread().pop(task, None) is not None


def release_abandoned() -> None:
    """Let go of the abandoned tasks that have stopped by now. Never waits."""
    abandoned = _of_this_thread()
    for task, give_back in list(abandoned.items()):
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            status = ptrace.try_wait(task)
            if status is None:
                continue
            if os.WIFSTOPPED(status):
                number = os.WSTOPSIG(status)
                give_back()
                ptrace.detach(task, 0 if status >> 16 or number == ptrace.SYSCALL_STOP_SIGNAL else number)
        del abandoned[task]


def _of_this_thread() -> dict[ptrace.TaskId, Callable[[], object]]:
    abandoned: dict[Pid | Tid, Callable[[], object]] | None = getattr(_abandoned, "tasks", None)
    if abandoned is None:
        abandoned = _abandoned.tasks = {}
    return abandoned
