"""Numbers and calls of Linux that Python's own modules don't offer.

Runs in the controller. Knows no target: what is called with what is the callers' business. Flags are those that all
processors have alike; numbers of system calls are the architecture's.
"""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from typing import Final

from clew.address import Pid, Tid
from clew.binary.architectures.architecture import Architecture
from clew.binary.architectures.known import native_architecture

__all__ = [
    "AT_HWCAP2",
    "F_ADD_SEALS",
    "MADV_DONTDUMP",
    "MAP_ANONYMOUS",
    "MAP_FIXED",
    "MAP_FIXED_NOREPLACE",
    "MAP_NORESERVE",
    "MAP_PRIVATE",
    "MAP_SHARED",
    "MFD_ALLOW_SEALING",
    "MFD_CLOEXEC",
    "PROC_SUPER_MAGIC",
    "PROT_EXEC",
    "PROT_NONE",
    "PROT_READ",
    "PROT_WRITE",
    "allow_tracer",
    "become_subreaper",
    "execve",
    "file_system_type",
    "futex_wake",
    "give_back_memory",
    "keep_freed_memory",
    "number_of_call",
    "punch_hole",
    "queue_signal",
    "read_as_program",
    "send_to_thread",
    "string_array",
]

PROT_NONE: Final = 0
PROT_READ: Final = 1
PROT_WRITE: Final = 2
PROT_EXEC: Final = 4

MAP_SHARED: Final = 0x01
MAP_PRIVATE: Final = 0x02
MAP_ANONYMOUS: Final = 0x20
MAP_NORESERVE: Final = 0x4000
MAP_FIXED: Final = 0x10
MAP_FIXED_NOREPLACE: Final = 0x100000

MADV_DONTDUMP: Final = 16

MFD_CLOEXEC: Final = 1
MFD_ALLOW_SEALING: Final = 2

F_ADD_SEALS: Final = 1033

PROC_SUPER_MAGIC: Final = 0x9FA0

AT_HWCAP2: Final = 26

_FUTEX_WAKE: Final = 1
_FALLOC_FL_KEEP_SIZE_AND_PUNCH_HOLE: Final = 3
_STATFS_BYTES: Final = 120
_PR_SET_CHILD_SUBREAPER: Final = 36
_PR_SET_PTRACER: Final = 0x59616D61
_YAMA_DESCENDANTS: Final = "1"

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
libc.process_vm_readv.restype = ctypes.c_ssize_t
libc.fallocate.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_long, ctypes.c_long]
libc.execve.argtypes = [ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p]


@cache
def number_of_call(name: str, architecture: Architecture | None = None) -> int:
    """The number of a system call, by default on this machine. Raises OSError if there is none."""
    number = (architecture or native_architecture()).find_call(name)
    if number is None:
        raise OSError(errno.ENOSYS, f"{name}: {os.strerror(errno.ENOSYS)}")
    return number


@cache
def _number_of_futex() -> ctypes.c_long:
    # Threads of the target wait for it.
    return ctypes.c_long(number_of_call("futex"))


def send_to_thread(pid: Pid, tid: Tid, number: int) -> None:
    """Send a signal to one thread of a process. Raises OSError."""
    if libc.tgkill(ctypes.c_int(pid), ctypes.c_int(tid), ctypes.c_int(number)) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def futex_wake(address: int, count: int = 0x7FFFFFFF) -> int:
    """Wake up to `count` waiters of the shared futex at `address` of this process; how many there were."""
    woken: int = libc.syscall(
        _number_of_futex(),
        ctypes.c_void_p(address),
        ctypes.c_long(_FUTEX_WAKE),
        ctypes.c_long(count),
        None,
    )
    return max(woken, 0)


def queue_signal(pid: Pid, tid: Tid, number: int, info: bytes) -> None:
    """Send thread `tid` of process `pid` a signal with this siginfo_t, whose si_code is negative. Raises OSError."""
    result = libc.syscall(
        ctypes.c_long(number_of_call("rt_tgsigqueueinfo")),
        ctypes.c_long(pid),
        ctypes.c_long(tid),
        ctypes.c_long(number),
        ctypes.c_char_p(info),
    )
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))


