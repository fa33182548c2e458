"""The journal: what comes from the target while it runs, as it comes, in one file of the trace.

Runs in the controller. A journal is a sequence of frames, each a header of 64 bytes and a payload padded to 64 bytes:

    magic u32 | kind u16 | version u16 | stream u32 | slot u32 | payload_bytes u64 | first u64 | process u32 | crc32 u32

and zeros. `process` numbers processes in the order in which they were met; a program that a process goes on with gets a
number of its own. `stream` numbers a process' threads in the order in which their slots were seen in use. `first` is
the index of the first counter in a frame of counters. The checksum covers the header without itself, and the payload.
Whatever follows the first frame that is cut off or damaged is not read. What records mean is not known here.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import mmap
import os
import struct
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Final

from clew.dataclass import dataclass, replace
from clew.enumeration import IntEnum
from clew.errors import OutputError
from clew.protocol._constants import RECORD_BYTES

__all__ = [
    "CUT_OFF",
    "UNIT_BYTES",
    "Frame",
    "FrameKind",
    "JournalWriter",
    "ProcessJournal",
    "iter_frames",
    "read_frame_bytes",
]

CUT_OFF: Final = "the recording was cut off; what was recorded until then is here"
"""A line for people, of a process or of the whole recording."""

UNIT_BYTES: Final = 64
MAX_OVERFLOW_RECORDS_BYTES: Final = 64 << 20
MAX_OVERFLOW_BYTES: Final = 512 << 20

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


class JournalWriter:
    """Writes a journal. A full disk does not raise: what follows is kept in memory, up to a limit."""

    def __init__(self, path: Path) -> None:
        self.path = path
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            self._fd = os.open(path, flags, 0o666)
        except OSError as error:
            raise OutputError.from_os_error(path, error) from error
        # Held for as long as this process lives: nobody recovers what is still being written.
        fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.size_bytes = 0
        """How much of the file is whole."""
        self.failure: OSError | None = None
        """Why the file ends early, or None."""
        self.overflow: list[Frame] = []
        """What found no room in the file, in memory."""
        self._overflow_bytes = 0

    def __enter__(self) -> JournalWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def write(
        self,
        kind: FrameKind,
        payload: bytes | memoryview,
        *,
        second: bytes | memoryview = b"",
        process: int = 0,
        stream: int = 0,
        slot: int = 0,
        first: int = 0,
    ) -> bool:
        """Append a frame of `payload` and then `second`; False if there was no room, not even in memory."""
        frame = Frame(kind, process, stream, slot, first, self.size_bytes, memoryview(payload))
        size_bytes = len(payload) + len(second)
        written_bytes = self._append(frame, second) if self.failure is None else 0
        if written_bytes is None:
            return True
        limit = MAX_OVERFLOW_RECORDS_BYTES if kind is FrameKind.RECORDS else MAX_OVERFLOW_BYTES
        if self._overflow_bytes + size_bytes - written_bytes > limit:
            return False
        self._overflow_bytes += size_bytes - written_bytes
        rest = memoryview(bytes(payload) + bytes(second))[written_bytes:]
        self.overflow.append(replace(frame, payload=rest))
        return True

    def retry(self) -> bool:
        """Write what is kept in memory, as far as there is room for it by now; whether that was all."""
        n_written = 0
        for frame in self.overflow:
            written_bytes = self._append(frame)
            if written_bytes is not None:
                self.overflow[n_written] = replace(frame, payload=frame.payload[written_bytes:])
                self._overflow_bytes -= written_bytes
                break
            self._overflow_bytes -= len(frame.payload)
            n_written += 1
        else:
            self.failure = None
        del self.overflow[:n_written]
        return not self.overflow

    def withdraw(self) -> memoryview:
        """Take the file's content into memory, and leave it empty."""
        content = memoryview(self.path.read_bytes())[: self.size_bytes]
        os.ftruncate(self._fd, 0)
        return content

    def restore(self, content: memoryview) -> None:
        """Write what was withdrawn again, and what is kept in memory, as far as there is room: records last."""
        frames = [*iter_frames(content), *self.overflow]
        self.size_bytes = 0
        self.overflow = sorted(frames, key=lambda frame: frame.kind == FrameKind.RECORDS)
        self._overflow_bytes = sum(len(frame.payload) for frame in self.overflow)
        self.retry()

    def find(self) -> Path | None:
        """Where the file is now: at `path`, unless somebody moved it; None if it was removed."""
        for place in (self.path, Path(f"/proc/self/fd/{self._fd}")):
            with contextlib.suppress(OSError):
                found = place if place == self.path else place.readlink()
                if os.path.samestat(found.stat(), os.fstat(self._fd)):
                    return found
        return None

    def remove(self) -> None:
        """The trace is whole without it."""
        self.path.unlink(missing_ok=True)

    def _append(self, frame: Frame, second: bytes | memoryview = b"") -> int | None:
        """Write a frame of `frame.payload` and then `second`. None; or what there was room for, a part of records."""
        size_bytes = len(frame.payload) + len(second)
        fields = (frame.kind, _VERSION, frame.stream, frame.slot, size_bytes, frame.first, frame.process)
        header = bytearray(_HEADER.pack(_MAGIC, *fields, 0))
        checksum = zlib.crc32(second, zlib.crc32(frame.payload, zlib.crc32(header[:_HEADER_BEFORE_CHECKSUM_BYTES])))
        struct.pack_into("<I", header, _HEADER_BEFORE_CHECKSUM_BYTES, checksum)
        try:
            self._write_all([header, frame.payload, second, bytes(-size_bytes % UNIT_BYTES)])
        except OSError as error:
            self.failure = error
            room_bytes = os.fstat(self._fd).st_size - self.size_bytes - _HEADER.size
            os.ftruncate(self._fd, self.size_bytes)
            fitting_bytes = room_bytes // RECORD_BYTES * RECORD_BYTES
            if frame.kind != FrameKind.RECORDS or fitting_bytes <= 0:
                return 0
            part = memoryview(bytes(frame.payload) + bytes(second))[:fitting_bytes]
            written_bytes = self._append(replace(frame, payload=part))
            return fitting_bytes if written_bytes is None else written_bytes
        self.size_bytes += _HEADER.size + size_bytes + -size_bytes % UNIT_BYTES
        return None

    def _write_all(self, parts: Sequence[bytes | bytearray | memoryview]) -> None:
        wanted_bytes = sum(map(len, parts))
        written_bytes = os.writev(self._fd, parts)
        if written_bytes < wanted_bytes:
            rest = memoryview(b"".join(parts))[written_bytes:]
            while rest:
                rest = rest[os.write(self._fd, rest) :]

    def close(self) -> None:
        """Close the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


class ProcessJournal:
    """What one process has written into a journal: `number` is the process' number there."""

    def __init__(self, writer: JournalWriter, number: int) -> None:
        self._writer = writer
        self.number = number

    @property
    def folder(self) -> Path:
        """The trace's directory."""
        return self._writer.path.parent

    def write(
        self,
        kind: FrameKind,
        payload: bytes | memoryview,
        *,
        second: bytes | memoryview = b"",
        stream: int = 0,
        slot: int = 0,
        first: int = 0,
    ) -> bool:
        """Append a frame of `payload` and then `second`; False if there was no room, not even in memory."""
        return self._writer.write(
            kind, payload, second=second, process=self.number, stream=stream, slot=slot, first=first
        )

    def write_json(self, kind: FrameKind, content: dict[str, Any], *, stream: int = 0, slot: int = 0) -> bool:
        """Append a frame that holds `content` as JSON; False if there was no room."""
        return self.write(kind, json.dumps(content).encode("ascii"), stream=stream, slot=slot)


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
