"""Writes a thread's path while it is recorded.

Runs in the controller. What comes is compressed as it comes, so that memory does not grow with the length of a run;
what was written is kept whatever happens later: frames are only appended.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import zstandard

from clew.store.path_checkpoints import (
    CHECKPOINT,
    SAMPLE,
    Checkpoint,
    carry_calls,
    encode_checkpoints,
    find_states,
    shuffle,
)
from clew.store.path_frames import LEVEL, FrameKind, compress, encode_frame, pack_frame

__all__ = ["PathWriter"]

Array = npt.NDArray[Any]

STORED_BYTES: Final = 96 << 10
CONTENT_BYTES: Final = 32 << 20
"""A stream's frame is stored in about as many bytes, and holds no more: a part of it is read from its start."""
WAITING_BYTES: Final = 128 << 10
"""So much of a stream is compressed at once, if there is no more; zstd itself writes no sooner."""
MAX_EVENTS: Final = 1 << 12
MAX_CHECKPOINTS: Final = 32
MAX_SAMPLES: Final = 1 << 10
"""How many a frame holds."""
MIN_GROWTH_BYTES: Final = 16 << 10
MIN_CYCLES: Final = 1 << 25
"""A checkpoint is kept if the path grew by so much since the last one, or so much time went by."""
MAX_RISES: Final = 1 << 18

_RISE: Final = np.dtype([("index", "<u4"), ("rise", "<u8")])


