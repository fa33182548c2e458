"""Which thread a target means by a number: in a pid namespace of its own it knows itself by another than the kernel's
first one.

Runs in the controller. The target's number is not trusted: what counts is who maps the shared memory.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from clew.address import Pid, Tid
from clew.process.attachable import tid_inside
from clew.process.identity import iter_processes, iter_sharers, iter_threads, maps_region, read_status_line
from clew.process.shared_memory import SharedMemory

__all__ = ["find_child_inside", "find_group_inside", "find_process", "find_task"]


def find_process(shared: SharedMemory) -> Pid | None:
    """A process that maps a region."""
    return next(iter_sharers(shared), None)


def find_child_inside(parent: Pid, number: int) -> Pid | None:
    """The child of process `parent` that has `number` where its parent is; it may have ended."""
    level = len(_numbers_of(Tid(parent)))
    with contextlib.suppress(OSError):
        for task in Path(f"/proc/{parent}/task").iterdir():
            for child in map(int, (task / "children").read_text().split()):
                if _numbers_of(Tid(child))[level - 1 : level] == [number]:
                    return Pid(child)
    return None


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


def find_group_inside(asker: Pid, number: int) -> Pid | None:
    """The process of the thread that process `asker` calls `number`, in its pid namespace.

    Raises OSError if the asker is gone.
    """
    level = len(_numbers_of(Tid(asker)))
    space = os.readlink(f"/proc/{asker}/ns/pid")
    for pid in iter_processes():
        with contextlib.suppress(OSError):
            numbers = _numbers_of(Tid(pid))
            # Of one deeper down it is not told whether it is below this one; its number here is.
            if len(numbers) < level or (len(numbers) == level and os.readlink(f"/proc/{pid}/ns/pid") != space):
                continue
            if any(_numbers_of(tid)[level - 1 : level] == [number] for tid in iter_threads(pid)):
                return pid
    return None


def _numbers_of(tid: Tid) -> list[int]:
    """What a thread is called in each pid namespace, from this process' own to its own."""
    return [int(word) for word in (read_status_line(tid, "NSpid") or "").split()]
