"""From a journal back to what a session recorded.

Runs in the controller, when the target has ended or clew was cut off. What records mean is not known here.
"""

from __future__ import annotations

import contextlib
import itertools
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.address import Pid, Tid
from clew.binary.architectures.known import KNOWN
from clew.dataclass import dataclass, field
from clew.errors import TraceDamagedError
from clew.protocol._generated import MAX_COUNTER_BYTES, RECORD_BYTES, STATUS_PAGE, Mode
from clew.recording.assembly.region.tag_chunks import TagChunks, without_chunks
from clew.recording.journal.frames import CUT_OFF, Frame, FrameKind, iter_frames
from clew.recording.raw.ended_threads import EndedThreads
from clew.recording.raw.event_chunks import EventChunks, are_many, without_events
from clew.recording.raw.process import Counters, RawImage, RawProcess, RawThread
from clew.recording.raw.records import iter_records
from clew.recording.reading.inherit import Announced

__all__ = ["JournalReader", "join_counters", "read_counters", "read_session"]


@dataclass
class _Found:
    """What the journal has of one process."""

    records: dict[int, list[Frame]] = field(default_factory=lambda: defaultdict(list))
    counters: dict[int, list[Frame]] = field(default_factory=lambda: defaultdict(list))
    slots: dict[int, int] = field(default_factory=dict)
    ended: list[EndedThreads] = field(default_factory=list)
    path_tails: dict[int, bytes] = field(default_factory=dict)
    threads: dict[int, dict[str, Any]] = field(default_factory=dict)
    start: dict[str, Any] | None = None
    end: dict[str, Any] | None = None
    status: np.void = field(default_factory=lambda: np.zeros(1, STATUS_PAGE)[0])

    @property
    def inherits(self) -> int | None:
        """The number of the process that it is a fork of."""
        return None if self.start is None or "inherits" not in self.start else int(self.start["inherits"])

    @property
    def has_paths(self) -> bool:
        """Whether the order of a thread was recorded, for a while at least."""
        if self.path_tails or any(row.get("path_bytes") for row in self.threads.values()):
            return True
        return any(ended.rows["tail_bytes"].any() for ended in self.ended)

    @property
    def end_ns(self) -> int:
        """When it ended, CLOCK_REALTIME; if that is not there, when it started."""
        ended: int = self.end["end_ns"] if self.end is not None else self.start["start_ns"] if self.start else 0
        return ended

    @property
    def n_missing_records(self) -> int:
        """Records of threads that found no room in the journal after all."""
        return sum(
            max(
                int(row.get("records", 0)) - sum(len(frame.payload) for frame in self.records[stream]) // RECORD_BYTES,
                0,
            )
            for stream, row in self.threads.items()
        )

    @property
    def warnings(self) -> list[str]:
        """Lines for people."""
        return [CUT_OFF] if self.end is None else list(self.end["warnings"])

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
            case FrameKind.PATH_TAIL:
                self.path_tails[frame.stream] = bytes(frame.payload)
            case FrameKind.THREAD:
                self.threads[frame.stream] = json.loads(bytes(frame.payload))
                self.slots[frame.stream] = frame.slot
            case FrameKind.ENDED:
                self.ended.append(EndedThreads.parse(frame))
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