class PathWriter:
    """Writes the path file at `path`, which is made when there is something to write.

    Every method may find no room on the disk: `failure` says so then, and nothing more is written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.failure: OSError | None = None
        self._size_bytes = 0
        self._fd = -1
        self._gathered: list[bytes] | None = None
        self._streams = {kind: _Stream(kind) for kind in (FrameKind.SURPRISES, FrameKind.SYMBOLS)}
        self._events: list[Array] = []
        self._n_waiting = self._n_events = 0
        self._states: list[Array] = []
        self._n_states = 0
        self._checkpoints: list[Checkpoint] = []
        self._n_checkpoints = 0
        self._samples: list[tuple[int, int, int]] = []
        self._n_samples = 0
        self._rises: list[Array] = []
        self._calls = np.zeros(0, np.uint64)
        self._kept_at = (0, 0)

    def add_accesses(self, start: int, data: bytes | memoryview) -> None:
        """What is done with memory is no part of a trace."""

    def add_bytes(self, kind: FrameKind, start: int, data: bytes | memoryview) -> None:
        """Append a piece of a stream that begins at `start`; what lies before it and never came is missing."""
        stream = self._streams[kind]
        if start != stream.end:
            self._finish(stream)
            stream.start = stream.end = start
        stream.add(data)
        if stream.stored_bytes >= STORED_BYTES or stream.end - stream.start >= CONTENT_BYTES:
            self._finish(stream)

    def add_events(self, records: Array) -> None:
        """Append events, of dtype PATH_EVENT_RECORD."""
        states = find_states(records, self._n_events + self._n_waiting)
        if len(states):
            self._states.append(states)
        self._events.append(records)
        self._n_waiting += len(records)
        if self._n_waiting >= MAX_EVENTS:
            self._finish_events()

    def add_checkpoint(self, record: np.void, counters: bytes, calls: bytes, *, is_after_loss: int) -> None:
        """Append a checkpoint: its event, of dtype PATH_EVENT_RECORD, and what came with it."""
        self._rises.append(np.frombuffer(counters[: len(counters) // _RISE.itemsize * _RISE.itemsize], _RISE))
        self._calls = carry_calls(self._calls, record, calls)
        grown, now = self._grown_bytes(), int(record["tsc"])
        kept_bytes, kept_tsc = self._kept_at
        if not is_after_loss and grown - kept_bytes < MIN_GROWTH_BYTES and now - kept_tsc < MIN_CYCLES:
            if sum(map(len, self._rises)) > MAX_RISES:
                self._rises = [_add_up(self._rises)]
            return
        self._kept_at = grown, now
        head = np.zeros(1, CHECKPOINT)
        for name in ("tsc", "surprise_bytes", "decisions", "symbol_bytes", "depth", "pc"):
            head[name] = record[name]
        head["events"], head["is_after_loss"] = self._n_events + self._n_waiting, is_after_loss
        rises = _add_up(self._rises)
        self._rises = []
        self._checkpoints.append(Checkpoint(head[0], rises["index"].copy(), rises["rise"].copy(), self._calls))
        if len(self._checkpoints) >= MAX_CHECKPOINTS:
            self._finish_checkpoints()

    def add_sample(self, ns: int, surprise_bytes: int, decisions: int) -> None:
        """Append how far the path had come by a time, as SAMPLE has it."""
        self._samples.append((ns, surprise_bytes, decisions))
        if len(self._samples) >= MAX_SAMPLES:
            self._finish_samples()

    def save(self) -> None:
        """Write what waits, at once. More may come."""
        self._gathered = []
        for stream in self._streams.values():
            self._finish(stream)
        self._finish_events()
        self._finish_states()
        self._finish_checkpoints()
        self._finish_samples()
        frames, self._gathered = self._gathered, None
        if frames:
            self._write(b"".join(frames))

    def close(self) -> None:
        """Write what waits, and close the file."""
        self.save()
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    @property
    def size_bytes(self) -> int:
        """How long the file is; behind `save` everything in it is of one moment: streams and events come as far."""
        return self._size_bytes

    def _grown_bytes(self) -> int:
        return self._size_bytes + sum(stream.stored_bytes for stream in self._streams.values())

    def _finish(self, stream: _Stream) -> None:
        size = stream.end - stream.start
        if size:
            self._write(encode_frame(stream.kind, stream.start, size, stream.finish(), size))
        stream.start = stream.end

    def _finish_events(self) -> None:
        if self._n_waiting:
            content = shuffle(np.concatenate(self._events))
            self._write(pack_frame(FrameKind.EVENTS, self._n_events, self._n_waiting, content))
            self._n_events += self._n_waiting
            self._events, self._n_waiting = [], 0

    def _finish_states(self) -> None:
        if self._states:
            states = np.concatenate(self._states)
            self._write(pack_frame(FrameKind.STATES, self._n_states, len(states), shuffle(states)))
            self._n_states += len(states)
            self._states = []

    def _finish_checkpoints(self) -> None:
        n = len(self._checkpoints)
        if n:
            content = encode_checkpoints(self._checkpoints)
            self._write(pack_frame(FrameKind.CHECKPOINTS, self._n_checkpoints, n, content))
            self._n_checkpoints += n
            self._checkpoints = []

    def _finish_samples(self) -> None:
        n = len(self._samples)
        if n:
            content = shuffle(np.array(self._samples, SAMPLE))
            self._write(pack_frame(FrameKind.SAMPLES, self._n_samples, n, content))
            self._n_samples += n
            self._samples = []

    def _write(self, frame: bytes) -> None:
        if self._gathered is not None:
            self._gathered.append(frame)
            return
        if self.failure is not None:
            return
        try:
            if self._fd < 0:
                self._fd = self._open()
                self._size_bytes = os.fstat(self._fd).st_size
            rest = memoryview(frame)
            while rest:
                rest = rest[os.write(self._fd, rest) :]
            self._size_bytes += len(frame)
        except OSError as error:
            self.failure = error
            if self._fd >= 0:
                os.ftruncate(self._fd, self._size_bytes)

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC
        try:
            return os.open(self.path, flags, 0o666)
        except FileNotFoundError:
            self.path.parent.mkdir(exist_ok=True)
            return os.open(self.path, flags, 0o666)


class _Stream:
    """A frame of a stream under way: bytes from `start` up to `end`, compressed so far to `stored_bytes`."""

    def __init__(self, kind: FrameKind) -> None:
        self.kind = kind
        self.start = self.end = 0
        self._begin()

    def _begin(self) -> None:
        self._compressor: zstandard.ZstdCompressionObj | None = None
        self._parts: list[bytes] = []
        self.stored_bytes = 0

    def add(self, data: bytes | memoryview) -> None:
        self.end += len(data)
        if self._compressor is None:
            self._parts.append(bytes(data))
            if self.end - self.start < WAITING_BYTES:
                return
            data, self._parts = b"".join(self._parts), []
            self._compressor = zstandard.ZstdCompressor(level=LEVEL).compressobj()
        part = self._compressor.compress(data)
        self._parts.append(part)
        self.stored_bytes += len(part)

    def finish(self) -> bytes:
        """The payload; another frame begins."""
        content = b"".join(self._parts)
        payload = compress(content) if self._compressor is None else content + self._compressor.flush()
        self._begin()
        return payload


def _add_up(rises: list[Array]) -> Array:
    """What counters rose in all, by index."""
    joined = np.concatenate([np.zeros(0, _RISE), *rises])
    index = joined["index"]
    if len(rises) > 1 or (index[1:] <= index[:-1]).any():
        joined = joined[np.argsort(index, kind="stable")]
        index = joined["index"]
    first = np.flatnonzero(np.concatenate(([True], index[1:] != index[:-1]))[: len(index)])
    table = joined[first]
    if len(joined):
        table["rise"] = np.add.reduceat(joined["rise"], first)
    return table