def read_as_program(pid: int, address: int, size_bytes: int) -> bytes:
    """Memory of a process from an address on: as much as the process itself could read, which protection may end.

    /proc/PID/mem gives more: to who may trace a process nothing is protected (mm/memory.c, FOLL_FORCE).
    """
    if size_bytes <= 0 or not 0 <= address < 1 << 63:
        return b""
    buffer = ctypes.create_string_buffer(size_bytes)
    # A piece that lies on two pages is read whole or not at all (process_vm_readv(2)).
    end = address + size_bytes
    edges = [address, *range((address // mmap.PAGESIZE + 1) * mmap.PAGESIZE, end, mmap.PAGESIZE), end]
    remote = (ctypes.c_size_t * (2 * (len(edges) - 1)))()
    for index, (start, stop) in enumerate(pairwise(edges)):
        remote[2 * index : 2 * index + 2] = [start, stop - start]
    local = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), size_bytes)
    n_read: int = libc.process_vm_readv(
        ctypes.c_int(pid), local, ctypes.c_ulong(1), remote, ctypes.c_ulong(len(edges) - 1), ctypes.c_ulong(0)
    )
    return buffer.raw[: max(n_read, 0)]


def punch_hole(fd: int, offset: int, size_bytes: int) -> None:
    """Make a part of a file zeros that take no room. Raises OSError."""
    if libc.fallocate(fd, _FALLOC_FL_KEEP_SIZE_AND_PUNCH_HOLE, offset, size_bytes) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))


def file_system_type(fd: int) -> int:
    """The type of the file system that a descriptor is of, such as PROC_SUPER_MAGIC (statfs(2)). Raises OSError."""
    facts = ctypes.create_string_buffer(_STATFS_BYTES)
    if libc.fstatfs(ctypes.c_int(fd), facts) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return int.from_bytes(facts.raw[:8], "little")


def become_subreaper() -> None:
    """Have orphaned descendants become children of this process (prctl(2), PR_SET_CHILD_SUBREAPER)."""
    libc.prctl(ctypes.c_long(_PR_SET_CHILD_SUBREAPER), ctypes.c_long(1), None, None, None)


def allow_tracer(pid: int) -> bool:
    """Let process `pid` trace this one, or with 0 nobody any more, where the kernel lets only processes trace that are
    above it (prctl(2), PR_SET_PTRACER); whether it does."""
    try:
        with open("/proc/sys/kernel/yama/ptrace_scope", encoding="ascii") as file:
            is_restricted = file.read().strip() == _YAMA_DESCENDANTS
    except OSError:
        return False
    if is_restricted:
        libc.prctl(ctypes.c_long(_PR_SET_PTRACER), ctypes.c_ulong(pid), None, None, None)
    return is_restricted


def string_array(strings: Sequence[bytes]) -> ctypes.Array[ctypes.c_char_p]:
    """`strings` as a C array that ends with a null pointer."""
    return (ctypes.c_char_p * (len(strings) + 1))(*strings, None)


def execve(
    path: bytes, arguments: ctypes.Array[ctypes.c_char_p], environment: ctypes.Array[ctypes.c_char_p]
) -> OSError:
    """Become another program, with exactly these strings. Returns only if that failed, and then why."""
    libc.execve(path, ctypes.addressof(arguments), ctypes.addressof(environment))
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


def keep_freed_memory() -> None:
    """Have the C library reuse what this process frees, up to 64 MiB a piece, instead of giving it back to the kernel.

    Whole arrays that come and go would be mapped, cleared and faulted in each time.
    """
    mmap_threshold, trim_threshold = -3, -1  # malloc.h: M_MMAP_THRESHOLD, M_TRIM_THRESHOLD
    mallopt = getattr(libc, "mallopt", None)  # musl has none
    if mallopt is not None:
        mallopt(mmap_threshold, 64 << 20)
        mallopt(trim_threshold, 256 << 20)


def give_back_memory() -> None:
    """Give what this process has freed back to the kernel."""
    trim = getattr(libc, "malloc_trim", None)  # musl has none
    if trim is not None:
        trim(0)
