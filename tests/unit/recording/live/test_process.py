"""A process that is read while it runs is in the end what it is when it is read as a whole."""

from __future__ import annotations

import dataclasses
import pickle
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.protocol._generated import EdgeKind, Mode, RecordKind
from clew.recording.assembly.blocks.blocks import Blocks
from clew.recording.assembly.code import parse_code, work_out
from clew.recording.assembly.edges.edges import Edges
from clew.recording.journal.frames import Frame, FrameKind
from clew.recording.live import process as live_process
from clew.recording.live.process import LiveProcess
from clew.recording.raw.process import RawProcess, count_counters
from tests.unit.recording.live_journal import StandInCounters, make_frame, make_frames, make_thread_frames
from tests.unit.recording.simulate import make_runtime


def describe(blocks: Blocks, edges: Edges) -> tuple[list[Any], dict[Any, int], dict[Any, int]]:
    """Blocks, and how often each and each edge was executed, by all threads; edges by the addresses of their ends."""
    rows = list(zip(blocks.app_pc.tolist(), blocks.code_version.tolist(), blocks.end_pc.tolist(), strict=True))
    named = [*rows, None]
    of_block: dict[Any, int] = {}
    of_edge: dict[Any, int] = {}
    for counts in edges.threads:
        for block, count in zip(counts.block.tolist(), counts.block_count.tolist(), strict=True):
            of_block[rows[block]] = of_block.get(rows[block], 0) + count
        for edge, count in zip(counts.edge.tolist(), counts.edge_count.tolist(), strict=True):
            ends = named[edges.source[edge]], named[edges.target[edge]], named[edges.callee[edge]]
            key = (*ends, int(edges.kind[edge]))
            of_edge[key] = of_edge.get(key, 0) + count
    return rows, of_block, of_edge


def describe_whole(raw: RawProcess) -> tuple[list[Any], dict[Any, int], dict[Any, int]]:
    code = parse_code(raw.records, count_counters(raw.threads, raw.records))
    _, cut, edges = work_out(code, lambda: raw.threads, raw.mode)
    return describe(cut.blocks, edges)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32), st.booleans(), st.sampled_from([Mode.COUNTS, Mode.COVERAGE]))
def test_in_the_end_it_is_what_it_is_as_a_whole(seed: int, with_rewriting: bool, mode: Mode) -> None:
    runtime = make_runtime(seed, mode=mode, with_rewriting=with_rewriting, max_steps=600)
    raw, rng = runtime.raw_process(), random.Random(seed)
    process = LiveProcess(0, {})
    counters = StandInCounters(raw)
    process.counters = counters  # type: ignore[assignment]
    frames = make_frames(raw, rng)
    for number, frame in enumerate(frames):
        process.take(frame)
        if rng.random() < 0.2:
            counters.rise(number / len(frames))
            process.work_out()  # What is known by then may be odd; it may not fail.
    code = process.work_out()
    assert process.counters is None
    assert describe(code.blocks, code.edges) == describe_whole(raw)


@pytest.mark.parametrize("is_together", [True, False])
@pytest.mark.parametrize("seed", [8, 12, 43, 49, 50, 51])
def test_threads_that_ended_are_added_up_and_count_the_same(
    seed: int, monkeypatch: pytest.MonkeyPatch, *, is_together: bool
) -> None:
    monkeypatch.setattr(live_process, "MAX_ENDED_THREADS", 1)
    raw = make_runtime(seed, max_threads=8, max_steps=3000).raw_process()
    process = LiveProcess(0, {})
    for frame in make_frames(raw, random.Random(seed), is_together=is_together):
        process.take(frame)
    assert len(process.threads) == 1 < len(raw.threads)
    assert process.threads[0].n_members == len(raw.threads) == process.n_ended_threads
    blocks, of_block, of_edge = describe(*_code(process))
    expected_blocks, expected, expected_of_edge = describe_whole(raw)
    assert (blocks, of_block) == (expected_blocks, expected)
    assert without_callees(of_edge) == without_callees(expected_of_edge)


def test_threads_that_come_and_go_take_no_more_memory() -> None:
    raw = make_runtime(8, max_threads=8, max_steps=3000).raw_process()
    process = LiveProcess(0, {})
    frames = make_frames(raw, random.Random(8))
    for frame in frames[:-1]:
        process.take(frame)
    # Threads that run what is known, and tell of signals that came to them.
    event = np.zeros((2, 64), np.uint8)
    event[0, 0], event[1, 0] = RecordKind.EVENT, RecordKind.CONTINUATION
    kept_bytes = []
    for number in range(4 * live_process.MAX_ENDED_THREADS):
        stream, thread = 100 + number, dataclasses.replace(raw.threads[number % len(raw.threads)], name="it")
        for frame in (make_frame(FrameKind.RECORDS, event.tobytes(), stream), *make_thread_frames(stream, thread)):
            process.take(frame)
        kept_bytes.append(len(pickle.dumps(process)))
    assert process.n_ended_threads == len(raw.threads) + len(kept_bytes)
    assert kept_bytes[-1] < kept_bytes[len(kept_bytes) // 2] + 64
    expected, found = describe_whole(raw), describe(*_code(process))
    assert found[0] == expected[0]
    assert sum(found[1].values()) > 10 * sum(expected[1].values())


def without_callees(of_edge: dict[Any, int]) -> dict[Any, int]:
    """Edges without which function returned, which is not known of threads that were added up."""
    found: dict[Any, int] = {}
    for (source, target, callee, kind), count in of_edge.items():
        key = source, target, None if kind == EdgeKind.RETURN else callee, kind
        found[key] = found.get(key, 0) + count
    return found


def _code(process: LiveProcess) -> tuple[Blocks, Edges]:
    code = process.work_out()
    return code.blocks, code.edges


def test_only_records_of_code_are_kept() -> None:
    raw = make_runtime(3, mode=Mode.COUNTS).raw_process()
    process = LiveProcess(0, {})
    for frame in make_frames(raw, random.Random(3)):
        process.take(frame)
    kept = process.n_records
    events = np.zeros((5000, 64), np.uint8)
    events[:, 0] = RecordKind.EVENT
    process.take(Frame(FrameKind.RECORDS, 0, 0, 0, 0, 0, memoryview(events.tobytes())))
    assert 0 < process.n_records == kept
