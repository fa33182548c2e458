"""The tables by which the runtime unwinds stacks of a probed process, in the memory that it shares with the controller.

Runs in the controller. Threads walk by them at any time, and take no lock. So there are two directories, of which a
word tells the one: what it leads to stays as it is until another one does. Who has walked by a directory that is not
the one any more finds that word changed, and walks again; what only older ones led to may be written over.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

from clew.process.shared_memory import SharedMemory
from clew.protocol._constants import MAX_UNWIND_IMAGES, UNWIND_BYTES, UNWIND_IMAGE_BYTES, UnwindKind
from clew.protocol.layout import field_offset

__all__ = ["UnwindArea", "UnwindCode"]

_ROW: Final = struct.Struct("<QQQII")
_TABLES_AT: Final = 2 * MAX_UNWIND_IMAGES * UNWIND_IMAGE_BYTES
_NUMBER_BITS: Final = 16
"""Below the number that is another one each time."""


class UnwindCode(NamedTuple):
    """Code from `start` up to `end`, whose table counts from `base`. `table`, called `key`, is as the runtime reads it;
    empty: nothing is known of the code. None: the controller is to be asked."""

    start: int
    end: int
    base: int
    key: Hashable
    table: bytes | None


class UnwindArea:
    """Of one process."""

    def __init__(self, shared: SharedMemory) -> None:
        self._shared = shared
        self._places: dict[Hashable, tuple[int, int]] = {}
        """Of the tables that the directory leads to: from where up to where they are, from the area's start on."""
        self._number = 0
        self.n_refused = 0
        """Tables for which there was no room when a directory was made last."""

    def publish(self, codes: Sequence[UnwindCode]) -> None:
        """Have the runtime walk by these from now on: of code that is mapped, no two parts of which overlap. What is
        not among them it asks about."""
        # Large and many mappings of code that no file has come last.
        chosen = sorted(codes, key=lambda one: one.table == b"")[:MAX_UNWIND_IMAGES]
        kept: dict[Hashable, tuple[int, int]] = {}
        rows = []
        self.n_refused = 0
        for one in sorted(chosen, key=lambda one: one.start):
            kind, at = UnwindKind.ASKS if one.table is None else UnwindKind.NOTHING, 0
            if one.table:
                place = kept.get(one.key) or self._places.get(one.key) or self._write(one.table, kept)
                self.n_refused += place is None
                kind = UnwindKind.ASKS if place is None else UnwindKind.TABLE
                if place is not None:
                    kept[one.key] = place
                    at = place[0]
            rows.append(_ROW.pack(one.start, one.end, one.base, kind, at))
        self._number += 1
        directory = self._number & 1
        start = self._shared.layout.unwind_offset + directory * MAX_UNWIND_IMAGES * UNWIND_IMAGE_BYTES
        packed = b"".join(rows)
        self._shared.map[start : start + len(packed)] = packed
        state = directory | len(rows) << 1 | self._number << _NUMBER_BITS
        at = self._shared.layout.status_offset + field_offset("StatusPage", "unwind_state")
        self._shared.map[at : at + 8] = state.to_bytes(8, "little")
        self._places = kept

    def _write(self, table: bytes, kept: dict[Hashable, tuple[int, int]]) -> tuple[int, int] | None:
        """Write a table to where none is that the directory leads to, or that is to be kept; None: there is no room."""
        size_bytes = len(table) + -len(table) % 8
        at = _TABLES_AT
        for start, end in sorted({*self._places.values(), *kept.values()}):
            if at + size_bytes <= start:
                break
            at = max(at, end)
        if at + size_bytes > UNWIND_BYTES:
            return None
        start = self._shared.layout.unwind_offset + at
        self._shared.map[start : start + len(table)] = table
        return at, at + size_bytes
