"""Paths of short threads share a file, and are read as files of their own; what is odd has one of its own."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest

from clew.address import Tid
from clew.errors import TraceDamagedError
from clew.protocol._generated import (
    PATH_BUFFER_BYTES,
    PATH_CHUNK_RECORD,
    PATH_EVENT_RECORD,
    PATH_LOST_CELL,
    PATH_SURPRISES_CELL,
    PATH_SURPRISES_LEFT_CELL,
    PATH_SYMBOLS_CELL,
    PATH_SYMBOLS_LEFT_CELL,
    PathEventKind,
    PathStream,
    RecordKind,
)
from clew.protocol.codec import MAX_SURPRISE_BYTES
from clew.recording.assembly.clock import Clock
from clew.recording.assembly.paths import finish_short_paths
from clew.recording.assembly.paths.finish_paths import finish_paths
from clew.recording.assembly.paths.weights import CounterWeights
from clew.recording.raw.process import Counters, RawThread
from clew.store.columns import Array
from clew.store.path_file import PathFile
from clew.store.path_frames import FrameKind
from tests.unit.recording.journal.test_path_drain import checkpoint, chunk
from tests.unit.recording.simulate import make_runtime

_NONE = np.zeros(0, np.int64)
WEIGHTS = CounterWeights(np.array([5, 7, 1]), np.array([1, 2, 3]), (_NONE, _NONE, _NONE))


def event(kind: PathEventKind, value: int, surprise_bytes: int = 0) -> Array:
    row = np.zeros(1, PATH_EVENT_RECORD)
    row["kind"], row["event_kind"], row["value"] = RecordKind.PATH_EVENT, kind, value
    row["surprise_bytes"] = surprise_bytes
    return row.view(np.uint8).reshape(1, -1)


def make_thread(
    number: int,
    *records: Array,
    left: tuple[int, int],
    waiting: tuple[bytes, bytes] = (b"", b""),
    lost: int = 0,
    begun: bytes = b"",
) -> RawThread:
    cells = np.zeros(8, np.uint64)
    cells[0] = number  # decisions
    for cell, data in zip((PATH_SURPRISES_CELL, PATH_SYMBOLS_CELL), waiting, strict=True):
        cells[cell] = (len(data) - PATH_BUFFER_BYTES) % (1 << 64)
    cells[PATH_SURPRISES_LEFT_CELL], cells[PATH_SYMBOLS_LEFT_CELL] = left
    cells[PATH_LOST_CELL] = lost
    counters = Counters(np.array([0, 1, 9]), np.array([number, 10, 1], np.uint64))
    tail = cells.tobytes() + b"".join(waiting) + begun.ljust(MAX_SURPRISE_BYTES, b"\0")
    return RawThread(
        0,
        Tid(100 + number),
        Tid(1),
        "",
        0,
        0,
        1,
        0,
        counters,
        stream=number,
        path_tail=tail,
        path_records=np.concatenate(records),
    )


def starting(records: Array, start: int) -> Array:
    """A chunk that begins elsewhere in its stream."""
    records = records.copy()
    records[:1].view(PATH_CHUNK_RECORD)["start"] = start
    return records


def make_short(number: int) -> RawThread:
    """Its surprises left in two pieces, one of them with bytes that look like a chunk; the rest was in its buffers."""
    first = b"\x09\0\x05\0" + bytes([number] * 70)
    second = starting(chunk(PathStream.SURPRISES, b"xy"), len(first))
    return make_thread(
        number,
        event(PathEventKind.RESUME, number),
        chunk(PathStream.SURPRISES, first),
        event(PathEventKind.UNLIKE, 7 * number, 3),
        second,
        chunk(PathStream.SYMBOLS, b"z"),
        event(PathEventKind.END, number, 1000 if number % 2 else 4),
        left=(len(first) + 2, 1),
        waiting=(b"ab", bytes([number])),
    )


def finish(folder: Path, threads: list[RawThread]) -> dict[int, str]:
    """The names of the threads' paths by stream."""
    process = dataclasses.replace(make_runtime(1).raw_process(), threads=threads)
    finished = finish_paths(process, folder, WEIGHTS, Clock(process), 3)
    assert [path.thread.stream for path in finished] == sorted(path.thread.stream for path in finished)
    by_file = {path.file.partition("#")[0] for path in finished}
    assert sum(path.stored_bytes for path in finished) == sum((folder / name).stat().st_size for name in by_file)
    return {path.thread.stream: path.file for path in finished}


