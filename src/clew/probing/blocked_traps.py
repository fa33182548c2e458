"""Whether a thread may block the signals of traps where code is written that it may be executing: the kernel ends a
process of which a thread traps that can't be told.

Runs in the controller. A thread blocks signals by a call, or is in a handler that has others wait. Libraries block all
of them for a moment while they make threads and processes. That a thread does not block any now says nothing of the
next moment, so it is asked what could make it do so.
"""

from __future__ import annotations

import signal
from collections.abc import Collection, Iterable
from typing import Final

from clew.address import Pid
from clew.errors import BinaryError
from clew.probing.locations.image_file import ImageFile
from clew.probing.locations.in_process import LoadedImage
from clew.process.identity import read_signals

__all__ = ["TRAP_SIGNALS", "BlockedTraps"]

TRAP_SIGNALS: Final = 1 << signal.SIGTRAP - 1 | 1 << signal.SIGILL - 1
_OF_THE_LIBRARY: Final = 1 << 31 | 1 << 32
"""Signals by which C libraries cancel threads and change user ids: their handlers have none wait (nptl, glibc)."""
_BLOCKING: Final = tuple(
    f"\0{name}\0".encode()
    for name in (
        *("pthread_sigmask", "sigprocmask", "__sigprocmask", "sigblock", "sigsetmask", "sighold", "sigset"),
        "pthread_attr_setsigmask_np",
    )
)
_C_LIBRARIES: Final = ("libc.", "libpthread.", "ld-", "libc-", "linux-vdso", "linux-gate")
_MAX_NAMES_BYTES: Final = 64 << 20


class BlockedTraps:
    """Of the process `pid`."""

    def __init__(self, pid: Pid) -> None:
        self._pid = pid
        self._known: dict[ImageFile, bool] = {}

    def may_be_at(self, images: Iterable[LoadedImage], starts: Collection[int]) -> bool:
        """Whether a thread that blocks traps may come to one of these addresses, in a process that has these images."""
        if read_signals(self._pid, "SigCgt") & ~(TRAP_SIGNALS | _OF_THE_LIBRARY):
            return True
        own = []
        for image in images:
            if image.file.soname.startswith(_C_LIBRARIES):
                continue
            if self._blocks(image.file):
                # It may call anybody meanwhile.
                return True
            own.append(image)
        return not all(any(one.has(start) for one in own) for start in starts)

    def _blocks(self, file: ImageFile) -> bool:
        """Whether its code may have signals wait: by names of what it calls. One that calls nobody has its own."""
        if file not in self._known:
            self._known[file] = _names_blocking(file)
        return self._known[file]


def _names_blocking(file: ImageFile) -> bool:
    try:
        section = file.elf.find_section(".dynstr")
        if section is None or file.elf.find_section(".gopclntab") is not None:
            return True
        names = file.elf.read(section.file_offset, min(section.size_bytes, _MAX_NAMES_BYTES))
    except BinaryError:
        return True
    return any(one in names for one in _BLOCKING)
