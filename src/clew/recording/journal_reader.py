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
from clew.protocol._generated import MAX_COUNTER_BYTES, RECORD_BYTES, STATUS_PAGE, Mode
from clew.recording.inherit import Announced
from clew.recording.journal import Frame, FrameKind, iter_frames
from clew.recording.raw import RawImage, RawProcess, RawThread

__all__ = ["read_counters", "read_journal", "read_session"]


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

    def add_snapshot(self, later: _Found) -> None:
        """Take from a snapshot what the journal does not have: of threads that ran when it was made."""
        for stream in later.threads.keys() - self.threads.keys():
            self.threads[stream] = later.threads[stream]
            self.slots[stream] = later.slots[stream]
            self.counters[stream] = later.counters[stream]
        if not self.status["start_tsc"]:
            self.status = later.status

    def take(self, frame: Frame) -> None:
        match frame.kind:
            case FrameKind.PROCESS:
                self.start = json.loads(bytes(frame.payload))
            case FrameKind.RECORDS:
                self.records[frame.stream].append(frame)
                self.slots[frame.stream] = frame.slot
            case FrameKind.COUNTERS | FrameKind.SPARSE_COUNTERS:
                self.counters[frame.stream].append(frame)
            case FrameKind.THREAD:
                self.threads[frame.stream] = json.loads(bytes(frame.payload))
                self.slots[frame.stream] = frame.slot
            case FrameKind.STATUS:
                self.status = np.frombuffer(frame.payload, STATUS_PAGE)[0].copy()
            case FrameKind.PROCESS_END:
                self.end = json.loads(bytes(frame.payload))


def read_session(path: Path) -> dict[str, Any]:
    """What the journal at `path` says of its session. Raises TraceDamagedError if that is not there."""
    try:
        frame = next(iter_frames(path), None)
        if frame is not None and frame.kind == FrameKind.SESSION:
            described = json.loads(bytes(frame.payload))
            if isinstance(described, dict):
                return described
    except ValueError as error:
        raise TraceDamagedError(path, f"the journal can't be read ({error})") from error
    raise TraceDamagedError(path, "the journal's beginning is missing")


def read_journal(path: Path, overflow: Sequence[Frame] = (), snapshot: Path | None = None) -> list[RawProcess]:
    """Everything in the journal at `path`, and then in `overflow`, frames that found no room in the file.

    Processes come in the order of their numbers. `snapshot` has the counters of threads whose end is not in the
    journal.

    Raises TraceDamagedError if not even its beginning is there. A journal that was cut off gives what is in front of
    the cut, with a warning.
    """
    found: dict[int, _Found] = defaultdict(_Found)
    try:
        for frame in itertools.chain(iter_frames(path), overflow):
            found[frame.process].take(frame)
        if snapshot is not None and snapshot.is_file():
            kept: dict[int, _Found] = defaultdict(_Found)
            for frame in iter_frames(snapshot):
                kept[frame.process].take(frame)
            for number, one in kept.items():
                found[number].add_snapshot(one)
        processes: dict[int, RawProcess] = {}
        announced = _AnnouncedByProcess()
        for number, one in sorted(found.items()):
            if one.start is not None:
                processes[number] = _read_process(number, one, one.start, processes, announced)
        if not processes:
            raise TraceDamagedError(path, "the journal's beginning is missing")
        return list(processes.values())
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise TraceDamagedError(path, f"the journal can't be read ({error})") from error


class _AnnouncedByProcess:
    """What each process that forked had announced, or found in its copy of another's cache."""

    def __init__(self) -> None:
        self._own: dict[int, npt.NDArray[np.uint8]] = {}
        self._forks: dict[int, tuple[int, int]] = {}
        self._announced: dict[int, Announced] = {}

    def add(self, number: int, own: npt.NDArray[np.uint8], fork: tuple[int, int] | None) -> None:
        """Note a process' own records, and of whom it is a fork since when."""
        self._own[number] = own
        if fork is not None:
            self._forks[number] = fork

    def of(self, number: int) -> Announced:
        """Of process `number`."""
        if number not in self._announced:
            records = self._own[number]
            if number in self._forks:
                parent, tsc = self._forks[number]
                records = np.concatenate([self.of(parent).find_before(tsc), records])
            self._announced[number] = Announced(records)
        return self._announced[number]


def _read_process(
    number: int, found: _Found, start: dict[str, Any], others: dict[int, RawProcess], announced: _AnnouncedByProcess
) -> RawProcess:
    records = _join_records([frame for stream in sorted(found.records) for frame in found.records[stream]])
    images = [RawImage(**image) for image in start["initial_images"]]
    parent = others.get(start["inherits"]) if "inherits" in start else None
    threads = [
        _read_thread(found.slots[stream], found.threads.get(stream, {}), found.counters[stream])
        for stream in sorted(found.slots)
    ]
    fork = None if parent is None else (int(start["inherits"]), int(start["fork_tsc"]))
    announced.add(number, records, fork)
    if parent is not None and fork is not None:
        counters = [thread.counters for thread in threads]
        inherited = announced.of(fork[0]).find_inherited(fork[1], Mode(start["mode"]), counters, records)
        records = np.concatenate([inherited, records])
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
        threads=threads,
        status=found.status,
        warnings=["the recording was cut off; what was recorded until then is here"]
        if end is None
        else end["warnings"],
    )


def _join_records(frames: list[Frame]) -> npt.NDArray[np.uint8]:
    parts = [np.frombuffer(frame.payload, np.uint8) for frame in frames if len(frame.payload) % RECORD_BYTES == 0]
    joined = np.concatenate(parts) if parts else np.zeros(0, np.uint8)
    return joined.reshape(-1, RECORD_BYTES)


def read_counters(frame: Frame) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Indices and values of the counters in a frame of either kind."""
    if frame.kind == FrameKind.SPARSE_COUNTERS:
        n = len(frame.payload) // 12
        index = np.frombuffer(frame.payload[: 4 * n], np.uint32).astype(np.int64)
        return frame.first + index, np.frombuffer(frame.payload[4 * n : 12 * n], np.uint64)
    values = np.frombuffer(frame.payload[: len(frame.payload) // 8 * 8], np.uint64)
    return frame.first + np.arange(len(values)), values


def _read_thread(slot: int, row: dict[str, Any], frames: list[Frame]) -> RawThread:
    parts = [read_counters(frame) for frame in frames]
    # One more than the last that counted: a fragment may have two of which the first is that one.
    length = max((int(index.max()) + 2 for index, _ in parts if len(index)), default=0)
    # Pages of zeros that are never written take no memory.
    counters = np.zeros(min(length, MAX_COUNTER_BYTES // 8), np.uint64)
    for index, values in parts:
        inside = index < len(counters)
        counters[index[inside]] = values[inside]
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