def test_each_is_read_as_a_file_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(finish_short_paths, "MAX_PATHS", 3)
    names = finish(tmp_path, [make_short(number) for number in range(1, 8)])
    assert list(names.values()) == [f"paths/0.paths#{at}" for at in range(7)]
    assert [path.name for path in (tmp_path / "paths").iterdir()] == ["0.paths"]
    for number, name in names.items():
        file = PathFile(tmp_path, name)
        facts = file.facts
        assert (facts.tid, facts.process_id, facts.decisions, facts.is_lost_at_end) == (100 + number, 3, number, False)
        assert (facts.instructions, facts.block_executions) == (5 * number + 70, number + 20)
        surprises = b"\x09\0\x05\0" + bytes([number] * 70) + b"xyab"
        assert file.read_bytes(FrameKind.SURPRISES, 0, 1000) == surprises
        assert file.read_bytes(FrameKind.SYMBOLS, 0, 1000) == b"z" + bytes([number])
        assert (facts.surprise_bytes, facts.symbol_bytes) == (len(surprises), 2)
        # What is told of places that the streams never came to is of no account.
        assert facts.events == 3 - number % 2
        assert file.read_events(0, 10)["value"].tolist() == [number, 7 * number, number]
        assert file.states["value"].tolist() == [7 * number]
        assert len(file.places) == 0
        file.close()


@pytest.mark.parametrize("what", ["checkpoint", "lost", "left", "start", "cut_off", "long", "begun"])
def test_what_is_no_short_path_has_a_file_of_its_own(tmp_path: Path, what: str) -> None:
    resume, surprises = event(PathEventKind.RESUME, 1), chunk(PathStream.SURPRISES, b"12345")
    left, lost, begun = (5, 0), 0, b""
    more = checkpoint()[:0]
    match what:
        case "checkpoint":
            more = checkpoint()
        case "lost":
            lost = 1
        case "begun":
            begun = b"\x02"
        case "left":
            left = (6, 0)
        case "start":
            surprises = starting(surprises, 1)
        case "long":
            left = (5, finish_short_paths.MAX_STREAM_BYTES)
            more = chunk(PathStream.SYMBOLS, bytes(left[1]))
        case "cut_off":
            surprises = chunk(PathStream.SURPRISES, b"12345", claimed=65)
    threads = [make_short(1), make_thread(2, resume, surprises, more, left=left, lost=lost, begun=begun), make_short(3)]
    names = finish(tmp_path, threads)
    assert names == {1: "paths/0.paths#0", 2: "paths/0-2.path", 3: "paths/0.paths#1"}
    file = PathFile(tmp_path, names[2])
    assert file.read_events(0, 10)["value"].tolist() == [1]
    file.close()
    # Once more, where the disk was full.
    assert finish(tmp_path, threads) == names


def test_damage_is_told(tmp_path: Path) -> None:
    names = finish(tmp_path, [make_short(number) for number in range(1, 4)])
    path = tmp_path / "paths" / "0.paths"
    whole = path.read_bytes()
    for content in (whole[:-1], whole[:60] + b"x" + whole[61:], b"", whole[36:]):
        path.write_bytes(content)
        with pytest.raises(TraceDamagedError, match=r"0\.paths#1"):
            PathFile(tmp_path, names[2])
    path.write_bytes(whole)
    for name in ("paths/0.paths#3", "paths/0.paths#" + "9" * 30, "paths/1.paths#0", "paths/0.paths#x"):
        with pytest.raises(TraceDamagedError):
            PathFile(tmp_path, name)
    PathFile(tmp_path, names[2]).close()
