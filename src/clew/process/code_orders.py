"""What the controller tells one process about its code: what changed, what is to be translated anew, or ahead.

Runs in the controller. Each kind is a ring of entries and a count of all that were ever told; threads see to it with
the next directive (`SharedMemory.give_directive`).
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Sequence
from typing import Final

from clew.process.shared_layout import SharedLayout
from clew.protocol._constants import MAX_CHANGED_PAGES, MAX_INVALIDATED_RANGES, MAX_PREFETCHED
from clew.protocol.layout import field_offset

__all__ = ["CodeOrders"]

_MASK: Final = 0xFFFFFFFF
_ALL_CODE: Final = (0, (1 << 64) - 1)


class CodeOrders:
    """Of the region that begins with `memory`."""

    def __init__(self, memory: mmap.mmap, layout: SharedLayout) -> None:
        self._memory, self._layout = memory, layout
        pages, ranges = self._offset("changed_pages"), self._offset("invalidated_ranges")
        self._changed = _Ring(memory, pages, 8, MAX_CHANGED_PAGES, self._offset("changed_count"))
        self._invalidated = _Ring(memory, ranges, 16, MAX_INVALIDATED_RANGES, self._offset("invalidated_count"))
        self._prefetch = _Ring(memory, layout.prefetch_offset, 8, MAX_PREFETCHED, self._offset("prefetch_count"))

    def inherit(self, parent: CodeOrders) -> None:
        """A fork's child has carried out what its parent had, and is told the rest."""
        self._changed.inherit(parent._changed)
        self._invalidated.inherit(parent._invalidated)
        done = self._offset("prefetch_done")
        self._memory[done : done + 4] = parent._memory[done : done + 4]
        self._prefetch.inherit(parent._prefetch, parent.n_waiting)

    def tell_changed(self, pages: Sequence[int]) -> None:
        """Which pages of code changed behind the process' back."""
        self._changed.append([struct.pack("<Q", page) for page in pages])

    def tell_invalidated(self, ranges: Sequence[tuple[int, int]]) -> None:
        """What is to be translated anew: addresses from start up to end."""
        told = ranges if len(ranges) <= MAX_INVALIDATED_RANGES else [_ALL_CODE]
        self._invalidated.append([struct.pack("<2Q", *one) for one in told])

    def tell_ahead(self, addresses: Sequence[int]) -> int:
        """What is to be translated before it is executed, as far as there is room; how many addresses found some."""
        taken = addresses[: MAX_PREFETCHED - self.n_waiting]
        self._prefetch.append([struct.pack("<Q", address) for address in taken])
        return len(taken)

    @property
    def n_waiting(self) -> int:
        """How many of those addresses no thread has looked at yet. The target may say what it likes."""
        done = self._offset("prefetch_done")
        n_waiting = self._prefetch.count - int.from_bytes(self._memory[done : done + 4], "little") & _MASK
        return min(n_waiting, MAX_PREFETCHED)

    def _offset(self, name: str) -> int:
        return self._layout.status_offset + field_offset("StatusPage", name)


class _Ring:
    """`size` entries of `entry_bytes` from `start` on: number N is at index N modulo `size`. `count_at` has how many
    there ever were, 32 bits of it."""

    def __init__(self, memory: mmap.mmap, start: int, entry_bytes: int, size: int, count_at: int) -> None:
        self._memory, self._start, self._entry_bytes, self._size = memory, start, entry_bytes, size
        self._count_at = count_at
        self.count = 0

    def append(self, entries: Sequence[bytes]) -> None:
        """Tell of entries. Of more than there is room for the last stay: who reads sees by the count that some went."""
        last = entries[-self._size :]
        for number, entry in enumerate(last, self.count + len(entries) - len(last)):
            at = self._start + number % self._size * self._entry_bytes
            self._memory[at : at + self._entry_bytes] = entry
        self._set_count(self.count + len(entries))

    def inherit(self, parent: _Ring, n_last: int | None = None) -> None:
        """Have what the parent has; only the last `n_last` entries, if given."""
        n_entries = (self._size if n_last is None else n_last) if parent.count else 0
        for number in range(parent.count - n_entries, parent.count):
            at = number % self._size * self._entry_bytes
            own, other = self._start + at, parent._start + at
            self._memory[own : own + self._entry_bytes] = parent._memory[other : other + self._entry_bytes]
        self._set_count(parent.count)

    def _set_count(self, count: int) -> None:
        self.count = count & _MASK
        self._memory[self._count_at : self._count_at + 4] = self.count.to_bytes(4, "little")
