"""Which thread a target means by a number: in a pid namespace of its own it knows itself by another than the kernel's
first one.

Runs in the controller. The target's number is not trusted: what counts is who maps the shared memory.
"""

from __future__ import annotations

import contextlib

from clew.address import Pid, Tid
from clew.process.attachable import tid_inside
from clew.process.identity import iter_sharers, iter_threads, maps_region
from clew.process.shared_memory import SharedMemory

__all__ = ["find_process", "find_task"]


def find_process(shared: SharedMemory) -> Pid | None:
    """A process that maps a region."""
    return next(iter_sharers(shared), None)


def find_task(shared: SharedMemory, pid: Pid, number: int) -> Tid | None:
    """The thread that calls itself `number` and maps a region: of process `pid`, or of one that shares its memory."""
    if maps_region(Tid(number), shared) and tid_inside(Tid(number)) == number:
        return Tid(number)
    for process in (pid, *iter_sharers(shared)):
        with contextlib.suppress(OSError):
            for tid in iter_threads(process):
                if tid_inside(tid) == number and maps_region(tid, shared):
                    return tid
    return None
