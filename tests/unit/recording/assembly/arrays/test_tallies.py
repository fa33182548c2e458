"""Tallies of several threads, and that threads worked on together are as each alone."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.dataclass import replace
from clew.recording.assembly.arrays import tallies
from clew.recording.assembly.arrays.tallies import Tally, iter_batches, narrow
from clew.recording.assembly.trace import assemble
from clew.recording.raw.process import Counters
from clew.store.trace import Trace
from tests.unit.recording.made_up_records import session_info
from tests.unit.recording.simulate import make_runtime

_rows = st.lists(st.tuples(st.integers(0, 3), st.sampled_from([0, 1, 2, 7, 900]), st.integers(-9, 9)), max_size=30)


@given(first=_rows, second=_rows, n_threads=st.integers(1, 4))
def test_what_one_thread_has_several_times_is_added_up(
    first: list[tuple[int, int, int]], second: list[tuple[int, int, int]], n_threads: int
) -> None:
    parts = [[(thread % n_threads, number, count) for thread, number, count in part] for part in (first, second)]
    expected: Counter[tuple[int, int]] = Counter()
    for thread, number, count in parts[0] + parts[1]:
        expected[thread, number] += count
    columns = [np.array(part, np.int64).reshape(-1, 3).T for part in parts]
    tally = Tally.add_up(n_threads, *((part[0], part[1], part[2]) for part in columns))
    found = list(zip(tally.thread.tolist(), tally.number.tolist(), tally.count.tolist(), strict=True))
    assert found == [(thread, number, expected[thread, number]) for thread, number in sorted(expected)]
    assert tally.find(tally.thread, tally.number).tolist() == list(range(len(tally)))
    kept = tally.keep()
    joined = Tally.join([kept.of(thread) for thread in range(n_threads)])
    assert joined.n_threads == n_threads == kept.n_threads == kept.open().n_threads
    assert kept.open().thread.tolist() == tally.thread.tolist()
    assert joined.thread.tolist() == tally.thread.tolist()
    assert joined.number.tolist() == tally.number.tolist()
    assert joined.count.tolist() == tally.count.tolist()


@given(sizes=st.lists(st.integers(0, 100_000), max_size=20))
def test_batches_have_each_thread_once_and_are_no_larger_than_they_may_be(sizes: list[int]) -> None:
    batches = list(iter_batches(sizes))
    assert [index for batch in batches for index in range(len(sizes))[batch]] == list(range(len(sizes)))
    for batch in batches:
        assert batch.stop - batch.start == 1 or sum(sizes[batch]) <= tallies.MAX_ROWS


@pytest.mark.parametrize("seed", range(6))
def test_threads_together_are_as_each_alone(seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = make_runtime(seed, max_threads=6, max_steps=300).raw_process()
    traces = []
    for most in (tallies.MAX_ROWS, 1):
        monkeypatch.setattr(tallies, "MAX_ROWS", most)
        directory = tmp_path / str(most)
        directory.mkdir()
        assemble([process], directory, session_info())
        traces.append(Trace(directory))
    for table in ("threads", "blocks", "edges", "counts"):
        assert getattr(traces[0], table).equals(getattr(traces[1], table)), table


def test_what_is_kept_takes_half_the_room_where_it_fits() -> None:
    for numbers, dtype in (
        ([], np.int32),
        ([0, (1 << 31) - 1], np.int32),
        ([-(1 << 31)], np.int32),
        ([1 << 31], np.int64),
        ([-(1 << 31) - 1, 0], np.int64),
    ):
        kept = narrow(np.array(numbers, np.int64))
        assert kept.dtype == dtype and kept.tolist() == numbers
    joined = Tally.join([(narrow(np.array([3])), narrow(np.array([4]))), (np.array([3]), np.array([1 << 40]))])
    assert joined.number.dtype == np.int32 and joined.count.dtype == np.int64 and joined.count.tolist() == [4, 1 << 40]


@pytest.mark.parametrize("seed", range(4))
def test_counts_may_be_larger_than_32_bits(seed: int, tmp_path: Path) -> None:
    # Of one number both a thread that lasted and one that came later and did as much again.
    process = make_runtime(seed, max_threads=2, max_steps=300).raw_process()
    executions = []
    for factor in (1, (1 << 31) // 3, 1 << 40):
        threads = [
            replace(thread, tid=process.threads[0].tid, counters=_times(thread.counters, factor))
            for thread in process.threads
            for _ in range(2)
        ]
        directory = tmp_path / str(factor)
        directory.mkdir()
        assemble([replace(process, threads=threads)], directory, session_info())
        executions.append(np.array(Trace(directory).counts["executions"].to_pylist()) // factor)
    # The last system call of a thread did not come back: that is one execution, however often all others are.
    for large in executions[1:]:
        assert len(large) >= len(executions[0]) and abs(int(large.sum()) - int(executions[0].sum())) <= 2 * len(threads)


def _times(counters: Counters, factor: int) -> Counters:
    return Counters(counters.index, counters.value * np.uint64(factor))
