"""Fragments whose executions follow from what leads to them: of made-up runs, and of records that make no sense."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.protocol._generated import LINK_RECORD, EdgeKind, ExitKind
from clew.recording.assembly.arrays.tallies import Tally
from clew.recording.assembly.code import parse_code, work_out
from clew.recording.assembly.flow.leaders import Leaders
from clew.recording.assembly.paths.weights import weigh_counters
from clew.recording.assembly.records.records import Fragments, ParsedRecords, parse_records
from clew.recording.raw.process import RawProcess, count_counters
from tests.unit.recording.simulate import make_runtime

N_FRAGMENTS = 4
COUNTERS_EACH = 4
TAKEN, NOT_TAKEN = int(EdgeKind.TAKEN), int(EdgeKind.NOT_TAKEN)


def parse(process: RawProcess) -> ParsedRecords:
    return parse_records(process.records, count_counters(process.threads, process.records))


def made_up(second_is_both: list[bool]) -> Fragments:
    """Conditionals, with counters for both ways and for the misses of both."""
    process = make_runtime(1, max_steps=200).raw_process()
    few = {name: getattr(parse(process).fragments, name) for name in Fragments.__dataclass_fields__}
    few = {name: value if name == "starts" else value[:N_FRAGMENTS] for name, value in few.items()}
    few |= {
        "fragment_id": np.arange(N_FRAGMENTS),
        "counter_index": COUNTERS_EACH * np.arange(N_FRAGMENTS),
        "exit_kind": np.full(N_FRAGMENTS, ExitKind.CONDITIONAL),
        "n_misses": np.full(N_FRAGMENTS, 2),
        "first_is_both": ~np.array(second_is_both),
        "second_is_both": np.array(second_is_both),
    }
    return Fragments(**few)


def complete(fragments: Fragments, leads: list[tuple[int, int, int]], values: dict[int, int]) -> dict[int, int]:
    """Counters, with what leaders (fragment, way, follower) say."""
    links = np.zeros(len(leads), LINK_RECORD)
    for number, (source, way, target) in enumerate(leads):
        links[number]["source_fragment_id"], links[number]["edge_kind"] = source, way
        links[number]["target_fragment_id"] = target
    index = np.array(sorted(values), np.int64)
    tally = Tally.join([(index, np.array([values[at] for at in index.tolist()], np.int64))])
    done = Leaders(fragments, links).apply(tally)
    assert done.number.tolist() == sorted(done.number.tolist())
    return dict(zip(done.number.tolist(), done.count.tolist(), strict=True))


def test_what_a_leader_counted_is_added_all_along_the_chain() -> None:
    fragments = made_up([False, True, False, False])
    # The first: 100 both ways, 30 of them not taken, 2 of those not to the second; which another one came to 5 times.
    # Of its 33 executions 10 are taken, and all of these come to the third.
    values = {0: 100, 1: 30, 3: 2, 4: 10, 5: 5}
    assert complete(fragments, [(0, NOT_TAKEN, 1), (1, TAKEN, 2)], values) == {0: 100, 1: 30, 4: 10, 5: 33, 8: 10}


def test_a_way_that_counts_both_leads_as_often_as_the_other_one_was_not_taken() -> None:
    fragments = made_up([False] * 4)
    assert complete(fragments, [(0, TAKEN, 1)], {0: 100, 1: 30, 2: 69}) == {0: 100, 1: 30, 4: 1}
    # A thread that runs is not read at one time.
    assert complete(fragments, [(0, TAKEN, 1)], {0: 100, 1: 30, 2: 71}) == {0: 100, 1: 30}


def test_a_fragment_may_have_several_leaders() -> None:
    fragments = made_up([False] * 4)
    # All of the first comes to the fourth, some by way of the second: that failed once, and once another one came.
    leads = [(0, TAKEN, 3), (0, NOT_TAKEN, 1), (1, TAKEN, 3)]
    values = {0: 100, 1: 30, 6: 1, 12: 1}
    assert complete(fragments, leads, values) == {0: 100, 1: 30, 4: 30, 12: 100}


@given(
    leads=st.lists(
        st.tuples(st.integers(0, N_FRAGMENTS), st.integers(0, 255), st.integers(0, N_FRAGMENTS)), max_size=9
    ),
    value=st.integers(0, 1 << 61),
)
def test_leaders_that_make_no_sense_do_no_harm(leads: list[tuple[int, int, int]], value: int) -> None:
    fragments = made_up([False, True, False, True])
    for found in complete(fragments, leads, dict.fromkeys(range(COUNTERS_EACH * N_FRAGMENTS), value)):
        assert found % COUNTERS_EACH < 2


def weigh(process: RawProcess) -> tuple[tuple[int, int], dict[int, int]]:
    """Instructions and blocks that a thread executed, and how often each block, as the weights of its counters say."""
    n_counters = count_counters(process.threads, process.records)
    code = parse_code(process.records, n_counters)
    flow, cut, _ = work_out(code, lambda: process.threads, process.mode)
    weights = weigh_counters(code.parsed, flow, cut, n_counters)
    counters = process.threads[0].counters
    executed: Counter[int] = Counter()
    for counter, block, times in zip(*weights.listed, strict=True):
        executed[int(cut.blocks.app_pc[block])] += int(times) * int(counters.at(np.array([counter]))[0])
    return weights.weigh(counters.index, counters.value), {pc: n for pc, n in executed.items() if n}


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 1 << 30))
def test_counters_weigh_what_they_do_where_all_count(seed: int) -> None:
    runs = [
        make_runtime(seed, max_threads=1, max_steps=400, with_leaders=with_leaders).raw_process()
        for with_leaders in (False, True)
    ]
    assert weigh(runs[0]) == weigh(runs[1])


def test_made_up_runs_have_leaders() -> None:
    runs = [parse(make_runtime(seed).raw_process()) for seed in range(20)]
    assert sum(len(parsed.links) for parsed in runs) > 60
    several = [np.unique(parsed.links["target_fragment_id"], return_counts=True)[1] > 1 for parsed in runs]
    assert sum(int(np.count_nonzero(one)) for one in several) > 10