class JournalReader:
    """The processes in a journal, made one at a time: all of them may be more than memory holds.

    They come in the order of their numbers, as often as asked for. Making them raises TraceDamagedError where what the
    journal says can't be.
    """

    def __init__(
        self,
        path: Path,
        overflow: Sequence[Frame] = (),
        snapshot: Path | None = None,
        content: memoryview | None = None,
    ) -> None:
        """The journal at `path`, and then `overflow`, frames that found no room in the file.

        `content` is read instead of the file, which is only blamed then. `snapshot` has the counters of threads whose
        end is not in the journal. Raises TraceDamagedError if not even the journal's beginning is there. One that was
        cut off gives what is in front of the cut, with a warning.
        """
        self._path = path
        found: dict[int, _Found] = defaultdict(_Found)
        with self._blamed():
            for frame in itertools.chain(iter_frames(path if content is None else content), overflow):
                found[frame.process].take(frame)
            if snapshot is not None and snapshot.is_file():
                kept: dict[int, _Found] = defaultdict(_Found)
                for frame in iter_frames(snapshot):
                    kept[frame.process].take(frame)
                for number, one in kept.items():
                    found[number].add_snapshot(one)
            self._found = {number: one for number, one in sorted(found.items()) if one.start is not None}
            if not self._found:
                raise TraceDamagedError(path, "the journal's beginning is missing")
            parents = (one.inherits for one in self._found.values())
            self._n_children = Counter(parent for parent in parents if parent is not None)

    @property
    def end_ns(self) -> int:
        """When the last process ended, CLOCK_REALTIME; of one whose end is not there, when it started."""
        return max(one.end_ns for one in self._found.values())

    @property
    def warnings(self) -> list[str]:
        """Lines for people, of all processes."""
        return [line for one in self._found.values() for line in one.warnings]

    def __iter__(self) -> Iterator[RawProcess]:
        # What those that forked announced, or found in their copy of another's cache, until the last child has come.
        forked: dict[int, _Forked] = {}
        left = self._n_children.copy()
        for number, one in self._found.items():
            with self._blamed():
                # Not kept here while it is assembled: its records take much memory, and are let go of then.
                made = [_read_process(number, one, forked, is_forked=number in left)]
                parent = one.inherits
                if parent is not None:
                    left[parent] -= 1
                    if not left[parent]:
                        forked.pop(parent, None)
            yield made.pop()

    @contextlib.contextmanager
    def _blamed(self) -> Iterator[None]:
        try:
            yield
        except (ValueError, KeyError, TypeError, OSError) as error:
            raise TraceDamagedError(self._path, f"the journal can't be read ({error})") from error


class _Forked:
    """What the forks of a process need of it; `read` gives its records, once the first of them asks."""

    def __init__(self, initial_images: list[RawImage], read: Callable[[], npt.NDArray[np.uint8]]) -> None:
        self.initial_images = initial_images
        self._read = read

    @cached_property
    def announced(self) -> Announced:
        """What it announced."""
        return Announced(self._read())


def _read_process(number: int, found: _Found, forked: dict[int, _Forked], *, is_forked: bool) -> RawProcess:
    """Process `number`; `is_forked`: it has forks of its own, and is added to those."""
    start = found.start
    assert start is not None
    mode = Mode(start["mode"])
    if mode is Mode.COUNTS and found.has_paths:
        # The order was recorded for a while.
        mode = Mode.FULL
    streams = [found.records[stream] for stream in sorted(found.records)]
    streams += [[ended.record_frame] for ended in found.ended]
    has_many = are_many(streams)

    def read_own() -> npt.NDArray[np.uint8]:
        return _join_records(streams, mode, without=has_many)

    own = records = read_own()
    images = [RawImage(**image) for image in start["initial_images"]]
    threads = [_read_thread(stream, found, mode) for stream in sorted(found.slots)]
    for frame in itertools.chain.from_iterable(found.counters.values()):
        frame.let_go()
    for ended in found.ended:
        threads.extend(ended.iter_threads())
        ended.frame.let_go()
    threads.sort(key=lambda thread: thread.stream)
    parent = None if found.inherits is None else forked.get(found.inherits)
    fork_tsc = 0
    if parent is not None:
        fork_tsc = int(start["fork_tsc"])
        counters = [thread.counters for thread in threads]
        inherited = parent.announced.find_inherited(fork_tsc, mode, counters, own)
        records = np.concatenate([inherited, own])
        images = parent.initial_images
    if is_forked:

        def read_all() -> npt.NDArray[np.uint8]:
            if parent is None:
                return read_own()
            return np.concatenate([parent.announced.find_before(fork_tsc), read_own()])

        # Read once more when a fork comes: until then the memory is what its own assembly needs.
        forked[number] = _Forked(images, read_all)
    end = found.end
    found.status["lost_records"] += found.n_missing_records
    return RawProcess(
        pid=Pid(start["pid"]),
        parent_pid=Pid(start["parent_pid"]),
        executable=start["executable"],
        command=start["command"],
        start_ns=start["start_ns"],
        end_ns=found.end_ns,
        exit_code=None if end is None else end["exit_code"],
        signal=None if end is None else end["signal"],
        mode=mode,
        initial_images=images,
        records=records,
        threads=threads,
        status=found.status,
        # Journals written before say nothing of it.
        architecture=str(start.get("architecture", KNOWN[0].name)),
        event_chunks=EventChunks(streams) if has_many else None,
        number=number,
        is_lost=end is not None and bool(end.get("is_lost")),
        warnings=found.warnings,
    )


