"""`clew compact`: the same paths in a fraction of the room, wherever it is cut off."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

from clew.analysis.order import compact, compact_path
from clew.analysis.trace import Trace
from clew.errors import OutputError, TraceDamagedError
from clew.store.path_file import PathFile
from clew.store.path_frames import FrameKind
from clew.store.path_rewriter import PathRewriter
from clew.store.path_segments import StoredSegment, decode_stored, encode_stored
from tests.e2e import runs

SEGMENT_EXECUTIONS = PART_ITEMS = 1 << 14

THREADS = """
#include <pthread.h>
static volatile unsigned sum[3];
static void *work(void *number)
{
    unsigned *at = (unsigned *)number, seed = 7;
    for (int i = 0; i < 30000; i++) {
        seed = seed * 1103515245u + 12345u;
        if (seed & 0x10000)
            *at += 1;
    }
    return 0;
}
int main(void)
{
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], 0, work, (void *)&sum[i]);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], 0);
    return 0;
}
"""


class Cut(BaseException):
    """The end of the program that compacts, at once."""


def record_gzip(folder: Path, n_lines: int) -> Path:
    text = folder / "text"
    text.write_bytes(b"".join(b"%d %d\n" % (n * n % 9973, n * 7919 % 10007) for n in range(n_lines)))
    trace = folder / "gzip.clew"
    assert runs.record(["gzip", "-9c", text], trace, "--mode", "full").status == 0
    return trace


@pytest.fixture(scope="module")
def gzip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace of gzip, with some stretches."""
    return record_gzip(tmp_path_factory.mktemp("compact"), 3_000)


@pytest.fixture(scope="module")
def short_gzip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A trace for what compacts it again and again."""
    return record_gzip(tmp_path_factory.mktemp("short"), 300)


def use_short_segments(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(compact_path, "SEGMENT_EXECUTIONS", SEGMENT_EXECUTIONS)
    patch.setattr(compact_path, "PART_ITEMS", PART_ITEMS)


def use_all_segments(patch: pytest.MonkeyPatch) -> None:
    """Segments are used where they gain nothing, too: what is stored in few bytes has the longest stretches."""
    patch.setattr(compact_path, "_size_of_streams", lambda *_: 1 << 30)


@pytest.fixture(autouse=True)
def short_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    use_short_segments(monkeypatch)


@pytest.fixture
def all_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    use_all_segments(monkeypatch)


@pytest.fixture(scope="module")
def compacted(gzip: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same, compact, with segments wherever they can be."""
    trace = Path(shutil.copytree(gzip, tmp_path_factory.mktemp("compacted") / "gzip.clew"))
    with pytest.MonkeyPatch.context() as patch:
        use_short_segments(patch)
        use_all_segments(patch)
        compact.compact_trace(trace)
    return trace


@pytest.fixture
def trace(gzip: Path, tmp_path: Path) -> Path:
    """A trace of gzip that may be changed."""
    return Path(shutil.copytree(gzip, tmp_path / "gzip.clew"))


def all_blocks(trace: Path) -> dict[tuple[int, int], npt.NDArray[np.int64]]:
    """The ids of the blocks that each thread executed."""
    opened = Trace(trace)
    rows = opened.paths.to_pylist()
    return {(row["pid"], row["tid"]): opened.path(row["tid"], pid=row["pid"]).blocks() for row in rows}


@cache
def blocks_of_original(trace: Path) -> dict[tuple[int, int], npt.NDArray[np.int64]]:
    """Of a trace that no test changes: it is read once."""
    return all_blocks(trace)


def assert_same(original: Path, other: Path) -> None:
    expected, found = blocks_of_original(original), all_blocks(other)
    assert list(expected) == list(found)
    for thread, blocks in expected.items():
        assert len(blocks) > 0 and np.array_equal(blocks, found[thread]), thread


def stored_bytes(trace: Path) -> int:
    """What the table says that paths take; it has to be so."""
    told: Counter[str] = Counter()
    for row in Trace(trace).paths.to_pylist():
        told[row["file"].partition("#")[0]] += row["stored_bytes"]
    assert told == {name: (trace / name).stat().st_size for name in told}
    return sum(told.values())


