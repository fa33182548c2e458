"""What a journal consists of: frames, made and read.

Runs in the controller. A journal is a sequence of frames, each a header of 64 bytes and a payload padded to 64 bytes:

    magic u32 | kind u16 | version u16 | stream u32 | slot u32 | payload_bytes u64 | first u64 | process u32 | crc32 u32

and zeros. `process` numbers processes in the order in which they were met; a program that a process goes on with gets a
number of its own. `stream` numbers a process' threads in the order in which their slots were seen in use. `first` is
the index of the first counter in a frame of counters. The checksum covers the header without itself, and the payload.
Whatever follows the first frame that is cut off or damaged is not read. What records mean is not known here.
"""

from __future__ import annotations

import mmap
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from clew.dataclass import dataclass
from clew.enumeration import IntEnum

__all__ = ["CUT_OFF", "UNIT_BYTES", "Frame", "FrameKind", "iter_frames", "pack_header", "read_frame_bytes"]

CUT_OFF: Final = "the recording was cut off; what was recorded until then is here"
"""A line for people, of a process or of the whole recording."""

UNIT_BYTES: Final = 64

_MAGIC: Final = 0x4A574C43
_VERSION: Final = 2
_HEADER: Final = struct.Struct("<IHHIIQQII24x")
_HEADER_BEFORE_CHECKSUM_BYTES: Final = 36
_MAPPED_BYTES: Final = 1 << 16
"""Where one page of a file is read the kernel maps those around it, too, if it has them."""
_READ_BYTES: Final = 1 << 24
"""So much of a file is read before its memory is let go."""


class FrameKind(IntEnum):
    """What a frame's payload is."""

    PROCESS = 1
    """JSON: facts of the process, when it started. `inherits` is the number of the process whose fork it is, and
    `fork_tsc` the time stamp of that: what the other had announced by then is this one's, too."""
    RECORDS = 2
    """Records of one stream, whole ones."""
    COUNTERS = 3
    """u64 counters of one stream, from index `first`."""
    SPARSE_COUNTERS = 8
    """Counters of one stream that are not 0: their indices, u32, counted from `first`, and then as many values, u64."""
    THREAD = 4
    """JSON: one thread, when its slot was given back or the process had ended."""
    STATUS = 5
    """The StatusPage, when the process had ended."""
    PROCESS_END = 6
    """JSON: how the process ended."""
    SESSION = 7
    """JSON: what was asked for. The first frame; belongs to no process."""
    PATH_TAIL = 9
    """Mode full: what of one stream's path had not left the target (see `path_tail`)."""
    ENDED = 10
    """Threads of which nothing was told before, all that they left: `first` threads (see `ended_threads`)."""


@dataclass(frozen=True)
class Frame:
    """One frame as read. `payload` is a view of the file's bytes; `offset` is where it begins in the file."""

    kind: int
    process: int
    stream: int
    slot: int
    first: int
    offset: int
    payload: memoryview

    def let_go(self) -> None:
        """Have the payload take no memory until it is read again, if it is a file's."""
        _let_go(self.payload, self.offset + UNIT_BYTES, self.offset + UNIT_BYTES + len(self.payload))


def pack_header(frame: Frame, size_bytes: int, second: bytes | memoryview = b"") -> bytearray:
    """The header of a frame of `frame.payload` and then `second`, `size_bytes` together."""
    fields = (frame.kind, _VERSION, frame.stream, frame.slot, size_bytes, frame.first, frame.process)
    header = bytearray(_HEADER.pack(_MAGIC, *fields, 0))
    checksum = zlib.crc32(second, zlib.crc32(frame.payload, zlib.crc32(header[:_HEADER_BEFORE_CHECKSUM_BYTES])))
    struct.pack_into("<I", header, _HEADER_BEFORE_CHECKSUM_BYTES, checksum)
    return header


def iter_frames(source: Path | memoryview) -> Iterator[Frame]:
    """The frames of the journal at a path, or of its content, up to the first that is cut off or damaged."""
    view = source if isinstance(source, memoryview) else _map_file(source)
    size_bytes = len(view)
    offset = kept_offset = 0
    while offset + UNIT_BYTES <= size_bytes:
        magic, kind, version, stream, slot, payload_bytes, first, process, checksum = _HEADER.unpack_from(view, offset)
        start, end = offset + UNIT_BYTES, offset + UNIT_BYTES + payload_bytes
        if magic != _MAGIC or version != _VERSION or end > size_bytes:
            return
        payload = view[start:end]
        if zlib.crc32(payload, zlib.crc32(view[offset : offset + _HEADER_BEFORE_CHECKSUM_BYTES])) != checksum:
            return
        yield Frame(kind, process, stream, slot, first, offset, payload)
        offset = end + -payload_bytes % UNIT_BYTES
        if offset - kept_offset >= _READ_BYTES:
            _let_go(view, kept_offset, offset)
            kept_offset = offset


def read_frame_bytes(header: bytes) -> int:
    """How much of a journal the frame takes whose first `UNIT_BYTES` are `header`; 0 for what is no header."""
    magic, _, version, _, _, payload_bytes, *_ = _HEADER.unpack(header)
    if magic != _MAGIC or version != _VERSION:
        return 0
    return int(UNIT_BYTES + payload_bytes + -payload_bytes % UNIT_BYTES)


def _let_go(view: memoryview, start: int, end: int) -> None:
    """Have a part of the file that `view` is of, if it is of one, take no memory until it is read again."""
    if isinstance(view.obj, mmap.mmap):
        start -= start % _MAPPED_BYTES
        end += -end % _MAPPED_BYTES
        view.obj.madvise(mmap.MADV_DONTNEED, start, min(end, len(view.obj)) - start)


def _map_file(path: Path) -> memoryview:
    with open(path, "rb") as file:
        size_bytes = os.fstat(file.fileno()).st_size
        return memoryview(mmap.mmap(file.fileno(), size_bytes, prot=mmap.PROT_READ) if size_bytes else b"")
