"""Writes a journal: what comes from the target while it runs, as it comes, in one file of the trace.

Runs in the controller. What frames hold is not known here.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Final

from clew.dataclass import replace
from clew.errors import OutputError
from clew.protocol._constants import RECORD_BYTES
from clew.recording.journal.frames import UNIT_BYTES, Frame, FrameKind, iter_frames, pack_header

__all__ = ["JournalWriter"]

MAX_OVERFLOW_RECORDS_BYTES: Final = 64 << 20
MAX_OVERFLOW_BYTES: Final = 512 << 20


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
        header = pack_header(frame, size_bytes, second)
        try:
            self._write_all([header, frame.payload, second, bytes(-size_bytes % UNIT_BYTES)])
        except OSError as error:
            self.failure = error
            room_bytes = os.fstat(self._fd).st_size - self.size_bytes - UNIT_BYTES
            os.ftruncate(self._fd, self.size_bytes)
            fitting_bytes = room_bytes // RECORD_BYTES * RECORD_BYTES
            if frame.kind != FrameKind.RECORDS or fitting_bytes <= 0:
                return 0
            part = memoryview(bytes(frame.payload) + bytes(second))[:fitting_bytes]
            written_bytes = self._append(replace(frame, payload=part))
            return fitting_bytes if written_bytes is None else written_bytes
        self.size_bytes += UNIT_BYTES + size_bytes + -size_bytes % UNIT_BYTES
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
