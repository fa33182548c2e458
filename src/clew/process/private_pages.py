"""Which pages of a process' code are its own, though they are a file's: somebody wrote there.

Runs in the controller, beside the process: it is not stopped.
"""

from __future__ import annotations

import array
import errno
import fcntl
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from clew.address import Pid
from clew.process.maps import Mapping, parse_maps
from clew.process.shared_layout import PAGE_BYTES

__all__ = ["PrivatePages"]

# include/uapi/linux/fs.h, since Linux 6.7.
_PAGEMAP_SCAN: Final = 0xC0606610
_SCAN_BYTES: Final = 96
_WALK_END_OFFSET: Final = 32
_PAGE_IS_FILE, _PAGE_IS_PRESENT, _PAGE_IS_SWAPPED = 1 << 2, 1 << 3, 1 << 4
_REGION_WORDS: Final = 3
_N_REGIONS: Final = 256

# Documentation/admin-guide/mm/pagemap.rst
_ENTRY_BYTES: Final = 8
_FILE, _SWAPPED, _PRESENT = 1 << 61, 1 << 62, 1 << 63
_ENTRIES_AT_ONCE: Final = 1 << 16


class PrivatePages:
    """Of process `pid`. To be closed. Raises OSError where the kernel does not let this process look, or it is gone."""

    _can_scan = True
    """Of the kernel, until it says otherwise."""

    def __init__(self, pid: Pid) -> None:
        self._pid = pid
        self._memory = -1
        self._pagemap = os.open(f"/proc/{pid}/pagemap", os.O_RDONLY | os.O_CLOEXEC)

    def close(self) -> None:
        """Let go of the process."""
        os.close(self._pagemap)
        if self._memory >= 0:
            os.close(self._memory)

    def read_code(self) -> list[Mapping]:
        """What of private files is mapped to be executed, and not to be written. Raises OSError."""
        lines = Path(f"/proc/{self._pid}/maps").read_bytes().split(b"\n")
        found = parse_maps(b"\n".join(line for line in lines if b"-xp " in line))
        return [one for one in found if one.inode]

    def iter_in(self, start: int, end: int) -> Iterator[int]:
        """The addresses of those from `start` up to `end`. Raises OSError."""
        if PrivatePages._can_scan:
            try:
                yield from self._scan(start, end)
                return
            except OSError as error:
                if error.errno != errno.ENOTTY:
                    raise
                PrivatePages._can_scan = False
        yield from self._look_through(start, end)

    def read(self, page: int) -> bytes:
        """What is in one. Raises OSError."""
        if self._memory < 0:
            self._memory = os.open(f"/proc/{self._pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        return os.pread(self._memory, PAGE_BYTES, page)

    def _scan(self, start: int, end: int) -> Iterator[int]:
        regions = array.array("Q", bytes(8 * _REGION_WORDS * _N_REGIONS))
        while start < end:
            where = (_SCAN_BYTES, 0, start, end, 0, regions.buffer_info()[0], _N_REGIONS, 0)
            which = (_PAGE_IS_FILE, _PAGE_IS_FILE, _PAGE_IS_PRESENT | _PAGE_IS_SWAPPED, _PAGE_IS_PRESENT)
            request = bytearray(struct.pack("<12Q", *where, *which))
            n_regions = fcntl.ioctl(self._pagemap, _PAGEMAP_SCAN, request)
            for n in range(n_regions):
                yield from range(regions[_REGION_WORDS * n], regions[_REGION_WORDS * n + 1], PAGE_BYTES)
            start = struct.unpack_from("<Q", request, _WALK_END_OFFSET)[0]

    def _look_through(self, start: int, end: int) -> Iterator[int]:
        while start < end:
            n_wanted = min((end - start) // PAGE_BYTES, _ENTRIES_AT_ONCE)
            data = os.pread(self._pagemap, _ENTRY_BYTES * n_wanted, start // PAGE_BYTES * _ENTRY_BYTES)
            entries = array.array("Q", data[: len(data) // _ENTRY_BYTES * _ENTRY_BYTES])
            for n, entry in enumerate(entries):
                if entry & (_PRESENT | _SWAPPED) and not entry & _FILE:
                    yield start + PAGE_BYTES * n
            if not entries:
                return
            start += PAGE_BYTES * len(entries)
