"""Makes the paths of a process' threads whole: what had not left the target, and the index.

Runs in the controller, after the target ended. Of a path that was recorded nothing is read again but its checkpoints.
"""

from __future__ import annotations

import math
import os
from io import BufferedReader, BytesIO, FileIO
from pathlib import Path
from typing import Any, BinaryIO, Final

import numpy as np
import numpy.typing as npt

from clew.dataclass import replace
from clew.protocol._generated import PATH_EVENT_RECORD, PathEventKind
from clew.recording.assembly.clock import Clock
from clew.recording.assembly.paths.finish_short_paths import FinishedPath, find_short, write_short_paths
from clew.recording.assembly.paths.weights import CounterWeights
from clew.recording.journal.path_drain import PathDrain
from clew.recording.raw.path_tail import PathTail, read_tail
from clew.recording.raw.process import RawProcess, RawThread
from clew.store.path_checkpoints import decode_checkpoints, unshuffle
from clew.store.path_frames import (
    FOLDER_NAME,
    HEADER_BYTES,
    Frame,
    FrameKind,
    file_name,
    iter_frames,
    pack_frame,
    read_payload,
)
from clew.store.path_index import PLACE, PathFacts, PathIndex, encode_index, list_frames

__all__ = ["FinishedPath", "drop_paths", "finish_paths"]

Array = npt.NDArray[Any]

_READ_BYTES: Final = 1 << 20
"""A file that is no longer is read as a whole."""


def drop_paths(process: RawProcess, folder: Path) -> None:
    """Remove files of paths that nothing else is known of: the recording was cut off when they had just begun."""
    for thread in process.threads if (folder / FOLDER_NAME).is_dir() else ():
        (folder / FOLDER_NAME / file_name(process.number, thread.stream)).unlink(missing_ok=True)


def finish_paths(
    process: RawProcess, folder: Path, weights: CounterWeights, clock: Clock, process_id: int
) -> list[FinishedPath]:
    """Finish the path of each thread that has one; `folder` is the trace's. Raises OSError if there is no room."""
    facts = PathFacts(
        pid=process.pid,
        tid=0,
        process_id=process_id,
        instructions=0,
        block_executions=0,
        surprise_bytes=0,
        symbol_bytes=0,
        events=0,
        decisions=0,
        is_lost_at_end=False,
        tsc=clock.start_tsc,
        ns=clock.start_ns,
        ns_per_tick=clock.ns_per_tick,
    )
    short, others = find_short(process.threads)
    finished = write_short_paths(process, short, folder, weights, facts) if short else []
    for thread in others:
        path = folder / FOLDER_NAME / file_name(process.number, thread.stream)
        if thread.path_bytes == 0:
            path.unlink(missing_ok=True)
            continue
        if thread.path_records is not None and not path.exists():
            drain = PathDrain(folder, process.number, thread.stream)
            drain.take(thread.path_records)
            drain.finish()
        file = _open(path, is_new=bool(thread.path_tail))
        if file is not None:
            with file:
                own = _finish(file, thread, weights, facts)
            finished.append(replace(own, file=f"{FOLDER_NAME}/{path.name}"))
    return sorted(finished, key=lambda path: path.thread.stream)


def _open(path: Path, *, is_new: bool) -> FileIO | None:
    """The file of a path, made where none is there and `is_new`."""
    try:
        return FileIO(path, "r+")
    except FileNotFoundError:
        if not is_new:
            return None
        path.parent.mkdir(exist_ok=True)
        return FileIO(path, "x+")


def _finish(file: FileIO, thread: RawThread, weights: CounterWeights, facts: PathFacts) -> FinishedPath:
    """Make the file of a thread's path whole; `facts` are of the process."""
    content: BinaryIO = BytesIO(file.read(_READ_BYTES))
    found_bytes = os.fstat(file.fileno()).st_size
    if found_bytes > _READ_BYTES:
        content = BufferedReader(file)
    kept = math.inf if thread.path_bytes is None else thread.path_bytes
    frames = [frame for frame in iter_frames(content) if frame.kind != FrameKind.INDEX and frame.end_offset <= kept]
    size_bytes = frames[-1].end_offset if frames else 0
    ends = {FrameKind.SURPRISES: 0, FrameKind.SYMBOLS: 0}
    for frame in frames:
        for kind in ends:
            if frame.kind == kind:
                ends[kind] = max(ends[kind], frame.end)
    places = _weigh_checkpoints(content, frames, weights)
    # What is missing in front of such a checkpoint never comes.
    behind = places[places["is_after_loss"] != 0]
    for kind, name in ((FrameKind.SURPRISES, "surprise_bytes"), (FrameKind.SYMBOLS, "symbol_bytes")):
        ends[kind] = max([ends[kind], *behind[name].tolist()])
    events = _EventsAtEnd(content, frames)
    last_gap = None if events.last is None else _gap_of(events.last)
    is_lost = last_gap is not None
    tail = _fitting_tail(thread.path_tail, ends, is_lost=is_lost)
    surprise_bytes = ends[FrameKind.SURPRISES] + len(tail.surprises)
    symbol_bytes = ends[FrameKind.SYMBOLS] + len(tail.symbols)
    # Where clew was killed the streams may not have come as far as what was told of them.
    places = places[: _count_reached(places, surprise_bytes, symbol_bytes)]
    parts = []
    offset = size_bytes
    for kind, data in ((FrameKind.SURPRISES, tail.surprises), (FrameKind.SYMBOLS, tail.symbols)):
        if data:
            parts.append(pack_frame(kind, ends[kind], len(data), data))
            frames.append(Frame(kind, ends[kind], len(data), len(parts[-1]) - HEADER_BYTES, len(data), offset))
            offset += len(parts[-1])
    instructions, executions = weights.weigh(thread.counters.index, thread.counters.value)
    facts = replace(
        facts,
        tid=thread.tid,
        instructions=instructions,
        block_executions=executions,
        surprise_bytes=surprise_bytes,
        symbol_bytes=symbol_bytes,
        events=events.count(surprise_bytes, symbol_bytes),
        decisions=_decisions_at_end(tail, events.last, surprise_bytes),
        is_lost_at_end=is_lost or tail.is_lost,
        is_thinned_at_end=tail.is_thinned or last_gap == PathEventKind.THINNED,
    )
    parts.append(encode_index(PathIndex(facts, list_frames(frames), places), offset))
    # An index that is there was made in vain: the recording was cut off behind it.
    if found_bytes > size_bytes:
        file.truncate(size_bytes)
    _append(file, size_bytes, b"".join(parts))
    return FinishedPath(thread, "", offset + len(parts[-1]), instructions, executions)


