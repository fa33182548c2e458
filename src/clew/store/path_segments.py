"""Segments of a path as its file has them: stretches whose streams were re-coded by `clew compact`.

Runs in the controller. Pure. What the coded bytes mean is the path codec's. A frame's `start` is the first stretch and
`size` how many there are; its content is a header, little-endian, and the coded bytes:

    form u32 | crc32 u32 | n_blocks u64 | n_surprise_bytes u64 | n_symbol_bytes u64

The checksum is that of the surprises and, behind them, the symbols that reading gives.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass
from typing import Final

__all__ = ["MAX_SEGMENT_BLOCKS", "MAX_STREAM_BYTES", "StoredSegment", "decode_stored", "encode_stored", "sum_streams"]

MAX_SEGMENT_BLOCKS: Final = 1 << 27
MAX_STREAM_BYTES: Final = 1 << 28
"""No segment has more blocks, or more bytes of a stream: reading takes seconds, whatever a file says."""

_FORM: Final = 1
_HEADER: Final = struct.Struct("<IIQQQ")


@dataclass(frozen=True)
class StoredSegment:
    """`n_stretches` stretches from number `first` on, re-coded; see `clew.binary.path_segments.PathSegment`."""

    first: int
    n_stretches: int
    n_blocks: int
    n_surprise_bytes: int
    n_symbol_bytes: int
    checksum: int
    coded: bytes

    @property
    def end(self) -> int:
        """The stretch behind it."""
        return self.first + self.n_stretches


def sum_streams(surprises: bytes, symbols: bytes) -> int:
    """The checksum of what a segment stands for."""
    return zlib.crc32(symbols, zlib.crc32(surprises))


def encode_stored(segment: StoredSegment) -> bytes:
    """The content of a frame."""
    sizes = (segment.n_blocks, segment.n_surprise_bytes, segment.n_symbol_bytes)
    return _HEADER.pack(_FORM, segment.checksum, *sizes) + segment.coded


def decode_stored(first: int, n_stretches: int, content: bytes) -> StoredSegment:
    """The segment in a frame. Raises ValueError if there is none."""
    if len(content) < _HEADER.size:
        raise ValueError("a segment is cut off")
    form, checksum, n_blocks, n_surprise_bytes, n_symbol_bytes = _HEADER.unpack_from(content)
    if form != _FORM:
        raise ValueError(f"a segment has form {form}, which this clew can't read")
    if n_blocks > MAX_SEGMENT_BLOCKS or max(n_surprise_bytes, n_symbol_bytes) > MAX_STREAM_BYTES:
        raise ValueError("a segment has an impossible size")
    coded = content[_HEADER.size :]
    return StoredSegment(first, n_stretches, n_blocks, n_surprise_bytes, n_symbol_bytes, checksum, coded)
