"""A thread's tags as they came (mode region): its words and numbers, out of its records, some at a time.

Runs in the controller, after the target ended. There may be far more tags than memory holds, so they stay in the
journal until they are asked for. What words mean is not known here. Records come from the target and are untrusted.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass
from clew.protocol._generated import (
    BUFFER_GUARD_BYTES,
    CONTINUATION_PAYLOAD_BYTES,
    RECORD_BYTES,
    REGION_BUFFER_BYTES,
    REGION_CHUNK_RECORD,
    REGION_NUMBERS_CELL,
    REGION_NUMBERS_LEFT_CELL,
    REGION_NUMBERS_OFFSET,
    REGION_WORDS_CELL,
    REGION_WORDS_LEFT_CELL,
    REGION_WORDS_OFFSET,
    RecordKind,
)
from clew.recording.raw.records import iter_records

if TYPE_CHECKING:
    from clew.recording.journal.frames import Frame

__all__ = ["TagChunks", "TagPiece", "without_chunks"]

Array = npt.NDArray[Any]

_HEADER_BYTES: Final = RECORD_BYTES - CONTINUATION_PAYLOAD_BYTES
_PIECE_BYTES: Final = 1 << 20
"""So many bytes of words and numbers are handed over together."""
_STREAMS: Final = (
    (REGION_WORDS_CELL, REGION_WORDS_LEFT_CELL, REGION_WORDS_OFFSET, "<u4"),
    (REGION_NUMBERS_CELL, REGION_NUMBERS_LEFT_CELL, REGION_NUMBERS_OFFSET, "<u8"),
)


@dataclass(frozen=True)
class TagPiece:
    """Some of a thread's words (u32), and some of its numbers (u64), each behind those of the piece before.

    Words may come earlier than the numbers that go with them. `is_end`: with it nothing is missing that the thread
    told before its counters were read.
    """

    words: Array
    numbers: Array
    is_end: bool = False


class TagChunks:
    """The words and numbers of one thread whose records are in `frames`."""

    def __init__(self, frames: Sequence[Frame]) -> None:
        self._frames = frames

    def iter_pieces(self, window: bytes) -> Iterator[TagPiece]:
        """All of them, in order; `window` are the first bytes of the thread's counters.

        The window holds what has not left the buffers. What follows a gap is left out.
        """
        streams = _Stream(), _Stream()
        for heads, data in _iter_chunks(self._frames):
            for head, chunk in zip(heads, data, strict=True):
                if head["stream"] < len(streams):
                    streams[head["stream"]].add(int(head["start"]), chunk)
            if sum(stream.n_waiting for stream in streams) >= _PIECE_BYTES:
                yield _take(streams)
        fits = [
            stream.add_tail(window, cell, left_cell, offset)
            for stream, (cell, left_cell, offset, _) in zip(streams, _STREAMS, strict=True)
        ]
        yield _take(streams, is_end=all(fits))


class _Stream:
    """One of a thread's streams: where it has come to, and what of it waits to be taken."""

    def __init__(self) -> None:
        self._end = 0
        self._waiting: list[bytes] = []
        self.n_waiting = 0

    def add(self, start: int, data: bytes) -> None:
        if start == self._end:
            self._waiting.append(data)
            self._end += len(data)
            self.n_waiting += len(data)

    def add_tail(self, window: bytes, cell: int, left_cell: int, offset: int) -> bool:
        """What is left in the buffer, if it follows what was left before.

        Some of it may have left before a kill came, and the cells not say so yet.
        """
        cells = np.frombuffer(window, np.uint64, 8).tolist()
        waiting, left = (cells[cell] + REGION_BUFFER_BYTES) % (1 << 64), cells[left_cell]
        # Counters that were never read are zeros: a buffer that never left, and is full.
        is_there = any(cells) and waiting <= REGION_BUFFER_BYTES + BUFFER_GUARD_BYTES
        follows = is_there and left <= self._end <= left + waiting
        if follows:
            self.add(self._end, window[offset + self._end - left : offset + waiting])
        return follows

    def take(self, kind: str) -> Array:
        """What waits, as numbers of `kind`; half a number goes on waiting."""
        data = b"".join(self._waiting)
        size_bytes = len(data) // np.dtype(kind).itemsize * np.dtype(kind).itemsize
        self._waiting = [data[size_bytes:]]
        self.n_waiting = len(data) - size_bytes
        return np.frombuffer(data[:size_bytes], kind)


def _take(streams: tuple[_Stream, _Stream], *, is_end: bool = False) -> TagPiece:
    words, numbers = (stream.take(kind) for stream, (*_, kind) in zip(streams, _STREAMS, strict=True))
    return TagPiece(words, numbers, is_end)


def without_chunks(frames: Sequence[Frame]) -> Iterator[Array]:
    """The records in `frames` that bring no tags, copied, with their continuations."""
    for frame, data, heads, n_following in _iter_split(frames):
        is_taken = np.zeros(len(data) + 1, np.int64)
        is_taken[heads] += 1
        is_taken[heads + 1 + n_following] -= 1
        yield data[np.cumsum(is_taken)[:-1] == 0]
        frame.let_go()


def _iter_chunks(frames: Sequence[Frame]) -> Iterator[tuple[Array, list[bytes]]]:
    """Of each frame the chunk records that are whole, and what they bring."""
    for frame, data, heads, n_following in _iter_split(frames):
        rows = np.ascontiguousarray(data[heads]).view(REGION_CHUNK_RECORD)[:, 0]
        whole = np.flatnonzero(rows["size_bytes"] <= n_following * CONTINUATION_PAYLOAD_BYTES)
        payload = data[:, _HEADER_BYTES:]
        found = []
        for at, n, size in zip(heads[whole] + 1, n_following[whole], rows["size_bytes"][whole], strict=True):
            found.append(payload[at : at + n].tobytes()[:size])
        yield rows[whole], found
        frame.let_go()


def _iter_split(frames: Sequence[Frame]) -> Iterator[tuple[Frame, Array, Array, Array]]:
    """For each frame: its records, where among them chunk records are, and how many of each one's continuations follow.

    A record that is cut off at the frame's end comes with the next one.
    """
    rest = np.zeros((0, RECORD_BYTES), np.uint8)
    last = len(frames) - 1
    for index, frame in enumerate(frames):
        for own in iter_records([frame]):
            data = np.concatenate([rest, own]) if len(rest) else own
            head = data.view("<u2")[:, :2]
            kinds, announced = head[:, 0], head[:, 1]
            n = len(data)
            begins = np.flatnonzero(kinds != RecordKind.CONTINUATION)
            is_chunk = kinds[begins] == RecordKind.REGION_CHUNK
            heads, ends = begins[is_chunk], np.concatenate((begins[1:], [n]))[: len(begins)][is_chunk]
            n_following = np.minimum(ends - heads - 1, announced[heads])
            is_cut = len(heads) > 0 and ends[-1] == n and n_following[-1] < announced[heads[-1]] and index < last
            if is_cut:
                n, heads, n_following = int(heads[-1]), heads[:-1], n_following[:-1]
            rest = data[n:].copy()
            yield frame, data[:n], heads, n_following
