"""The counters that static probes look at: 16 bits that say how many want to hear of a probe (<sys/sdt.h>, semaphores).

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from clew.address import Pid, RemoteAddress
from clew.process.linux import PROT_WRITE
from clew.process.maps import read_maps

__all__ = ["COUNTER_BYTES", "add_to_counter", "find_counters"]

COUNTER_BYTES: Final = 2
_MOST: Final = (1 << 8 * COUNTER_BYTES) - 1


def find_counters(pid: Pid, addresses: Collection[RemoteAddress]) -> set[RemoteAddress]:
    """Those of some addresses at which a process could count itself. Raises OSError if it is gone."""
    spans = [(one.start, one.end) for one in read_maps(pid) if one.protection & PROT_WRITE]
    return {one for one in addresses if any(start <= one and one + COUNTER_BYTES <= end for start, end in spans)}


def add_to_counter(content: bytes, by: int) -> bytes:
    """A counter's bytes with so many more, or less, who want to hear: none at the least."""
    value = int.from_bytes(content, "little") + by
    return min(max(value, 0), _MOST).to_bytes(COUNTER_BYTES, "little")
