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
from clew.recording.assembly.paths.weights import CounterWeights
from clew.recording.raw.path_tail import CELLS_BYTES, are_lost, count_decisions, left_bytes, used_bytes
from clew.recording.raw.process import RawProcess, RawThread
from clew.store.path_frames import FOLDER_NAME
from clew.store.path_index import PathFacts
from clew.store.short_paths import SHORT_PATH, ShortPaths, encode_short, short_file_name, short_name

__all__ = ["FinishedPath", "ShortPath", "find_short", "write_short_paths"]

Array = npt.NDArray[Any]

MAX_STREAM_BYTES: Final = 4 << 10
"""A path with more bytes of surprises and symbols has a file of its own, which `clew compact` can re-code."""
MAX_PATHS: Final = 512
MAX_BYTES: Final = 1 << 20
"""Of a frame: so much is read for one path of it, or a little more."""

_EVENT: Final = int(RecordKind.PATH_EVENT)
_CHUNK: Final = int(RecordKind.PATH_CHUNK)
_SURPRISES: Final = int(PathStream.SURPRISES)
_SYMBOLS: Final = int(PathStream.SYMBOLS)
_EVENT_KIND: Final = PATH_EVENT_RECORD.fields["event_kind"][1] // 2  # type: ignore[index]
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
    """A path that may stand among many, whole: its events are records, shape (n, RECORD_BYTES)."""

    thread: RawThread
    events: Array
    surprises: bytes
    symbols: bytes
    decisions: int


def find_short(threads: Sequence[RawThread]) -> tuple[list[ShortPath], list[RawThread]]:
    """Those of some threads that have such a path, and the others."""
    candidates = [one for one in threads if one.path_records is not None and len(one.path_tail) >= CELLS_BYTES]
    if not candidates:
        return [], list(threads)
    parts = [one.path_records for one in candidates if one.path_records is not None]
    first = np.concatenate([[0], np.cumsum([len(part) for part in parts])])
    records = np.concatenate(parts)
    cells = np.frombuffer(b"".join([one.path_tail[:CELLS_BYTES] for one in candidates]), np.uint64)
    cells = cells.reshape(len(candidates), -1)
    used, left = used_bytes(cells), left_bytes(cells)
    surprises, symbols, is_chunk, is_sound = _join_chunks(records, first)
    # Both streams follow what had left the target, and events say nothing that a short path has not.
    told = np.array([[len(one), len(other)] for one, other in zip(surprises, symbols, strict=True)], np.int64)
    ends = (CELLS_BYTES + used.sum(axis=1)).tolist()
    # Nothing that was begun is behind what counts.
    is_whole = [
        len(one.path_tail) >= end and not any(one.path_tail[end:]) for one, end in zip(candidates, ends, strict=True)
    ]
    is_sound &= (told == left).all(axis=1) & np.array(is_whole) & ~are_lost(cells)
    words = records.view("<u2")
    is_event = (words[:, 0] == _EVENT) & ~is_chunk
    is_long = is_event & np.isin(words[:, _EVENT_KIND], _LONG)
    events_before, long_before = (np.concatenate([[0], np.cumsum(those)])[first] for those in (is_event, is_long))
    is_sound &= (np.diff(long_before) == 0) & (np.diff(events_before) > 0)
    is_sound &= (told + used).sum(axis=1) <= MAX_STREAM_BYTES
    events, bounds, decisions = records[is_event], events_before.tolist(), count_decisions(cells).tolist()
    short = []
    for at in np.flatnonzero(is_sound).tolist():
        thread, end = candidates[at], CELLS_BYTES + int(used[at, 0])
        tail = thread.path_tail
        own = surprises[at] + tail[CELLS_BYTES:end], symbols[at] + tail[end : ends[at]]
        short.append(ShortPath(thread, events[bounds[at] : bounds[at + 1]], *own, decisions[at]))
    written = {path.thread.stream for path in short}
    return short, [thread for thread in threads if thread.stream not in written]


def _join_chunks(records: Array, first: Array) -> tuple[list[bytes], list[bytes], Array, Array]:
    """What left the target of two streams of each thread, surprises and symbols, whose records begin at `first`.

    Then which records are of chunks, and of which threads all chunks are as they should be, both bool.
    """
    n_threads = len(first) - 1
    streams: dict[int, list[bytes]] = {number: [b""] * n_threads for number in (_SURPRISES, _SYMBOLS)}
    is_chunk, is_sound = np.zeros(len(records), bool), np.ones(n_threads, bool)
    heads_at = np.flatnonzero(records.view("<u2")[:, 0] == _CHUNK)
    owners = (np.searchsorted(first, heads_at, "right") - 1).tolist()
    heads = records[heads_at].view(PATH_CHUNK_RECORD)[:, 0]
    columns = (heads[name].tolist() for name in ("stream", "start", "size_bytes", "rows"))
    data, ends, end = records.reshape(-1).data, first.tolist(), 0
    for at, owner, stream, start, size, n_rows in zip(heads_at.tolist(), owners, *columns, strict=True):
        # What is in the rows of a chunk may look like a record.
        if at < end:
            continue
        end = min(at + 1 + n_rows, ends[owner + 1])
        is_chunk[at:end] = True
        told = streams.get(stream)
        if told is None or start != len(told[owner]) or size > (end - at - 1) * RECORD_BYTES:
            is_sound[owner] = False
        else:
            told[owner] += bytes(data[(at + 1) * RECORD_BYTES : (at + 1) * RECORD_BYTES + size])
    return streams[_SURPRISES], streams[_SYMBOLS], is_chunk, is_sound


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
    events = np.concatenate([path.events for path in short]).view(PATH_EVENT_RECORD)[:, 0]
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
