"""Writes the paths of threads that ended before anything of them was taken: many into one file.

Runs in the controller, after the target ended. What records and tails say comes from the target: a path that is not as
short as most, whatever the drain took it for, is written as others are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass
from clew.protocol._generated import (
    PATH_CHUNK_RECORD,
    PATH_EVENT_RECORD,
    RECORD_BYTES,
    PathEventKind,
    PathStream,
    RecordKind,
)
from clew.recording.assembly.path_weights import CounterWeights
from clew.recording.path_tail import read_tail
from clew.recording.raw import RawProcess, RawThread
from clew.store.path_frames import FOLDER_NAME
from clew.store.path_index import PathFacts
from clew.store.short_paths import SHORT_PATH, ShortPaths, encode_short, short_file_name, short_name

__all__ = ["FinishedPath", "ShortPath", "find_short", "write_short_paths"]

Array = npt.NDArray[Any]

MAX_PATHS: Final = 512
MAX_BYTES: Final = 1 << 20
"""Of a frame: so much is read for one path of it, or a little more."""

_EVENT: Final = int(RecordKind.PATH_EVENT)
_CHUNK: Final = int(RecordKind.PATH_CHUNK)
_SURPRISES: Final = int(PathStream.SURPRISES)
_SYMBOLS: Final = int(PathStream.SYMBOLS)
_LONG: Final = [int(kind) for kind in (PathEventKind.CHECKPOINT, PathEventKind.LOST, PathEventKind.THINNED)]


@dataclass(frozen=True)
class FinishedPath:
    """The path of a thread: its name in the trace, how many bytes it takes there, and what the thread executed."""

    thread: RawThread
    file: str
    stored_bytes: int
    instructions: int
    block_executions: int


@dataclass(frozen=True)
class ShortPath:
    """A path that may stand among many, whole: its events have dtype PATH_EVENT_RECORD."""

    thread: RawThread
    events: Array
    surprises: bytes
    symbols: bytes
    decisions: int


def find_short(threads: Sequence[RawThread]) -> tuple[list[ShortPath], list[RawThread]]:
    """Those of some threads that have such a path, and the others."""
    short: list[ShortPath] = []
    others: list[RawThread] = []
    for thread in threads:
        path = None if thread.path_records is None or not thread.path_tail else _read(thread, thread.path_records)
        if path is None:
            others.append(thread)
        else:
            short.append(path)
    return short, others


def _read(thread: RawThread, records: Array) -> ShortPath | None:
    """The path that a thread's records and tail hold; None if it is longer, or contradicts itself."""
    try:
        tail = read_tail(thread.path_tail)
    except ValueError:
        return None
    kinds = records.view("<u2")[:, 0]
    is_event = kinds == _EVENT
    streams = {_SURPRISES: b"", _SYMBOLS: b""}
    end = 0
    for at in np.flatnonzero(kinds == _CHUNK).tolist():
        # What is in the rows of a chunk may look like a record.
        if at < end:
            continue
        head = records[at].view(PATH_CHUNK_RECORD)[0]
        stream, start, size, end = (
            int(head["stream"]),
            int(head["start"]),
            int(head["size_bytes"]),
            at + 1 + int(head["rows"]),
        )
        if (
            stream not in streams
            or start != len(streams[stream])
            or size > (min(end, len(records)) - at - 1) * RECORD_BYTES
        ):
            return None
        streams[stream] += records[at + 1 : end].reshape(-1)[:size].tobytes()
        is_event[at:end] = False
    events = records[is_event].view(PATH_EVENT_RECORD)[:, 0]
    left = tail.surprises_left, tail.symbols_left
    is_whole = not tail.is_lost and left == (len(streams[_SURPRISES]), len(streams[_SYMBOLS]))
    if not is_whole or not len(events) or np.isin(events["event_kind"], _LONG).any():
        return None
    surprises, symbols = streams[_SURPRISES] + tail.surprises, streams[_SYMBOLS] + tail.symbols
    return ShortPath(thread, events, surprises, symbols, tail.decisions)


def write_short_paths(
    process: RawProcess, short: Sequence[ShortPath], folder: Path, weights: CounterWeights, facts: PathFacts
) -> list[FinishedPath]:
    """Write the paths that `find_short` found into a file of the trace in `folder`.

    `facts` are of the process, without what each path has. Raises OSError if there is no room.
    """
    name = short_file_name(process.number)
    path = folder / FOLDER_NAME / name
    path.parent.mkdir(exist_ok=True)
    written: list[FinishedPath] = []
    try:
        with open(path, "wb") as file:
            for part in _iter_parts(short):
                paths = _gather(part, weights, facts)
                frame = encode_short(len(written), paths)
                file.write(frame)
                stored = _share_out(len(frame), paths.rows)
                counted = (paths.rows[column].tolist() for column in ("instructions", "block_executions"))
                for one, stored_bytes, instructions, executions in zip(part, stored, *counted, strict=True):
                    own = short_name(f"{FOLDER_NAME}/{name}", len(written))
                    written.append(FinishedPath(one.thread, own, stored_bytes, instructions, executions))
    except OSError:
        path.unlink(missing_ok=True)
        raise
    return written


def _iter_parts(short: Sequence[ShortPath]) -> Iterator[Sequence[ShortPath]]:
    first = n_bytes = 0
    for at, path in enumerate(short):
        n_bytes += path.events.nbytes + len(path.surprises) + len(path.symbols)
        if at + 1 - first >= MAX_PATHS or n_bytes >= MAX_BYTES:
            yield short[first : at + 1]
            first, n_bytes = at + 1, 0
    if first < len(short):
        yield short[first:]


def _gather(short: Sequence[ShortPath], weights: CounterWeights, facts: PathFacts) -> ShortPaths:
    events = np.concatenate([path.events for path in short])
    rows = np.zeros(len(short), SHORT_PATH)
    rows["tid"] = [path.thread.tid for path in short]
    rows["n_events"] = n_events = np.array([len(path.events) for path in short])
    rows["surprise_bytes"] = surprise_bytes = np.array([len(path.surprises) for path in short])
    rows["symbol_bytes"] = symbol_bytes = np.array([len(path.symbols) for path in short])
    rows["decisions"] = np.array([path.decisions for path in short], np.uint64)
    # Of a thread that was killed the streams may not have come as far as what was told of them.
    owner = np.repeat(np.arange(len(short)), n_events)
    beyond = (events["surprise_bytes"] > surprise_bytes[owner]) | (events["symbol_bytes"] > symbol_bytes[owner])
    at, reached = np.flatnonzero(beyond), n_events.copy()
    np.minimum.at(reached, owner[at], at - (np.cumsum(n_events) - n_events)[owner[at]])
    rows["events_reached"] = reached
    rows["instructions"], rows["block_executions"] = weights.weigh_all([path.thread.counters for path in short])
    surprises, symbols = (
        b"".join(parts) for parts in zip(*((one.surprises, one.symbols) for one in short), strict=True)
    )
    return ShortPaths(facts, rows, events, surprises, symbols)


def _share_out(stored_bytes: int, rows: Array) -> list[int]:
    """What of a frame's bytes each of its paths takes: they add up to the frame."""
    sizes = SHORT_PATH.itemsize + rows["n_events"].astype(np.int64) * PATH_EVENT_RECORD.itemsize
    sizes += rows["surprise_bytes"].astype(np.int64) + rows["symbol_bytes"]
    ends = np.cumsum(sizes) * stored_bytes // int(sizes.sum())
    shares: list[int] = np.diff(ends, prepend=0).tolist()
    return shares
