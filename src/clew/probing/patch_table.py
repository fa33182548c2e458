"""The table of what the program's code held, and of counters that were raised, for the runtime's task: it has all of it
be as it was should this process be gone.

Runs in the controller.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Final

from clew.errors import TargetError
from clew.process.shared_memory import SharedMemory
from clew.protocol._constants import MAX_PATCHES, PATCH_ROW_BYTES

__all__ = ["PatchTable"]

_ROW: Final = struct.Struct("<QII16s")
_CONTENT_BYTES: Final = 16


class PatchTable:
    """Of one process."""

    def __init__(self, shared: SharedMemory) -> None:
        self._shared = shared
        self._code: list[bytes] = []
        self._counters: list[bytes] = []

    def set(self, pid: int, originals: Iterable[tuple[int, bytes]]) -> None:
        """Have those bytes be written back at those addresses. Raises TargetError: too many."""
        rows = []
        for address, content in originals:
            for start in range(0, len(content), _CONTENT_BYTES):
                piece = content[start : start + _CONTENT_BYTES]
                rows.append(_ROW.pack(address + start, len(piece), 0, piece))
        self._code = self._write(pid, rows, self._counters)

    def set_raised(self, pid: int, addresses: Iterable[int]) -> None:
        """Have the counters at those addresses be one less. Raises TargetError: too many."""
        rows = [_ROW.pack(address, 0, 1, b"") for address in addresses]
        self._counters = self._write(pid, rows, self._code)

    def _write(self, pid: int, rows: list[bytes], others: list[bytes]) -> list[bytes]:
        """Write these rows, and others that stay; these."""
        content = b"".join([*rows, *others])
        n_rows = len(rows) + len(others)
        if n_rows > MAX_PATCHES:
            raise TargetError(pid, f"process {pid}: more than {MAX_PATCHES} places that are written over")
        # None is valid while they are written: whoever reads a part of them would write that back.
        self._shared.set_status_ticket("patch_count", 0)
        at = self._shared.layout.patches_offset
        self._shared.map[at : at + n_rows * PATCH_ROW_BYTES] = content
        self._shared.set_status_ticket("patch_count", n_rows)
        return rows
