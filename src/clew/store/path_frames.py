"""The files below `paths/` of a trace, one for each thread's path but for short ones: sequences of frames.

Runs in the controller. A frame is a header of 36 bytes and a payload, compressed by zstd:

    magic u32 | kind u16 | version u16 | start u64 | size u64 | stored_bytes u32 | content_bytes u32 | crc32 u32

`start` and `size` say which bytes of a stream, which events, checkpoints or stretches it holds, `stored_bytes` how long
the payload is and `content_bytes` how long it is uncompressed. The checksum covers the header without itself, and the
payload. What the contents mean is written down in docs/format/paths.md.
"""

from __future__ import annotations

import struct
import threading
import zlib
from collections.abc import Iterator
from typing import BinaryIO, Final

import zstandard

from clew.dataclass import dataclass
from clew.enumeration import IntEnum
from clew.store.names import PATHS_FOLDER

__all__ = [
    "FOLDER_NAME",
    "HEADER_BYTES",
    "LEVEL",
    "MAX_CONTENT_BYTES",
    "Frame",
    "FrameKind",
    "compress",
    "encode_frame",
    "file_name",
    "iter_frames",
    "pack_frame",
    "read_header",
    "read_payload",
]

FOLDER_NAME: Final = PATHS_FOLDER
MAX_CONTENT_BYTES: Final = 1 << 28
"""No frame holds more uncompressed."""
LEVEL: Final = 1
"""Of zstd: it has to keep up with the target."""

_MAGIC: Final = 0x50574C43
_VERSION: Final = 1
_HEADER: Final = struct.Struct("<IHHQQIII")
_CHECKED_BYTES: Final = _HEADER.size - 4
HEADER_BYTES: Final = _HEADER.size


class _Contexts(threading.local):
    """What zstd works with: making it takes longer than compressing the path of a short thread."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(level=LEVEL, write_content_size=False)
        self.decompressor = zstandard.ZstdDecompressor()


_CONTEXTS: Final = _Contexts()


class FrameKind(IntEnum):
    """What a frame holds."""

    SURPRISES = 0
    SYMBOLS = 1
    EVENTS = 2
    """Records of dtype PATH_EVENT_RECORD: all first bytes, then all second ones, and so on."""
    CHECKPOINTS = 3
    """See `clew.store.path_checkpoints`."""
    STATES = 4
    """Rows of dtype `clew.store.path_checkpoints.STATE`, shuffled. `start` counts them."""
    INDEX = 5
    """The last one of a finished path: see `clew.store.path_index`."""
    SEGMENTS = 6
    """Some stretches, re-coded, in the place of their surprises and symbols: see `clew.store.path_segments`."""
    SAMPLES = 7
    """Rows of dtype `clew.store.path_checkpoints.SAMPLE`, shuffled. `start` counts them."""
    SHORT = 8
    """Whole paths, in a file of many: see `clew.store.short_paths`."""


@dataclass(frozen=True)
class Frame:
    """The header of a frame, and where in the file it is."""

    kind: int
    start: int
    size: int
    stored_bytes: int
    content_bytes: int
    offset: int

    @property
    def end(self) -> int:
        """What comes behind its last byte, event or checkpoint."""
        return self.start + self.size

    @property
    def end_offset(self) -> int:
        """Where the next frame begins."""
        return self.offset + _HEADER.size + self.stored_bytes


def file_name(process: int, stream: int) -> str:
    """Name of the file of the path of a process' `stream`-th thread, both as the journal numbers them."""
    return f"{process}-{stream}.path"


def encode_frame(kind: FrameKind, start: int, size: int, payload: bytes, content_bytes: int) -> bytes:
    """A whole frame, of a payload that is compressed already."""
    header = _HEADER.pack(_MAGIC, kind, _VERSION, start, size, len(payload), content_bytes, 0)[:_CHECKED_BYTES]
    return header + zlib.crc32(payload, zlib.crc32(header)).to_bytes(4, "little") + payload


def compress(content: bytes, level: int = LEVEL) -> bytes:
    """A payload."""
    if level == LEVEL:
        return _CONTEXTS.compressor.compress(content)
    return zstandard.ZstdCompressor(level=level, write_content_size=False).compress(content)


def pack_frame(kind: FrameKind, start: int, size: int, content: bytes, level: int = LEVEL) -> bytes:
    """A whole frame, of a content that is to be compressed."""
    return encode_frame(kind, start, size, compress(content, level), len(content))


def iter_frames(file: BinaryIO) -> Iterator[Frame]:
    """The frames of a file from its beginning, up to the first that is cut off, or is none."""
    size_bytes = file.seek(0, 2)
    offset = 0
    while (frame := read_header(file, offset)) is not None and frame.end_offset <= size_bytes:
        yield frame
        offset = frame.end_offset


def read_header(file: BinaryIO, offset: int) -> Frame | None:
    """The frame whose header is at `offset`; None if there is none."""
    file.seek(offset)
    data = file.read(_HEADER.size)
    if len(data) < _HEADER.size:
        return None
    magic, kind, version, start, size, stored_bytes, content_bytes, _ = _HEADER.unpack(data)
    if magic != _MAGIC or version != _VERSION or content_bytes > MAX_CONTENT_BYTES:
        return None
    return Frame(kind, start, size, stored_bytes, content_bytes, offset)


def read_payload(file: BinaryIO, frame: Frame) -> bytes:
    """The content of a frame. Raises ValueError if it is damaged."""
    file.seek(frame.offset)
    data = file.read(_HEADER.size + frame.stored_bytes)
    header, payload = data[: _HEADER.size], data[_HEADER.size :]
    checksum = zlib.crc32(payload, zlib.crc32(header[:_CHECKED_BYTES]))
    if len(payload) != frame.stored_bytes or header[_CHECKED_BYTES:] != checksum.to_bytes(4, "little"):
        raise ValueError("a frame is damaged")
    try:
        content = _CONTEXTS.decompressor.decompress(payload, max_output_size=frame.content_bytes)
    except zstandard.ZstdError as error:
        raise ValueError("a frame is damaged") from error
    if len(content) != frame.content_bytes:
        raise ValueError("a frame is damaged")
    return content
