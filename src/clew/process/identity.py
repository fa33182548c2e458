"""Who a process is, as /proc tells: its parent, its thread group, whether it speaks through a certain shared memory.

Runs in the controller.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from clew.address import Pid, Tid
from clew.process.maps import Mapping, parse_maps, read_maps
from clew.process.shared_memory import MEMFD_NAME, SharedFile, SharedMemory

__all__ = ["find_ended_children", "is_mapped", "is_traced_here", "maps_region", "read_group", "read_parent"]


def maps_region(pid: Pid | Tid, shared: SharedMemory) -> bool:
    """Whether a process or thread maps this very region: it may say who it is, but could say anything."""
    if os.path.exists(f"/proc/self/task/{pid}"):
        return False  # clew itself maps it, too.
    inode = os.fstat(shared.fd).st_ino
    with contextlib.suppress(OSError):
        return any(
            mapping.inode == inode and mapping.file_offset == shared.offset and _is_memfd(mapping)
            for mapping in read_maps(Pid(pid))
        )
    return False


def is_mapped(file: SharedFile, offset: int | None = None) -> bool:
    """Whether any process but this one maps any part of a shared file; with `offset`, the region there."""
    inode = os.fstat(file.fd).st_ino
    for name in os.listdir("/proc"):
        if name.isdecimal() and int(name) != os.getpid():
            with contextlib.suppress(OSError):
                text = Path(f"/proc/{name}/maps").read_bytes()
                # Most have none of ours, and need not be taken apart.
                if MEMFD_NAME.encode() in text and any(
                    one.inode == inode and _is_memfd(one) and offset in (None, one.file_offset)
                    for one in parse_maps(text)
                ):
                    return True
    return False


def find_ended_children() -> list[Pid]:
    """Children of this process that have ended and were not waited for."""
    found = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            for word in (task / "children").read_text().split():
                with contextlib.suppress(OSError):
                    if Path(f"/proc/{word}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"Z":
                        found.append(Pid(int(word)))
    return found


def read_parent(pid: Pid) -> Pid:
    """The parent of a process; 0 if that is outside of what can be seen. Raises OSError if it is gone."""
    return Pid(_read_number(pid, "PPid"))


def is_traced_here(pid: Pid) -> bool:
    """Whether this process is the tracer of `pid`."""
    with contextlib.suppress(OSError):
        return _read_number(pid, "TracerPid") == os.getpid()
    return False


def read_group(tid: Tid) -> Pid:
    """The process of a thread. Raises OSError if it is gone."""
    return Pid(_read_number(tid, "Tgid"))


def _is_memfd(mapping: Mapping) -> bool:
    return mapping.path.startswith(f"/memfd:{MEMFD_NAME}")


def _read_number(pid: int, wanted: str) -> int:
    return next((int(value) for name, value in _status_fields(pid) if name == wanted), 0)


def _status_fields(pid: int) -> Iterator[tuple[str, str]]:
    with open(f"/proc/{pid}/status", encoding="utf-8", errors="replace") as file:
        for line in file:
            name, _, value = line.partition(":")
            yield name, value.strip()
