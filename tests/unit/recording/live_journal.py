"""What a recorder writes into its journal of a made-up program, in pieces, for those who read it as it grows."""

from __future__ import annotations

import dataclasses
import json
import random
from collections.abc import Sequence
from typing import Any

import numpy as np

from clew.protocol._generated import RECORD_BYTES, RecordKind
from clew.recording.journal.frames import Frame, FrameKind
from clew.recording.live.counters import RunningThread
from clew.recording.raw.ended_threads import ENDED_THREAD, pack_ended
from clew.recording.raw.process import Counters, RawProcess, RawThread

__all__ = ["StandInCounters", "make_frame", "make_frames", "make_thread_frames", "pack_threads"]


class StandInCounters:
    """Counters of threads that run, as far as they are told by `rise`; what shared memory says otherwise."""

    def __init__(self, process: RawProcess) -> None:
        self.status = process.status
        self._all = process.threads
        self.threads: list[RunningThread] = []

    def rise(self, share: float) -> None:
        """Threads that run have counted a share of all that they will, at least once where they will at all."""
        known = {one.slot for one in self.threads} or {one.slot for one in self._all}
        self.threads = [
            RunningThread(
                one.slot,
                one.tid,
                one.parent_tid,
                one.start_tsc,
                Counters(one.counters.index, np.ceil(one.counters.value * share).astype(np.uint64)),
            )
            for one in self._all
            if one.slot in known
        ]

    def read(self, _mode: Any) -> None:
        """What is there was told by `rise`."""

    def settle(self, slot: int, _tid: int, _start_tsc: int) -> None:
        self.threads = [one for one in self.threads if one.slot != slot]

    def close(self) -> None:
        self.threads = []


def make_frames(process: RawProcess, rng: random.Random, *, is_together: bool = False) -> list[Frame]:
    """The frames of a process: its records in pieces cut anywhere, then its threads one after another, or `is_together`
    in one frame, then its end."""
    start = {
        "pid": process.pid,
        "parent_pid": process.parent_pid,
        "executable": process.executable,
        "command": process.command,
        "start_ns": process.start_ns,
        "mode": int(process.mode),
        "initial_images": [dataclasses.asdict(image) for image in process.initial_images],
    }
    frames = [_json(FrameKind.PROCESS, start)]
    heads = process.records[:, :2].copy().view("<u2")[:, 0]
    # The runtime hands over whole records.
    cuts = [at for at in range(1, len(heads)) if heads[at] != RecordKind.CONTINUATION and rng.random() < 0.2]
    for first, last in zip([0, *cuts], [*cuts, len(heads)], strict=True):
        frames.append(make_frame(FrameKind.RECORDS, process.records[first:last].tobytes()))
    if is_together:
        streams = [dataclasses.replace(thread, stream=stream) for stream, thread in enumerate(process.threads, 1)]
        frames.append(make_frame(FrameKind.ENDED, pack_threads(streams, [b""] * len(streams)), first=len(streams)))
    else:
        for stream, thread in enumerate(process.threads, 1):
            frames += make_thread_frames(stream, thread)
    frames.append(make_frame(FrameKind.STATUS, process.status.tobytes()))
    end: dict[str, Any] = {"end_ns": process.end_ns, "exit_code": 0, "signal": None, "is_lost": False, "warnings": []}
    return [*frames, _json(FrameKind.PROCESS_END, end)]


def make_thread_frames(stream: int, thread: RawThread) -> list[Frame]:
    """The frames of a thread that ended: its counters, and its row."""
    values = np.zeros(thread.counters.last + 1, np.uint64)
    values[thread.counters.index] = thread.counters.value
    row = {
        "tid": thread.tid,
        "parent_tid": thread.parent_tid,
        "name": thread.name,
        "start_tsc": thread.start_tsc,
        "end_tsc": thread.end_tsc,
        "end_kind": thread.end_kind,
        "lost_records": 0,
        "records": 0,
        "has_ended": True,
    }
    counted = make_frame(FrameKind.COUNTERS, values.tobytes(), stream, thread.slot)
    return [counted, _json(FrameKind.THREAD, row, stream, thread.slot)]


def pack_threads(threads: Sequence[RawThread], records: Sequence[bytes]) -> bytes:
    """The payload of a frame of threads that ended, with the records of each."""
    rows = np.zeros(len(threads), ENDED_THREAD)
    for row, thread, own in zip(rows, threads, records, strict=True):
        for name in ("stream", "slot", "tid", "parent_tid", "end_kind", "start_tsc", "end_tsc", "lost_records"):
            row[name] = getattr(thread, name)
        row["name"], row["tail_bytes"] = thread.name.encode(), len(thread.path_tail)
        row["n_records"], row["n_counters"] = len(own) // RECORD_BYTES, len(thread.counters.index)
    value = np.concatenate([thread.counters.value for thread in threads])
    index = np.concatenate([thread.counters.index for thread in threads])
    return pack_ended(rows, b"".join(records), value, index, b"".join(thread.path_tail for thread in threads))


def make_frame(kind: FrameKind, payload: bytes, stream: int = 0, slot: int = 0, first: int = 0) -> Frame:
    """One frame of process 0."""
    return Frame(kind, 0, stream, slot, first, 0, memoryview(payload))


def _json(kind: FrameKind, content: dict[str, Any], stream: int = 0, slot: int = 0) -> Frame:
    return make_frame(kind, json.dumps(content).encode(), stream, slot)
