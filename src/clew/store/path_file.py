"""A thread's path, opened for reading: any stretch of it, without what lies before.

Runs in the controller. A file may be damaged, or made up: every number is checked before it is used. What the streams
mean is the path codec's.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass
from clew.errors import TraceDamagedError
from clew.protocol._generated import PATH_EVENT_RECORD
from clew.store.path_checkpoints import (
    SAMPLE,
    STATE,
    Checkpoint,
    FrameRises,
    decode_checkpoints,
    decode_rises,
    unshuffle,
)
from clew.store.path_frames import Frame, FrameKind, read_payload
from clew.store.path_index import PathFacts, PathIndex, read_index
from clew.store.path_segments import StoredSegment, decode_stored
from clew.store.short_paths import read_short, split_name

__all__ = ["PathFile"]

Array = npt.NDArray[Any]

KEPT_FRAMES: Final = 8
"""Frames that are kept uncompressed: whoever reads on, or back, needs the same ones again."""

KEPT_CHECKPOINTS: Final = 4
"""Frames whose checkpoints are kept."""


@dataclass(frozen=True)
class Rises:
    """By how much (u64) some counters rose in front of which checkpoint (i64), rising, and their indices (u32)."""

    checkpoint: Array
    index: Array
    rise: Array


class PathFile:
    """The path file `name` of the trace in `directory`. Every method raises TraceDamagedError where it is damaged.

    `name` may be one of many paths in a file (see `clew.store.short_paths`).
    """

    def __init__(self, directory: Path, name: str) -> None:
        file, number = split_name(name)
        self.path = directory / file
        self.name = name
        try:
            self._file: BinaryIO
            if number is None:
                self._file = open(self.path, "rb")  # noqa: SIM115 - read from for as long as this lives
            else:
                self._file = BytesIO(read_short(self.path, number))
        except OSError as error:
            raise TraceDamagedError(directory, f"{name}: {error.strerror}") from error
        except ValueError as error:
            raise self._damage(error) from error
        try:
            self._index: PathIndex = read_index(self._file)
        except ValueError as error:
            raise self._damage(error) from error
        self._read = lru_cache(KEPT_FRAMES)(self._read_frame)
        self._checkpoints = lru_cache(KEPT_CHECKPOINTS)(self._decode_checkpoints)

    @property
    def facts(self) -> PathFacts:
        """The path as a whole."""
        return self._index.facts

    @property
    def places(self) -> Array:
        """Its checkpoints, of dtype `clew.store.path_index.PLACE`, rising."""
        return self._index.places

    def close(self) -> None:
        """Read no more."""
        self._file.close()

    @cached_property
    def _frames(self) -> dict[int, list[Frame]]:
        table = self._index.frames
        table = table[np.argsort(table["start"], kind="stable")]
        names = ("kind", "start", "size", "stored_bytes", "content_bytes", "offset")
        frames: dict[int, list[Frame]] = {}
        for kind in FrameKind:
            own = table[table["kind"] == kind]
            frames[kind] = [Frame(*row) for row in zip(*(own[name].tolist() for name in names), strict=True)]
        return frames

    def read_bytes(self, kind: FrameKind, start: int, end: int) -> bytes:
        """The bytes of a stream from `start` up to `end`, or up to where something is missing.

        Those of stretches that were re-coded are missing: see `find_segment`.
        """
        found = bytearray()
        for frame in self._find(kind, start, end):
            if frame.start > start + len(found):
                break
            content = self._read(frame)
            found += content[start + len(found) - frame.start : end - frame.start]
        return bytes(found)

    def iter_bytes(self, kind: FrameKind, start: int, end: int) -> Iterator[tuple[int, bytes]]:
        """What is there of the bytes of a stream from `start` up to `end`, frame by frame: where it begins, and it."""
        for frame in self._find(kind, start, end):
            begin = max(start, frame.start)
            yield begin, self._read(frame)[begin - frame.start : max(end - frame.start, 0)]

    def iter_contents(self, kind: FrameKind) -> Iterator[tuple[Frame, bytes]]:
        """All frames of a kind, uncompressed."""
        for frame in self._frames[kind]:
            yield frame, self._read(frame)

    def find_segment(self, number: int) -> StoredSegment | None:
        """The segment that stretch `number` is in; None if its streams are there as they were recorded."""
        for frame in self._find(FrameKind.SEGMENTS, number, number + 1):
            try:
                return decode_stored(frame.start, frame.size, self._read(frame))
            except ValueError as error:
                raise self._damage(error) from error
        return None

    def read_events(self, start: int, end: int) -> Array:
        """Events number `start` up to `end`, of dtype PATH_EVENT_RECORD."""
        parts = [np.zeros(0, PATH_EVENT_RECORD)]
        for frame in self._find(FrameKind.EVENTS, start, end):
            rows = self._unshuffle(frame, PATH_EVENT_RECORD)
            parts.append(rows[max(start - frame.start, 0) : max(end - frame.start, 0)])
        return np.concatenate(parts)

    @cached_property
    def states(self) -> Array:
        """What changes how the path is read, of dtype `clew.store.path_checkpoints.STATE`."""
        parts = [self._unshuffle(frame, STATE) for frame in self._frames[FrameKind.STATES]]
        return np.concatenate([np.zeros(0, STATE), *parts])

    @cached_property
    def samples(self) -> Array:
        """How far the path had come by when, of dtype `clew.store.path_checkpoints.SAMPLE`."""
        parts = [self._unshuffle(frame, SAMPLE) for frame in self._frames[FrameKind.SAMPLES]]
        samples = np.concatenate([np.zeros(0, SAMPLE), *parts])
        # The clock may be set back.
        samples["ns"] = np.maximum.accumulate(samples["ns"])
        return samples

    def read_checkpoint(self, number: int) -> Checkpoint:
        """A checkpoint by its number."""
        for frame in self._find(FrameKind.CHECKPOINTS, number, number + 1):
            return self._checkpoints(frame)[number - frame.start]
        raise self._damage(ValueError(f"checkpoint {number} is missing"))

    def find_rises(self, is_wanted: Array) -> Rises:
        """What the counters rose in front of each checkpoint that `is_wanted` has true at their index."""
        checkpoint, index, rise = [np.zeros(0, np.int64)], [np.zeros(0, np.uint32)], [np.zeros(0, np.uint64)]
        known = np.concatenate((is_wanted, [np.False_]))
        for start, rises in self._rises:
            rows = np.flatnonzero(known[np.minimum(rises.index, len(is_wanted))])
            checkpoint.append(start + np.searchsorted(np.cumsum(rises.n_counters), rows, "right"))
            index.append(rises.index[rows])
            rise.append(rises.rises_at(rows))
        return Rises(np.concatenate(checkpoint), np.concatenate(index), np.concatenate(rise))

    @cached_property
    def _rises(self) -> list[tuple[int, FrameRises]]:
        """Of each frame of checkpoints the number of its first one, and what rose."""
        found = []
        for frame in self._frames[FrameKind.CHECKPOINTS]:
            try:
                found.append((frame.start, decode_rises(self._read(frame), frame.size)))
            except ValueError as error:
                raise self._damage(error) from error
        return found

    def _find(self, kind: FrameKind, start: int, end: int) -> Iterator[Frame]:
        frames = self._frames[kind]
        low, high = 0, len(frames)
        while low < high:
            middle = (low + high) // 2
            if frames[middle].end > start:
                high = middle
            else:
                low = middle + 1
        for frame in frames[low:]:
            if frame.start >= end:
                return
            yield frame

    def _read_frame(self, frame: Frame) -> bytes:
        try:
            content = read_payload(self._file, frame)
        except (ValueError, OSError) as error:
            raise self._damage(error) from error
        if frame.kind in (FrameKind.SURPRISES, FrameKind.SYMBOLS) and len(content) != frame.size:
            raise self._damage(ValueError("a frame has another size than it says"))
        return content

    def _decode_checkpoints(self, frame: Frame) -> list[Checkpoint]:
        try:
            return decode_checkpoints(self._read(frame), frame.size)
        except ValueError as error:
            raise self._damage(error) from error

    def _unshuffle(self, frame: Frame, dtype: np.dtype[Any]) -> Array:
        try:
            rows = unshuffle(self._read(frame), dtype)
        except ValueError as error:
            raise self._damage(error) from error
        if len(rows) != frame.size:
            raise self._damage(ValueError("a frame has another size than it says"))
        return rows

    def _damage(self, error: Exception) -> TraceDamagedError:
        return TraceDamagedError(self.path.parent.parent, f"{self.name} is damaged or truncated ({error})")
