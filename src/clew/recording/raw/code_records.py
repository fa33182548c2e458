"""The records of a thread that tell of code: what is needed of them to work out blocks, edges and images.

Pure.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from clew.protocol._generated import RECORD_BYTES, RecordKind

__all__ = ["CodeRecords"]

Records = npt.NDArray[np.uint8]

_CODE_KINDS: Final = (
    RecordKind.FRAGMENT,
    RecordKind.DYNAMIC_EDGE,
    RecordKind.LINK,
    RecordKind.IMAGE,
    RecordKind.UNMAP,
    RecordKind.INVALIDATE,
)


class CodeRecords:
    """The records of one thread that tell of code, as they come."""

    __slots__ = ("_is_kept", "parts")

    def __init__(self) -> None:
        self.parts: list[Records] = []
        self._is_kept = False
        """Whether a continuation that comes first belongs to what is kept."""

    def add(self, records: Records) -> bool:
        """Add records, shape (n, 64); whether any of them is kept."""
        kind = records[:, :2].copy().view("<u2")[:, 0]
        is_head = kind != RecordKind.CONTINUATION
        is_kept = np.isin(kind, _CODE_KINDS)
        # A continuation is kept with the head in front of it.
        head = np.maximum.accumulate(np.where(is_head, np.arange(len(kind)), -1))
        kept = np.where(head >= 0, is_kept[head], self._is_kept)
        self._is_kept = bool(kept[-1]) if len(kept) else self._is_kept
        if kept.any():
            self.parts.append(records[kept].copy())
        return bool(kept.any())

    def join(self) -> Records:
        """All of them."""
        if len(self.parts) > 1:
            self.parts = [np.concatenate(self.parts)]
        return self.parts[0] if self.parts else np.zeros((0, RECORD_BYTES), np.uint8)
