"""Calls that are counted without blocks and edges are those that edges tell."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.protocol._generated import EdgeKind, Mode
from clew.recording.assembly.arrays.rows import add_up
from clew.recording.assembly.images.images import ImageFiles
from clew.recording.live.calls import CallCounts
from clew.recording.live.process import LiveProcess
from tests.unit.recording.live_journal import make_frames
from tests.unit.recording.simulate import make_runtime


def calls_of_edges(process: LiveProcess) -> Counter[int]:
    """Calls by where they lead, as blocks and edges have them."""
    code = process.work_out()
    calls: Counter[int] = Counter()
    for counts in code.edges.threads:
        for edge, count in zip(counts.edge.tolist(), counts.edge_count.tolist(), strict=True):
            if code.edges.kind[edge] in (EdgeKind.CALL, EdgeKind.INDIRECT_CALL):
                calls[int(code.blocks.app_pc[code.edges.target[edge]])] += count
    return calls


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32), st.booleans(), st.booleans())
def test_calls_are_those_that_edges_tell(seed: int, with_rewriting: bool, is_together: bool) -> None:
    raw = make_runtime(seed, with_rewriting=with_rewriting, max_threads=4, max_steps=1000).raw_process()
    process = LiveProcess(0, {})
    counts = CallCounts(process, ImageFiles())
    rng = random.Random(seed)
    for frame in make_frames(raw, rng, is_together=is_together):
        process.take(frame)
        if rng.random() < 0.1:
            counts.count()
    told = counts.count()
    assert told is not None and counts.code is not None
    expected = calls_of_edges(process)
    index, value = add_up(
        np.concatenate([thread.counters.index.astype(np.int64) for thread in process.threads]),
        np.concatenate([thread.counters.value.astype(np.int64) for thread in process.threads]),
    )
    found: Counter[int] = Counter()
    for pc, n in zip(counts.code.target_pc.tolist(), counts.code.count(index, value).tolist(), strict=True):
        found[pc] += n
    assert +found == +expected
    assert sum(told.values()) == sum(expected.values())


def test_where_nothing_is_counted_a_trace_is_needed() -> None:
    raw = make_runtime(3, mode=Mode.COVERAGE).raw_process()
    process = LiveProcess(0, {})
    assert CallCounts(process, ImageFiles()).count() == Counter()
    for frame in make_frames(raw, random.Random(3)):
        process.take(frame)
    assert CallCounts(process, ImageFiles()).count() is None
