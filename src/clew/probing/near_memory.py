"""Memory for handlers, where a jump of five bytes reaches it from the code that leads there.

Runs in the controller. It lies far from where the program's own memory grows to, so that the program gets the addresses
that it gets without it; nothing there can be written by the program (it is written from outside).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from clew.address import Pid, RemoteAddress
from clew.dataclass import dataclass
from clew.errors import RemoteCallError, TargetError
from clew.process.linux import (
    MAP_ANONYMOUS,
    MAP_FIXED_NOREPLACE,
    MAP_NORESERVE,
    MAP_PRIVATE,
    PROT_EXEC,
    PROT_READ,
)
from clew.process.maps import Mapping
from clew.process.shared_layout import PAGE_BYTES
from clew.process.stopped_process import StoppedProcess

__all__ = ["Area", "NearMemory"]

_REACH_BYTES: Final = (1 << 31) - (1 << 24)
"""A jump's distance has 32 bits with a sign; what is led to lies a little behind an area's start."""
_WANTED_DISTANCE: Final = 1 << 30
_MARGIN_BYTES: Final = 1 << 24
"""So far from anything that may grow."""
_AREA_BYTES: Final = 1 << 20
_LOWEST: Final = 1 << 16
_HIGHEST: Final = (1 << 47) - (1 << 20)


@dataclass
class Area:
    """Mapped memory from `start` on, of which `used` bytes are given out."""

    start: int
    size_bytes: int
    used: int = 0

    def take(self, n_bytes: int) -> int | None:
        """The address of so many bytes; None: there is no room."""
        at = -(-self.used // 16) * 16
        if at + n_bytes > self.size_bytes:
            return None
        self.used = at + n_bytes
        return self.start + at


class NearMemory:
    """Of one process."""

    def __init__(self, pid: Pid) -> None:
        self._pid = pid
        self.areas: list[Area] = []

    def take(self, code: int, n_bytes: int) -> int | None:
        """The address of so many bytes that a jump at `code` reaches; None: more has to be mapped (`reserve`)."""
        for area in self.areas:
            if abs(area.start - code) <= _REACH_BYTES and (address := area.take(n_bytes)) is not None:
                return address
        return None

    def reserve(self, worker: StoppedProcess, mappings: Sequence[Mapping], code: int, n_bytes: int) -> None:
        """Map room for so many bytes that a jump at `code` reaches. Raises TargetError: there is none."""
        size_bytes = -(-max(n_bytes, _AREA_BYTES) // PAGE_BYTES) * PAGE_BYTES
        flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE
        for start in _candidates(mappings, self.areas, code, size_bytes):
            try:
                made = worker.call("mmap", start, size_bytes, PROT_READ | PROT_EXEC, flags, -1, 0)
            except RemoteCallError:
                continue
            if made == start:
                self.areas.append(Area(start, size_bytes))
                return
            worker.call("munmap", RemoteAddress(made), size_bytes)
        raise TargetError(self._pid, f"process {self._pid}: there is no room within 2 GiB of {code:#x} for handlers")


def _candidates(mappings: Sequence[Mapping], areas: Sequence[Area], code: int, size_bytes: int) -> list[int]:
    """Where such an area may be, the best first: about a GiB away, and with a margin to what is there."""
    taken = sorted([(one.start, one.end) for one in mappings] + [(a.start, a.start + a.size_bytes) for a in areas])
    gaps, before = [], _LOWEST
    for start, end in [*taken, (_HIGHEST, _HIGHEST)]:
        if start > before:
            gaps.append((before, start))
        before = max(before, end)
    found = []
    for margin in (_MARGIN_BYTES, 0):
        for start, end in gaps:
            first, last = max(start + margin, code - _REACH_BYTES), min(end - margin, code + _REACH_BYTES) - size_bytes
            first, last = -(-first // PAGE_BYTES) * PAGE_BYTES, last // PAGE_BYTES * PAGE_BYTES
            if first <= last:
                for wanted in (code - _WANTED_DISTANCE, code + _WANTED_DISTANCE):
                    found.append((margin == 0, abs(min(max(wanted, first), last) - wanted), min(max(wanted, first), last)))
    return [address // PAGE_BYTES * PAGE_BYTES for _, _, address in sorted(found)]
