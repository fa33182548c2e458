"""Where what lies in the memory that the runtime and the controller share: the sizes of one region of it.

Runs in the controller. Pure.
"""

from __future__ import annotations

import mmap
from typing import Final

from clew.dataclass import dataclass
from clew.protocol._constants import (
    AGGREGATES_BYTES,
    CALL_WINDOW_BYTES,
    CAPTURE_PLACE_BYTES,
    FILTER_RANGE_BYTES,
    MAX_CAPTURE_BYTES,
    MAX_CAPTURES,
    MAX_FILTER_RANGES,
    MAX_PATCHES,
    MAX_PREFETCHED,
    MAX_PROBES,
    MAX_TRAPS,
    PATCH_ROW_BYTES,
    PROBE_SITE_BYTES,
    STATUS_PAGE_BYTES,
    THREAD_SLOT_BYTES,
    TRAP_ROW_BYTES,
    UNWIND_BYTES,
)

__all__ = ["CALLOUT_DATA_BYTES", "PAGE_BYTES", "SharedLayout"]

PAGE_BYTES: Final = mmap.PAGESIZE
CALLOUT_DATA_BYTES: Final = 1 << 20
"""What native callouts have of data: theirs alone, nobody else looks at it."""


@dataclass(frozen=True)
class SharedLayout:
    """Sizes of the shared memory. All of it is sparse: what is not touched costs nothing."""

    max_threads: int = 4096
    ring_bytes: int = 1 << 20
    counter_bytes: int = 32 << 20
    has_probes: bool = False
    """There is room for the tables of probes."""

    @property
    def status_offset(self) -> int:
        return PAGE_BYTES

    @property
    def slots_offset(self) -> int:
        return self.status_offset + STATUS_PAGE_BYTES

    @property
    def filters_offset(self) -> int:
        return _page_up(self.slots_offset + self.max_threads * THREAD_SLOT_BYTES)

    @property
    def captures_offset(self) -> int:
        return _page_up(self.filters_offset + MAX_FILTER_RANGES * FILTER_RANGE_BYTES)

    @property
    def prefetch_offset(self) -> int:
        return _page_up(self.captures_offset + MAX_CAPTURES * CAPTURE_PLACE_BYTES + MAX_CAPTURE_BYTES)

    @property
    def probes_offset(self) -> int:
        return _page_up(self.prefetch_offset + 8 * MAX_PREFETCHED)

    @property
    def traps_offset(self) -> int:
        return _page_up(self.probes_offset + self.has_probes * MAX_PROBES * PROBE_SITE_BYTES)

    @property
    def patches_offset(self) -> int:
        return _page_up(self.traps_offset + self.has_probes * 2 * MAX_TRAPS * TRAP_ROW_BYTES)

    @property
    def unwind_offset(self) -> int:
        return _page_up(self.patches_offset + self.has_probes * MAX_PATCHES * PATCH_ROW_BYTES)

    @property
    def callout_data_offset(self) -> int:
        return self.unwind_offset + self.has_probes * UNWIND_BYTES

    @property
    def aggregates_offset(self) -> int:
        return self.callout_data_offset + CALLOUT_DATA_BYTES

    @property
    def rings_offset(self) -> int:
        return self.aggregates_offset + AGGREGATES_BYTES

    @property
    def counters_offset(self) -> int:
        return self.rings_offset + self.max_threads * self.ring_bytes

    @property
    def calls_offset(self) -> int:
        return self.counters_offset + self.max_threads * self.counter_bytes

    @property
    def total_bytes(self) -> int:
        return self.calls_offset + self.max_threads * CALL_WINDOW_BYTES


def _page_up(value: int) -> int:
    return -(-value // PAGE_BYTES) * PAGE_BYTES
