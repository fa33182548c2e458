"""Who a process is, as /proc tells: its parent, its thread group, whether it speaks through a certain shared memory.

Runs in the controller.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import signal
import threading
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from clew.address import Pid, RemoteAddress, Tid
from clew.process.maps import Mapping, parse_maps, read_maps
from clew.process.processors.chosen import native_processor
from clew.process.shared_layout import PAGE_BYTES
from clew.process.shared_memory import MEMFD_NAME, SharedFile, SharedMemory

__all__ = [
    "AREA_BYTES",
    "find_ended_children",
    "find_holder",
    "find_holders",
    "find_sharer_of_memory",
    "has_exited",
    "is_ending",
    "is_inside",
    "is_kernel_worker",
    "is_mapped",
    "is_shared_memory",
    "is_traced_here",
    "iter_processes",
    "iter_sharers",
    "iter_threads",
    "maps_file",
    "maps_region",
    "read_group",
    "read_parent",
    "read_signals",
    "read_stat",
    "read_status",
    "read_status_line",
]

AREA_BYTES: Final = 1 << 40
"""More than a runtime takes up from its base on."""

_PF_EXITING = 0x4
_PF_IO_WORKER, _PF_USER_WORKER = 0x10, 0x4000
_FIRST_WITH_USER_WORKERS: Final = (6, 4)
"""The kernel in which the second flag got its meaning; it has another in old ones."""

_MEMFD_PREFIX: Final = f"/memfd:{MEMFD_NAME} ".encode()
_SIGKILL_BIT: Final = 1 << signal.SIGKILL - 1


def is_shared_memory(mapping: Mapping) -> bool:
    """Whether a mapping is one of the runtime's shared memory, by its name: any file may have that."""
    return mapping.path.startswith(_MEMFD_PREFIX.decode())


def is_inside(mapping: Mapping) -> bool:
    """Whether a mapping lies where the runtime is put: shared memory that is elsewhere is a recorder's own, which has
    it mapped for what it records."""
    return any(0 <= mapping.start - base < AREA_BYTES for base in native_processor().bases)


def maps_region(pid: Pid | Tid, shared: SharedMemory) -> bool:
    """Whether a process or thread maps this very region: it may say who it is, but could say anything.

    The first page of the file alone is every process' anchor.
    """
    if os.path.exists(f"/proc/self/task/{pid}"):
        return False  # clew itself maps it, too.
    return _maps(pid, os.fstat(shared.fd).st_ino, shared.offset)


def maps_file(pid: Pid, file: SharedFile) -> bool:
    """Whether a process maps any part of a shared file, as who speaks through it does, and what that made."""
    if file.fd < 0:
        return False
    inode = os.fstat(file.fd).st_ino
    with contextlib.suppress(OSError):
        return any(one.inode == inode and is_shared_memory(one) for one in parse_maps(_read_lines_of_memfds(pid)))
    return False


def _maps(pid: Pid | Tid, inode: int, offset: int) -> bool:
    with contextlib.suppress(OSError):
        return any(
            mapping.inode == inode
            and mapping.file_offset == offset
            and mapping.end - mapping.start > PAGE_BYTES
            and is_shared_memory(mapping)
            for mapping in parse_maps(_read_lines_of_memfds(pid))
        )
    return False


def _read_lines_of_memfds(pid: Pid | Tid) -> bytes:
    """Those lines of the mappings of a process that may be of the runtime's shared memory. Raises OSError.

    This is asked for at each birth and each execve, and taking a line apart is most of what it costs.
    """
    lines = Path(f"/proc/{pid}/maps").read_bytes().split(b"\n")
    return b"\n".join([line for line in lines if _MEMFD_PREFIX in line])


def is_mapped(file: SharedFile, offset: int | None = None) -> bool:
    """Whether any process but this one maps any part of a shared file; with `offset`, the region there.

    Raises OSError if that can't be told.
    """
    inode = os.fstat(file.fd).st_ino
    for pid in iter_processes():
        if pid != os.getpid():
            try:
                text = _read_lines_of_memfds(pid)
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
            if any(
                one.inode == inode and offset in (None, one.file_offset) and is_shared_memory(one)
                for one in parse_maps(text)
            ):
                return True
    return False


def find_holder(mappings: Sequence[Mapping]) -> Pid | None:
    """The process that has the shared memory open which the runtime of a process has mapped, by its `mappings`: the
    clew that records. None if that was killed, or there is no runtime."""
    return next(find_holders(mappings), None)


def find_holders(mappings: Sequence[Mapping]) -> Iterator[Pid]:
    """All of these, as they are found: with probes there may be several sessions, each in a process of its own."""
    # What a clew has left that was killed may be there beside that of another one.
    ours = {(one.inode, one.device) for one in mappings if is_shared_memory(one) and is_inside(one)}
    if not ours:
        return
    for folder in Path("/proc").glob("[0-9]*/fd"):
        try:
            is_one = any((found.st_ino, found.st_dev) in ours for found in _iter_open(folder))
        except OSError:
            continue
        if is_one:
            yield Pid(int(folder.parent.name))


