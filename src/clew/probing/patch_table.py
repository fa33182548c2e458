"""The table of what the program's code held, for the runtime's task: it writes that back should this process be gone.

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

    def set(self, pid: int, originals: Iterable[tuple[int, bytes]]) -> None:
        """Have those bytes be written back at those addresses. Raises TargetError: too many."""
        rows = []
        for address, content in originals:
            for start in range(0, len(content), _CONTENT_BYTES):
                piece = content[start : start + _CONTENT_BYTES]
                rows.append(_ROW.pack(address + start, len(piece), 0, piece))
        if len(rows) > MAX_PATCHES:
            raise TargetError(pid, f"process {pid}: more than {MAX_PATCHES} places that are written over")
        # None is valid while they are written: whoever reads a part of them would write that back.
        self._shared.set_status_ticket("patch_count", 0)
        at = self._shared.layout.patches_offset
        self._shared.map[at : at + len(rows) * PATCH_ROW_BYTES] = b"".join(rows)
        self._shared.set_status_ticket("patch_count", len(rows))
