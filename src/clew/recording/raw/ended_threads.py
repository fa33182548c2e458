"""Threads that ended before anything of them was taken, many in one frame of the journal.

Runs in the controller. Pure. A program may make thousands of threads a second, each of which does next to nothing: what
they left is taken, written and read as arrays, not thread by thread. A frame holds, one behind the other: a row of
dtype ENDED_THREAD for each thread (`first` of the frame says how many), the records of all, the values (u64) and then
the indices (u32) of the counters that are not 0, and what had not left the target of their paths (see `path_tail`); of
each thread as many as its row says, in the order of the rows. What records and counters mean is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from clew.address import Tid
from clew.dataclass import dataclass, replace
from clew.protocol._generated import MAX_COUNTER_BYTES, PATH_CHUNK_RECORD, RECORD_BYTES, RecordKind
from clew.recording.raw.process import Counters, RawThread

if TYPE_CHECKING:
    from clew.recording.journal.frames import Frame

__all__ = ["ENDED_THREAD", "EndedThreads", "find_path_records", "pack_ended"]

Array = npt.NDArray[Any]

ENDED_THREAD: Final = np.dtype(
    [
        ("stream", "<u4"),
        ("slot", "<u4"),
        ("tid", "<u4"),
        ("parent_tid", "<u4"),
        ("end_kind", "<u4"),
        ("n_records", "<u4"),
        ("n_counters", "<u4"),
        ("tail_bytes", "<u4"),
        ("start_tsc", "<u8"),
        ("end_tsc", "<u8"),
        ("lost_records", "<u8"),
        ("name", "S16"),
    ]
)
"""A thread as its slot told of it, and how much of what follows is its own. `stream` is its number in the journal."""


def pack_ended(rows: Array, records: bytes, value: Array, index: Array, tails: bytes) -> bytes:
    """The payload of a frame: `rows` of dtype ENDED_THREAD, and what they count."""
    return b"".join([rows.tobytes(), records, value.astype("<u8").tobytes(), index.astype("<u4").tobytes(), tails])


@dataclass(frozen=True)
class EndedThreads:
    """A frame as read: `records` has shape (n, RECORD_BYTES), `index` (i64) and `value` (u64) are of the counters.

    `is_path` says which of the records are of paths (mode full).
    """

    frame: Frame
    rows: Array
    records: Array
    is_path: Array
    index: Array
    value: Array
    tails: memoryview

    @classmethod
    def parse(cls, frame: Frame) -> EndedThreads:
        """Raises ValueError if the frame does not hold what its rows say."""
        payload = frame.payload
        if frame.first * ENDED_THREAD.itemsize > len(payload):
            raise ValueError("a frame of ended threads is cut off")
        rows: Array = np.frombuffer(payload, ENDED_THREAD, frame.first)
        n_records, n_counters, tail_bytes = (
            int(rows[name].sum(dtype=np.int64)) for name in ("n_records", "n_counters", "tail_bytes")
        )
        sizes = (rows.nbytes, RECORD_BYTES * n_records, 8 * n_counters, 4 * n_counters, tail_bytes)
        if sum(sizes) != len(payload):
            raise ValueError("a frame of ended threads contradicts itself")
        _, first, values, indices, tails = np.cumsum((0, *sizes[:-1])).tolist()
        records = np.frombuffer(payload[first:values], np.uint8).reshape(-1, RECORD_BYTES)
        return cls(
            frame,
            rows,
            records,
            find_path_records(records),
            np.frombuffer(payload[indices:tails], "<u4").astype(np.int64),
            np.frombuffer(payload[values:indices], "<u8"),
            payload[tails:],
        )

    @property
    def record_frame(self) -> Frame:
        """The records that are not of paths, as a frame of records has them."""
        start = self.rows.nbytes
        if self.is_path.any():
            return replace(self.frame, payload=memoryview(self.records[~self.is_path].tobytes()))
        payload = self.frame.payload[start : start + self.records.size]
        return replace(self.frame, offset=self.frame.offset + start, payload=payload)

    def iter_threads(self) -> Iterator[RawThread]:
        """The threads. They have counters of their own: the frame may be let go of."""
        columns = [self.rows[name].tolist() for name in ENDED_THREAD.names or ()]
        is_sound = (self.index < MAX_COUNTER_BYTES // 8) & (self.value > 0)
        sound_before = np.concatenate([[0], np.cumsum(is_sound)])
        counters = Counters(self.index[is_sound], self.value[is_sound]).pack()
        counters_at = sound_before[np.concatenate([[0], np.cumsum(self.rows["n_counters"], dtype=np.int64)])].tolist()
        paths_before = np.concatenate([[0], np.cumsum(self.is_path)])
        paths_at = paths_before[np.concatenate([[0], np.cumsum(self.rows["n_records"], dtype=np.int64)])].tolist()
        path_records = self.records[self.is_path]
        tail_end = 0
        for at, row in enumerate(zip(*columns, strict=True)):
            stream, slot, tid, parent_tid, end_kind, _, _, tail_bytes, start_tsc, end_tsc, lost_records, name = row
            own = slice(counters_at[at], counters_at[at + 1])
            tail, tail_end = self.tails[tail_end : tail_end + tail_bytes], tail_end + tail_bytes
            yield RawThread(
                slot,
                Tid(tid),
                Tid(parent_tid),
                name.split(b"\0", 1)[0].decode("utf-8", "replace"),
                start_tsc,
                end_tsc,
                end_kind,
                lost_records,
                Counters(counters.index[own], counters.value[own]),
                stream,
                1,
                bytes(tail),
                None,
                path_records[paths_at[at] : paths_at[at + 1]],
                None,
            )


def find_path_records(records: Array) -> Array:
    """Which of some whole records are of paths, with the rows that follow them; shape (n,), bool."""
    kinds = records[:, :2].copy().view("<u2")[:, 0]
    is_path: Array = kinds == int(RecordKind.PATH_EVENT)
    end = 0
    for at in np.flatnonzero(kinds == int(RecordKind.PATH_CHUNK)).tolist():
        # What is in the rows of a chunk may look like a record.
        if at >= end:
            end = at + 1 + int(records[at].view(PATH_CHUNK_RECORD)[0]["rows"])
            is_path[at:end] = True
    return is_path
