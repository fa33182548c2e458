"""From a journal back to what a session recorded.

Runs in the controller, when the target has ended or clew was cut off. What records mean is not known here.
"""

from __future__ import annotations

import itertools
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.address import Pid, Tid
from clew.errors import TraceDamagedError
from clew.protocol._generated import MAX_COUNTER_BYTES, RECORD_BYTES, STATUS_PAGE, Mode, RecordKind
from clew.recording.journal import Frame, FrameKind, iter_frames
from clew.recording.raw import RawImage, RawProcess, RawThread

__all__ = ["find_announced", "read_journal"]

_PLACES = (RecordKind.IMAGE, RecordKind.UNMAP)
_ANNOUNCEMENTS = (*_PLACES, RecordKind.FRAGMENT, RecordKind.DYNAMIC_EDGE, RecordKind.INVALIDATE)


@dataclass
class _Found:
    """What the journal has of one process."""

    records: dict[int, list[Frame]] = field(default_factory=lambda: defaultdict(list))
    counters: dict[int, list[Frame]] = field(default_factory=lambda: defaultdict(list))
    slots: dict[int, int] = field(default_factory=dict)
    threads: dict[int, dict[str, Any]] = field(default_factory=dict)
    start: dict[str, Any] | None = None
    end: dict[str, Any] | None = None
    status: np.void = field(default_factory=lambda: np.zeros(1, STATUS_PAGE)[0])

    def take(self, frame: Frame) -> None:
        match frame.kind:
            case FrameKind.PROCESS:
                self.start = json.loads(bytes(frame.payload))
            case FrameKind.RECORDS:
                self.records[frame.stream].append(frame)
                self.slots[frame.stream] = frame.slot
            case FrameKind.COUNTERS:
                self.counters[frame.stream].append(frame)
            case FrameKind.THREAD:
                self.threads[frame.stream] = json.loads(bytes(frame.payload))
                self.slots[frame.stream] = frame.slot
            case FrameKind.STATUS:
                self.status = np.frombuffer(frame.payload, STATUS_PAGE)[0].copy()
            case FrameKind.PROCESS_END:
                self.end = json.loads(bytes(frame.payload))


def read_journal(path: Path, overflow: Sequence[Frame] = ()) -> list[RawProcess]:
    """Everything in the journal at `path`, and then in `overflow`, frames that found no room in the file.

    Processes come in the order of their numbers.

    Raises TraceDamagedError if not even its beginning is there. A journal that was cut off gives what is in front of
    the cut, with a warning.
    """
    found: dict[int, _Found] = defaultdict(_Found)
    try:
        for frame in itertools.chain(iter_frames(path), overflow):
            found[frame.process].take(frame)
        processes: dict[int, RawProcess] = {}
        for number, one in sorted(found.items()):
            if one.start is not None:
                processes[number] = _read_process(one, one.start, processes)
        if not processes:
            raise TraceDamagedError(path, "the journal's beginning is missing")
        return list(processes.values())
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise TraceDamagedError(path, f"the journal can't be read ({error})") from error


def _read_process(found: _Found, start: dict[str, Any], others: dict[int, RawProcess]) -> RawProcess:
    records = _join_records([frame for stream in sorted(found.records) for frame in found.records[stream]])
    images = [RawImage(**image) for image in start["initial_images"]]
    parent = others.get(start["inherits"]) if "inherits" in start else None
    inherited = 0
    if parent is not None:
        announced = find_announced(parent.records, int(start["fork_tsc"]), Mode(start["mode"]))
        inherited = len(announced)
        records = np.concatenate([announced, records])
        images = parent.initial_images
    end = found.end
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
        initial_images=images,
        records=records,
        n_inherited=inherited,
        threads=[
            _read_thread(found.slots[stream], found.threads.get(stream, {}), found.counters[stream])
            for stream in sorted(found.slots)
        ],
        status=found.status,
        warnings=["the recording was cut off; what was recorded until then is here"]
        if end is None
        else end["warnings"],
    )


def find_announced(records: npt.NDArray[np.uint8], before_tsc: int, mode: Mode) -> npt.NDArray[np.uint8]:
    """The records that a fork's child takes over: those that tell of code and its places, of before a time stamp, with
    their continuations. In `coverage` the child tells of the code itself."""
    head = records[:, :4].copy().view("<u2")
    kind = head[:, 0]
    # All of these have their time stamp at the same place.
    dated = np.isin(kind, _PLACES if mode is Mode.COVERAGE else _ANNOUNCEMENTS) & (
        records[:, 24:32].copy().view("<u8")[:, 0] < before_tsc
    )
    position = np.arange(len(records))
    is_continuation = kind == RecordKind.CONTINUATION
    owner = np.maximum.accumulate(np.where(is_continuation, 0, position)) if len(records) else position
    kept: npt.NDArray[np.uint8] = records[dated[owner]]
    return kept


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
