"""Counters that were read while their thread ran on: not of one time, so that some counts come out as none."""

from __future__ import annotations

import dataclasses

import pytest

from clew.protocol._generated import Mode
from clew.recording.assembly.code import find_flow, parse_code
from clew.recording.raw.process import Counters, RawProcess, count_counters
from tests.unit.recording.simulate import make_runtime


def counters_of_ways(process: RawProcess, counters: Counters, path_bytes: int | None) -> set[int]:
    """The counters of the ways through fragments that are known, where the one thread's counters are these."""
    code = parse_code(process.records, count_counters(process.threads, process.records))
    thread = dataclasses.replace(process.threads[0], counters=counters, path_bytes=path_bytes)
    return set(find_flow(code, lambda: [thread], Mode.FULL).paths.counter.tolist())


@pytest.mark.parametrize("seed", range(8))
def test_ways_that_seem_not_taken_stay_where_a_thread_with_a_path_ran_on(seed: int) -> None:
    process = make_runtime(seed, max_threads=1, max_steps=400).raw_process()
    counters = process.threads[0].counters
    known = counters_of_ways(process, counters, None)
    # Every second counter is one of which a difference came out as none.
    halved = Counters(counters.index[::2], counters.value[::2])
    assert not known <= counters_of_ways(process, halved, None)
    assert known <= counters_of_ways(process, halved, 1)
