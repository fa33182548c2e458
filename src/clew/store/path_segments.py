"""Segments of a path as its file has them: stretches whose streams were re-coded by `clew compact`.

Runs in the controller. Pure. What the coded bytes mean is the path codec's. A segment is one stretch in several parts,
each of which can be read by itself, or one or several stretches in one part. A frame's `start` is the first stretch and
`size` how many there are. Its content is a header, little-endian; shuffled rows of dtype PART; the return addresses
(u64) of the open calls of each, the outermost first; the blocks that are counted (u32, how much higher than the one
before) and, for each, how often it was executed in each part but the last (u32), all shuffled;
the coded bytes of each:

    form u32 | number of parts u32 | number of blocks counted u32

A part's checksum is that of its surprises and, behind them, its symbols.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass, field
from clew.store.path_checkpoints import shuffle, unshuffle

__all__ = [
    "MAX_SEGMENT_BLOCKS",
    "MAX_STREAM_BYTES",
    "NO_PC",
    "PART",
    "StoredPart",
    "StoredSegment",
    "decode_stored",
    "encode_stored",
    "sum_streams",
]

Array = npt.NDArray[Any]

MAX_SEGMENT_BLOCKS: Final = 1 << 27
MAX_STREAM_BYTES: Final = 1 << 28
"""No segment has more blocks, or more bytes of a stream: reading takes seconds, whatever a file says."""

NO_PC: Final = (1 << 64) - 1
"""The `pc` of a place where no block comes next, until an event says which."""

PART: Final = np.dtype(
    [
        ("surprise_bytes", "<u8"),
        ("decisions", "<u8"),
        ("symbol_bytes", "<u8"),
        ("depth", "<u8"),
        ("pc", "<u8"),
        ("events", "<u8"),
        ("instructions", "<u8"),
        ("n_blocks", "<u8"),
        ("n_surprise_bytes", "<u8"),
        ("n_symbol_bytes", "<u8"),
        ("n_calls", "<u4"),
        ("n_coded_bytes", "<u4"),
        ("checksum", "<u4"),
    ]
)
"""Where a part begins, as checkpoints have it, and `instructions` of the segment before it; all 0 of the first one,
which begins at a checkpoint. And what is in it."""

_FORM: Final = 2
_HEADER: Final = struct.Struct("<III")
_WORD: Final = np.dtype("<u4")
_ADDRESS: Final = np.dtype("<u8")


@dataclass(frozen=True)
class StoredPart:
    """One of dtype PART, the calls open where it begins (u64), and the coded bytes."""

    head: np.void
    calls: Array
    coded: bytes

    @property
    def n_blocks(self) -> int:
        """Executions of blocks in it."""
        return int(self.head["n_blocks"])

    @property
    def sizes(self) -> tuple[int, int]:
        """Bytes of surprises and of symbols in it."""
        return int(self.head["n_surprise_bytes"]), int(self.head["n_symbol_bytes"])


@dataclass(frozen=True)
class StoredSegment:
    """`n_stretches` stretches from number `first` on, re-coded; see `clew.binary.path_segments.PathSegment`.

    `counted` are indices of blocks (u32), rising; `counts` (u32), of shape (blocks, parts but the last), says how often
    each was executed.
    """

    first: int
    n_stretches: int
    parts: Sequence[StoredPart]
    counted: Array = field(default_factory=lambda: np.zeros(0, _WORD))
    counts: Array = field(default_factory=lambda: np.zeros((0, 0), _WORD))

    @property
    def end(self) -> int:
        """The stretch behind it."""
        return self.first + self.n_stretches

    def count(self, block: int) -> Array:
        """How often (i64) a block was executed in each part but the last."""
        at = int(np.searchsorted(self.counted, block))
        if at < len(self.counted) and self.counted[at] == block:
            found: Array = self.counts[at].astype(np.int64)
            return found
        return np.zeros(len(self.parts) - 1, np.int64)


def sum_streams(surprises: bytes, symbols: bytes) -> int:
    """The checksum of what a part stands for."""
    return zlib.crc32(symbols, zlib.crc32(surprises))


def encode_stored(segment: StoredSegment) -> bytes:
    """The content of a frame."""
    heads = np.array([part.head for part in segment.parts], PART)
    heads["n_calls"] = [len(part.calls) for part in segment.parts]
    heads["n_coded_bytes"] = [len(part.coded) for part in segment.parts]
    steps = np.diff(segment.counted, prepend=_WORD.type(0)).astype(_WORD)
    tables = (
        heads,
        np.concatenate([part.calls for part in segment.parts]).astype(_ADDRESS),
        steps,
        segment.counts.astype(_WORD).reshape(-1),
    )
    header = _HEADER.pack(_FORM, len(heads), len(steps))
    return b"".join([header, *map(shuffle, tables), *(part.coded for part in segment.parts)])


def decode_stored(first: int, n_stretches: int, content: bytes) -> StoredSegment:
    """The segment in a frame. Raises ValueError if there is none."""
    if len(content) < _HEADER.size:
        raise ValueError("a segment is cut off")
    form, n_parts, n_counted = _HEADER.unpack_from(content)
    if form != _FORM:
        raise ValueError(f"a segment has form {form}, which this clew can't read")
    at = _HEADER.size

    def take(dtype: np.dtype[Any], n: int) -> Array:
        nonlocal at
        data = content[at : at + n * dtype.itemsize]
        if len(data) != n * dtype.itemsize:
            raise ValueError("a segment is cut off")
        at += len(data)
        return unshuffle(data, dtype)

    if n_parts == 0 or (n_parts > 1 and n_stretches > 1):
        raise ValueError("a segment has an impossible number of parts")
    heads = take(PART, n_parts)
    totals = [sum(heads[name].tolist()) for name in ("n_blocks", "n_surprise_bytes", "n_symbol_bytes")]
    if totals[0] > MAX_SEGMENT_BLOCKS or max(totals[1:]) > MAX_STREAM_BYTES:
        raise ValueError("a segment has an impossible size")
    calls = take(_ADDRESS, sum(heads["n_calls"].tolist()))
    counted = np.cumsum(take(_WORD, n_counted), dtype=_WORD)
    counts = take(_WORD, n_counted * (n_parts - 1)).reshape(n_counted, n_parts - 1)
    if len(content) - at != sum(heads["n_coded_bytes"].tolist()):
        raise ValueError("a segment is cut off")
    parts = []
    n_calls = 0
    for head in heads:
        behind, end = n_calls + int(head["n_calls"]), at + int(head["n_coded_bytes"])
        parts.append(StoredPart(head, calls[n_calls:behind], content[at:end]))
        n_calls, at = behind, end
    return StoredSegment(first, n_stretches, parts, counted, counts)