def _iter_open(folder: Path) -> Iterator[os.stat_result]:
    for link in folder.iterdir():
        # It may be closed meanwhile.
        with contextlib.suppress(FileNotFoundError):
            yield link.stat()


def iter_sharers(shared: SharedMemory) -> Iterator[Pid]:
    """The processes that map this very region, as they are found."""
    return (pid for pid in iter_processes() if maps_region(pid, shared))


def find_sharer_of_memory(pid: Pid, mapped_at: RemoteAddress) -> Pid | None:
    """Another process that maps the region which `pid` has mapped at an address, as a child of vfork does."""
    ours = next(
        (mapping for mapping in read_maps(pid) if mapping.start == mapped_at and is_shared_memory(mapping)), None
    )
    if ours is None:
        return None
    others = (other for other in iter_processes() if other not in (pid, os.getpid()))
    return next((other for other in others if _maps(other, ours.inode, ours.file_offset)), None)


def iter_processes() -> Iterator[Pid]:
    """All that there are."""
    return (Pid(int(name)) for name in os.listdir("/proc") if name.isdecimal())


def find_ended_children() -> list[Pid]:
    """Children of this process that have ended and were not waited for."""
    children: list[Pid] = []
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(OSError):
            children += [Pid(int(word)) for word in (task / "children").read_text().split()]
    return [child for child in children if read_stat(child)[:1] == [b"Z"]]


def read_stat(pid: Pid | Tid | str) -> list[bytes]:
    """The fields of /proc/PID/stat from the state on (proc_pid_stat(5)); empty if the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    except OSError:
        return []


def iter_threads(pid: Pid) -> Iterator[Tid]:
    """The threads of a process that run its code; not those by which the kernel works for it, as io_uring does.

    Raises OSError if the process is gone.
    """
    return (tid for tid in map(Tid, map(int, os.listdir(f"/proc/{pid}/task"))) if not is_kernel_worker(pid, tid))


def is_kernel_worker(pid: Pid, tid: Tid) -> bool:
    """Whether a task of a process runs in the kernel alone (io_uring, vhost): it takes no signal, and never stops."""
    fields = read_stat(f"{pid}/task/{tid}")
    return bool(fields and int(fields[6]) & _worker_flags())


@cache
def _worker_flags() -> int:
    version = tuple(int(word) for word in re.findall(r"\d+", os.uname().release)[:2])
    return _PF_IO_WORKER | (_PF_USER_WORKER if version >= _FIRST_WITH_USER_WORKERS else 0)


def read_cpu_seconds(pid: Pid) -> float | None:
    """User and system time of a process, and of the children that it waited for; None if it is gone."""
    fields = read_stat(pid)
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK") if fields else None


def read_parent(pid: Pid) -> Pid:
    """The parent of a process; 0 if that is outside of what can be seen. Raises OSError if it is gone."""
    return Pid(_read_number(pid, "PPid"))


def is_traced_here(pid: Pid | Tid) -> bool:
    """Whether the calling thread is the tracer of `pid`: to the kernel a tracer is a thread."""
    with contextlib.suppress(OSError):
        return _read_number(pid, "TracerPid") == threading.get_native_id()
    return False


def read_group(tid: Tid) -> Pid:
    """The process of a thread. Raises OSError if it is gone."""
    return Pid(_read_number(tid, "Tgid"))


def read_status(pid: Pid | Tid | str) -> dict[str, str] | None:
    """The lines of /proc/PID/status by name (proc_pid_status(5)); None if the process is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text(errors="replace").splitlines()
    except OSError:
        return None
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def has_exited(pid: Pid | Tid | str) -> bool:
    """Whether a process or thread has ended: it is gone, or waits to be waited for."""
    fields = read_stat(pid)
    return not fields or fields[0] in (b"Z", b"X")


def is_ending(pid: Pid | Tid) -> bool:
    """Whether a process has ended, or was killed and is about to: it runs no instruction of its own any more."""
    status = read_status(pid)
    if status is None or status.get("State", "")[:1] in ("Z", "X"):
        return True
    pending = int(status.get("SigPnd", "0"), 16) | int(status.get("ShdPnd", "0"), 16)
    if pending & _SIGKILL_BIT:
        return True
    # The signal was taken, and the kernel is at it.
    fields = read_stat(pid)
    return not fields or bool(int(fields[6]) & _PF_EXITING)


def read_status_line(pid: Pid | Tid | str, name: str) -> str | None:
    """One line of /proc/PID/status, without its name; None if the process is gone, empty if there is no such line."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(errors="replace")
    except OSError:
        return None
    return text.partition(f"\n{name}:")[2].partition("\n")[0].strip()


def read_signals(pid: Pid | Tid | str, name: str) -> int:
    """A set of signals as /proc/PID/status has it, such as `SigBlk`; none if the process is gone."""
    return int(read_status_line(pid, name) or "0", 16)


def _read_number(pid: Pid | Tid, name: str) -> int:
    line = read_status_line(pid, name)
    if line is None:
        raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
    return int(line or "0")