def _append(file: FileIO, size_bytes: int, data: bytes) -> None:
    """Append to a file that is so long. Raises OSError if there is no room: it is as it was then."""
    file.seek(size_bytes)
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError:
        file.truncate(size_bytes)
        raise


def _weigh_checkpoints(file: BinaryIO, frames: list[Frame], weights: CounterWeights) -> Array:
    found = []
    instructions = executions = 0
    for frame in frames:
        if frame.kind != FrameKind.CHECKPOINTS:
            continue
        for checkpoint in decode_checkpoints(read_payload(file, frame), frame.size):
            more_instructions, more_executions = weights.weigh(checkpoint.index, checkpoint.rise)
            instructions, executions = instructions + more_instructions, executions + more_executions
            head = checkpoint.head
            found.append(
                (
                    *(int(head[name]) for name in ("tsc", "surprise_bytes", "symbol_bytes", "events")),
                    *(max(instructions, 0), max(executions, 0), int(head["is_after_loss"])),
                )
            )
    return np.array(found, PLACE)


class _EventsAtEnd:
    """The last events of a path."""

    def __init__(self, file: BinaryIO, frames: list[Frame]) -> None:
        self._file = file
        self._frames = [frame for frame in frames if frame.kind == FrameKind.EVENTS]
        self._records = self._read(self._frames[-1]) if self._frames else np.zeros(0, PATH_EVENT_RECORD)

    @property
    def last(self) -> np.void | None:
        """The last of all."""
        return self._records[-1] if len(self._records) else None

    def count(self, surprise_bytes: int, symbol_bytes: int) -> int:
        """How many events there are up to where the streams end."""
        for frame in reversed(self._frames):
            records = self._records if frame is self._frames[-1] else self._read(frame)
            n_reached = _count_reached(records, surprise_bytes, symbol_bytes)
            if n_reached:
                return frame.start + n_reached
        return 0

    def _read(self, frame: Frame) -> Array:
        return unshuffle(read_payload(self._file, frame), PATH_EVENT_RECORD)


def _count_reached(rows: Array, surprise_bytes: int, symbol_bytes: int) -> int:
    """How many of `rows`, in the order of their places, come before streams of these lengths end."""
    beyond = np.flatnonzero((rows["surprise_bytes"] > surprise_bytes) | (rows["symbol_bytes"] > symbol_bytes))
    return int(beyond[0]) if len(beyond) else len(rows)


def _gap_of(last: np.void) -> int | None:
    """The kind of the last event if it tells of something that is missing, and no checkpoint came after it."""
    kind = int(last["event_kind"])
    return kind if kind in (PathEventKind.LOST, PathEventKind.THINNED) else None


def _decisions_at_end(tail: PathTail, last: np.void | None, surprise_bytes: int) -> int:
    """Decisions behind the last surprise. Where the rest is left out, the event in front of it says how many."""
    if last is None or not tail.is_lost or last["event_kind"] != PathEventKind.END:
        return tail.decisions
    return int(last["decisions"]) if last["surprise_bytes"] == surprise_bytes else tail.decisions


def _fitting_tail(data: bytes, ends: dict[FrameKind, int], *, is_lost: bool) -> PathTail:
    """What of a tail follows what left the target before: all of it, or nothing."""
    try:
        tail = read_tail(data)
    except ValueError:
        return PathTail(0, b"", 0, b"", 0, is_lost=False)
    surprises = _cut_left(tail.surprises_left, tail.surprises, ends[FrameKind.SURPRISES])
    symbols = _cut_left(tail.symbols_left, tail.symbols, ends[FrameKind.SYMBOLS])
    if surprises is not None and symbols is not None and not tail.is_lost and not is_lost:
        return replace(tail, surprises=surprises, symbols=symbols)
    return PathTail(0, b"", 0, b"", 0, tail.is_lost, tail.is_thinned)


def _cut_left(start: int, data: bytes, end: int) -> bytes | None:
    """What of a buffer, which has a stream from byte `start` on, follows its first `end`; None if that does not fit.

    A thread that is killed as it empties its buffer has it full still, or empty and not yet counted.
    """
    if start > end or (data and start + len(data) < end):
        return None
    return data[end - start :]