def _join_records(streams: list[list[Frame]], mode: Mode, *, without: bool) -> npt.NDArray[np.uint8]:
    """The records of all threads; without those of tags, which are too many to be held, and `without` signals and
    faults where these may be."""

    def iter_parts() -> Iterator[npt.NDArray[np.uint8]]:
        for frames in streams:
            records = without_chunks(frames) if mode is Mode.REGION else iter_records(frames)
            yield from without_events(records) if without else records

    # Counted first: pieces, and then all of them joined, would be there twice.
    joined = np.empty((sum(len(part) for part in iter_parts()), RECORD_BYTES), np.uint8)
    at = 0
    for part in iter_parts():
        joined[at : at + len(part)] = part
        at += len(part)
    for frame in itertools.chain.from_iterable(streams):
        frame.let_go()
    return joined


def read_counters(frame: Frame) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Indices and values of the counters in a frame of either kind."""
    # Beyond that there are none: the frame is damaged.
    first = min(frame.first, MAX_COUNTER_BYTES // 8)
    if frame.kind == FrameKind.SPARSE_COUNTERS:
        n = len(frame.payload) // 12
        index = np.frombuffer(frame.payload[: 4 * n], np.uint32).astype(np.int64)
        return first + index, np.frombuffer(frame.payload[4 * n : 12 * n], np.uint64)
    values = np.frombuffer(frame.payload[: len(frame.payload) // 8 * 8], np.uint64)
    return first + np.arange(len(values)), values


def join_counters(parts: Sequence[tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]]) -> Counters:
    """The counters of a thread out of pieces of them, indices and values; of what is told twice the later is true."""
    index = np.concatenate([np.zeros(0, np.int64), *(index for index, _ in parts)])
    value = np.concatenate([np.zeros(0, np.uint64), *(value for _, value in parts)])
    inside = index < MAX_COUNTER_BYTES // 8
    index, value = index[inside], value[inside]
    order = np.argsort(index, kind="stable")
    last = np.concatenate((index[order][1:] != index[order][:-1], [True]))[: len(index)]
    chosen = order[last & (value[order] > 0)]
    return Counters(index[chosen], value[chosen]).pack()


def _read_thread(stream: int, found: _Found, mode: Mode) -> RawThread:
    row = found.threads.get(stream, {})
    counters = join_counters([read_counters(frame) for frame in found.counters[stream]])
    has_ended = bool(row.get("has_ended", False))
    return RawThread(
        slot=found.slots[stream],
        tid=Tid(row.get("tid", 0)),
        parent_tid=Tid(row.get("parent_tid", 0)),
        name=row.get("name", ""),
        start_tsc=row.get("start_tsc", 0),
        end_tsc=row.get("end_tsc", 0) if has_ended else 0,
        end_kind=row.get("end_kind", 0),
        lost_records=row.get("lost_records", 0),
        counters=counters,
        stream=stream,
        path_tail=found.path_tails.get(stream, b""),
        path_bytes=row.get("path_bytes") if row else 0,
        tag_chunks=TagChunks(found.records[stream]) if mode is Mode.REGION else None,
    )
