"""Timelines of a small trace, added up by hand."""

from __future__ import annotations

import numpy as np
import pytest

from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.replay.thread_times import GAP, TICK, make_times
from clew.analysis.replay.timeline import ProcessTimeline, find_edges, name_tick
from clew.binary.architectures.x86_64 import X86_64
from clew.errors import UsageError
from clew.protocol._generated import GapReason, TickKind
from tests.unit.small_trace import MakeTrace, Rows


def test_without_order_all_of_a_life_is_a_gap(rows: Rows, make_trace: MakeTrace) -> None:
    rows["blocks"][3]["first_ns"] = 7000
    signal = {"process_id": 0, "pid": 7, "tid": 7, "block_id": None, "time_ns": 4000, "details": '{"signal": 11}'}
    rows["events"] = [signal | {"kind": "fault"}, signal | {"kind": "signal", "details": "no JSON"}]
    timeline = ProcessTimeline(ProcessGraph(make_trace(rows), 0), lambda _: None)
    (thread,) = timeline.bin(1000, 9000, 8, None)
    assert thread.gaps[["start_ns", "end_ns", "reason"]].tolist() == [(1000, 8000, GapReason.MODE)]
    assert thread.gap_ns.tolist() == [7000]
    assert thread.density.sum() == 0
    assert thread.new_code.tolist() == [3, 0, 0, 0, 0, 0, 1, 0]
    assert thread.ticks["kind"].tolist() == [TickKind.SIGNAL, TickKind.FAULT]
    found, omitted = timeline.events(0, 9000, 1)
    assert [event["time"] for event in found] == [4000]
    assert omitted == 1
    with pytest.raises(UsageError, match="no thread 8"):
        timeline.bin(0, 10, 1, [8])
    for start, end, bins in ((5, 5, 1), (0, 1, 0), (0, 1, 1 << 20)):
        with pytest.raises(UsageError, match="bins"):
            timeline.bin(start, end, bins, None)


def test_what_is_known_adds_up_whatever_the_bins_are() -> None:
    base = 1_795_420_293_901_797_483
    gaps = np.array([(base + 300, base + 400, 30, 80, 50, GapReason.LOST)], GAP)
    marks = [(base + 100, 10), (base + 250, 25), (base + 90, 12)]
    times = make_times(100, base, base + 500, marks, gaps, np.zeros(0, TICK))
    assert (np.diff(times.mark) >= 0).all()
    assert (np.diff(times.mark_ns) >= 0).all()
    for bins in (1, 3, 500):
        edges = base + 500 * np.arange(bins + 1) // bins
        assert times.known_between(edges).sum() == pytest.approx(50)
    assert times.known_between(base + np.array([300, 400])).tolist() == pytest.approx([0])
    assert times.known_between(base + np.array([400, 500])).tolist() == pytest.approx([20])


def test_all_at_one_moment_is_in_the_first_bin() -> None:
    times = make_times(9, 1000, 1000, [], np.zeros(0, GAP), np.zeros(0, TICK))
    assert times.known_between(np.array([1000, 1500, 2000])).tolist() == [9, 0]


def test_names() -> None:
    assert name_tick(TickKind.SYSTEM_CALL, 257, X86_64) == "openat"
    assert name_tick(TickKind.SYSTEM_CALL, 435, X86_64) == "clone3"
    assert name_tick(TickKind.SYSTEM_CALL, 400, X86_64) == "system call 400"
    assert name_tick(TickKind.SYSTEM_CALL, -1, X86_64) == "system call -1"
    assert name_tick(TickKind.FAULT, 11, X86_64) == "SIGSEGV"
    assert name_tick(TickKind.SIGNAL, 40, X86_64) == "signal 40"


def test_bins_of_spans_that_are_as_long_as_numbers_go() -> None:
    for start, end, bins in ((0, 1 << 62, 1 << 14), (-(1 << 60), 1 << 60, 7), (5, 8, 1000), (3, 1_000_003, 999)):
        expected = [start + (end - start) * number // bins for number in range(bins + 1)]
        assert find_edges(start, end, bins).tolist() == expected