def path_files(trace: Path) -> set[str]:
    return {f"paths/{path.name}" for path in (trace / "paths").iterdir() if "parquet" not in path.name}


def test_a_compact_trace_is_the_same_and_smaller(gzip: Path, trace: Path) -> None:
    run = runs.run(runs.clew_command("compact", trace))
    assert run.status == 0 and b"bit an instruction instead of" in run.stderr
    assert_same(gzip, trace)
    assert stored_bytes(trace) < 0.7 * stored_bytes(gzip)
    assert path_files(trace) == {row["file"] for row in Trace(trace).paths.to_pylist()}


@pytest.mark.usefixtures("all_segments")
def test_seeks_agree(gzip: Path, trace: Path) -> None:
    compact.compact_trace(trace)
    one, other = Trace(gzip).path(), Trace(trace).path()
    # Reading begins in between checkpoints, too.
    assert max(len(other.stretches.entries(number)) for number in range(len(other.stretches))) > 2
    for part in range(1, 8):
        place = other.find_instruction(other.instructions * part // 8)
        assert place == one.find_instruction(one.instructions * part // 8)
        assert np.array_equal(other.blocks(place.execution, 500), one.blocks(place.execution, 500))
        assert np.array_equal(other.calls_at(place), one.calls_at(place))
    time_ns = (one.time_at(place) + one.time_at(one.find_instruction(1))) // 2
    assert other.find_time(time_ns) == one.find_time(time_ns)
    block_id = int(one.blocks(place.execution, 1)[0])
    n_executions = int(np.count_nonzero(one.blocks() == block_id))
    for n in (*range(0, n_executions, n_executions // 6 + 1), n_executions - 1, n_executions):
        assert other.find_execution(block_id, n) == one.find_execution(block_id, n)
    assert other.find_execution(block_id, n_executions) is None
    for n in range(0, n_executions, n_executions // 5):
        found = other.find_execution(block_id, n)
        assert found is not None and other.blocks(found.execution, 1).tolist() == [block_id]


def test_threads(tmp_path: Path) -> None:
    source, program = tmp_path / "threads.c", tmp_path / "threads"
    source.write_text(THREADS)
    subprocess.run(["gcc", "-O1", "-pthread", "-o", program, source], check=True)
    trace, copy = tmp_path / "threads.clew", tmp_path / "copy.clew"
    assert runs.record([program], trace, "--mode", "full").status == 0
    run = runs.run(runs.clew_command("compact", "-o", copy, trace))
    assert run.status == 0 and len(Trace(copy).paths) == 4
    assert_same(trace, copy)
    assert stored_bytes(copy) < stored_bytes(trace)


def test_compacting_again_changes_nothing(trace: Path) -> None:
    compact.compact_trace(trace)
    size = stored_bytes(trace)
    again = compact.compact_trace(trace)
    assert (again.n_compact, again.n_before, again.n_kept) == (0, 1, 0) and stored_bytes(trace) == size
    run = runs.run(runs.clew_command("compact", trace))
    assert run.status == 0 and b"is compact already" in run.stderr


def test_quiet(trace: Path) -> None:
    run = runs.run(runs.clew_command("compact", "-q", "--no-check", trace))
    assert (run.status, run.stdout, run.stderr) == (0, b"", b"")


def test_other_modes_are_refused(tmp_path: Path) -> None:
    trace = tmp_path / "counts.clew"
    runs.record(["/bin/true"], trace)
    run = runs.run(runs.clew_command("compact", "-o", tmp_path / "copy.clew", trace))
    assert run.status == 2 and run.stderr.count(b"\n") == 1 and b"mode counts" in run.stderr
    assert not (tmp_path / "copy.clew").exists()


def test_what_is_there_is_not_replaced(trace: Path, tmp_path: Path) -> None:
    run = runs.run(runs.clew_command("compact", "-o", tmp_path, trace))
    assert run.status == 2 and b"exists already" in run.stderr


@pytest.mark.parametrize("is_done", [False, True])
@pytest.mark.parametrize("function", ["replace", "unlink", "fsync"])
def test_cut_off_at_any_step_the_trace_is_whole(
    short_gzip: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, is_done: bool
) -> None:
    """At each call of a function of the operating system, before it is made or behind it."""
    trace = Path(shutil.copytree(short_gzip, tmp_path / "gzip.clew"))
    number = 0
    while _cut_at(trace, monkeypatch, function, number, is_done=is_done):
        stored_bytes(trace)
        assert_same(short_gzip, trace)
        number += 1
    assert number > 0
    compact.compact_trace(trace)
    assert stored_bytes(trace) < stored_bytes(short_gzip)
    assert path_files(trace) == {row["file"] for row in Trace(trace).paths.to_pylist()}


def _cut_at(trace: Path, monkeypatch: pytest.MonkeyPatch, function: str, number: int, *, is_done: bool) -> bool:
    """Compact a trace until call `number` of a function; whether there was one. Nothing tidies up behind it."""
    calls = 0

    def cut(real: Callable[..., None]) -> Callable[..., None]:
        def call(*arguments: object, **keywords: object) -> None:
            nonlocal calls
            calls += 1
            if calls <= number or (calls == number + 1 and is_done):
                real(*arguments, **keywords)
            if calls > number:
                raise Cut

        return call

    with monkeypatch.context() as patch:
        for name in {"replace", "unlink", function}:
            patch.setattr(os, name, cut(getattr(os, name)) if name == function else getattr(os, name))
        patch.setattr(compact._Compaction, "_sweep", lambda self: None)
        try:
            compact.compact_trace(trace, is_checked=False)
        except Cut:
            return True
    return False


def test_a_full_disk_leaves_the_trace_as_it_was(gzip: Path, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(fd: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", fail)
        with pytest.raises(OutputError, match="disk is full"):
            compact.compact_trace(trace)
    assert path_files(trace) == path_files(gzip)
    assert_same(gzip, trace)


def test_what_does_not_come_back_the_same_is_not_used(gzip: Path, trace: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compact, "is_same_path", lambda one, other: False)
    result = compact.compact_trace(trace)
    assert (result.n_compact, result.n_kept) == (0, 1) and path_files(trace) == path_files(gzip)
    assert_same(gzip, trace)


@pytest.mark.parametrize(
    "what",
    [
        *("n_blocks", "checksum", "events", "cut"),
        *(
            pytest.param(what, marks=pytest.mark.long)
            for what in ("n_surprise_bytes", "decisions", "pc", "coded", "form", "parts")
        ),
    ],
)
def test_damaged_segments_are_refused(compacted: Path, tmp_path: Path, what: str) -> None:
    trace = Path(shutil.copytree(compacted, tmp_path / "gzip.clew"))
    file = Trace(trace).paths["file"][0].as_py()
    _damage(trace, file, what)
    with pytest.raises(TraceDamagedError):
        Trace(trace).path().blocks()


def _damage(trace: Path, name: str, what: str) -> None:
    """Change the segment of the most parts so that all frames are sound."""
    file = PathFile(trace, name)
    frames = [(kind, *found) for kind in FrameKind if kind != FrameKind.INDEX for found in file.iter_contents(kind)]
    segments = [
        decode_stored(frame.start, frame.size, content) for kind, frame, content in frames if kind == FrameKind.SEGMENTS
    ]
    longest = max(segments, key=lambda segment: len(segment.parts))
    assert len(longest.parts) > 2
    with PathRewriter(trace / "new") as rewriter:
        for kind, frame, content in frames:
            is_longest = kind == FrameKind.SEGMENTS and frame.start == longest.first
            rewriter.add(kind, frame.start, frame.size, _change(longest, what) if is_longest else content)
        rewriter.finish(file.facts, file.places)
    (trace / "new").replace(trace / name)


def _change(segment: StoredSegment, what: str) -> bytes:
    """The content of a segment that something is wrong with, in the middle."""
    parts = list(segment.parts)
    middle = len(parts) // 2
    if what == "coded":
        parts[middle] = replace(parts[middle], coded=bytes(len(parts[middle].coded)))
    elif what not in ("form", "cut", "parts"):
        parts[middle].head[what] ^= 0x1015
    content = bytearray(encode_stored(replace(segment, parts=parts)))
    if what == "cut":
        del content[-20:]
    elif what in ("form", "parts"):
        content[{"form": 0, "parts": 4}[what]] ^= 0x15
    return bytes(content)
