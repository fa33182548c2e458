"""From a journal back to what a session recorded.

Runs in the controller, when the target has ended or clew was cut off. What records mean is not known here.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.address import Pid, Tid
from clew.errors import TraceDamagedError
from clew.protocol._generated import MAX_COUNTER_BYTES, RECORD_BYTES, STATUS_PAGE, Mode
from clew.recording.journal import Frame, FrameKind, iter_frames
from clew.recording.raw import RawImage, RawProcess, RawThread

__all__ = ["read_journal"]


def read_journal(path: Path, overflow: Sequence[Frame] = ()) -> RawProcess:
    """Everything in the journal at `path`, and then in `overflow`, frames that found no room in the file.

    Raises TraceDamagedError if not even its beginning is there.
    A journal that was cut off gives what is in front of the cut, with a warning.
    """
    records: dict[int, list[Frame]] = defaultdict(list)
    counters: dict[int, list[Frame]] = defaultdict(list)
    slots: dict[int, int] = {}
    threads: dict[int, dict[str, Any]] = {}
    start: dict[str, Any] | None = None
    end: dict[str, Any] | None = None
    status: np.void = np.zeros(1, STATUS_PAGE)[0]
    try:
        for frame in itertools.chain(iter_frames(path), overflow):
            match frame.kind:
                case FrameKind.PROCESS:
                    start = json.loads(bytes(frame.payload))
                case FrameKind.RECORDS:
                    records[frame.stream].append(frame)
                    slots[frame.stream] = frame.slot
                case FrameKind.COUNTERS:
                    counters[frame.stream].append(frame)
                case FrameKind.THREAD:
                    threads[frame.stream] = json.loads(bytes(frame.payload))
                    slots[frame.stream] = frame.slot
                case FrameKind.STATUS:
                    status = np.frombuffer(frame.payload, STATUS_PAGE)[0].copy()
                case FrameKind.PROCESS_END:
                    end = json.loads(bytes(frame.payload))
        if start is None:
            raise TraceDamagedError(path, "the journal's beginning is missing")
        return RawProcess(
            pid=Pid(start["pid"]),
            parent_pid=Pid(start["parent_pid"]),
            executable=start["executable"],
            command=start["command"],
            start_ns=start["start_ns"],
            end_ns=start["start_ns"] if end is None else end["end_ns"],
            exit_code=None if end is None else end["exit_code"],
            signal=None if end is None else end["signal"],
            mode=Mode(start["mode"]),
            initial_images=[RawImage(**image) for image in start["initial_images"]],
            records=_join_records([frame for stream in sorted(records) for frame in records[stream]]),
            threads=[
                _read_thread(slots[stream], threads.get(stream, {}), counters[stream]) for stream in sorted(slots)
            ],
            status=status,
            warnings=["the recording was cut off; what was recorded until then is here"]
            if end is None
            else end["warnings"],
        )
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise TraceDamagedError(path, f"the journal can't be read ({error})") from error


def _join_records(frames: list[Frame]) -> npt.NDArray[np.uint8]:
    parts = [np.frombuffer(frame.payload, np.uint8) for frame in frames if len(frame.payload) % RECORD_BYTES == 0]
    joined = np.concatenate(parts) if parts else np.zeros(0, np.uint8)
    return joined.reshape(-1, RECORD_BYTES)


def _read_thread(slot: int, row: dict[str, Any], frames: list[Frame]) -> RawThread:
    length = max((frame.first + len(frame.payload) // 8 for frame in frames), default=0)
    # Pages of zeros that are never written take no memory.
    counters = np.zeros(min(length, MAX_COUNTER_BYTES // 8), np.uint64)
    for frame in frames:
        values = np.frombuffer(frame.payload, np.uint64)[: max(len(counters) - frame.first, 0)]
        counters[frame.first : frame.first + len(values)] = values
    has_ended = bool(row.get("has_ended", False))
    return RawThread(
        slot=slot,
        tid=Tid(row.get("tid", 0)),
        parent_tid=Tid(row.get("parent_tid", 0)),
        name=row.get("name", ""),
        start_tsc=row.get("start_tsc", 0),
        end_tsc=row.get("end_tsc", 0) if has_ended else 0,
        end_kind=row.get("end_kind", 0),
        lost_records=row.get("lost_records", 0),
        counters=counters,
    )
