"""Calls within calls: depths, times of their own, trees of names and bars, against what is counted call by call."""

from __future__ import annotations

import json
from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from clew.analysis.calls.call_lanes import MAX_DEPTH, CallLanes
from clew.analysis.calls.call_nesting import CallNesting
from clew.analysis.calls.call_order import CallOrder
from clew.analysis.calls.call_paths import CallPaths
from clew.analysis.calls.call_rows import CallRows
from clew.analysis.calls.recorded_calls import RecordedCalls
from clew.analysis.calls.told_calls import put_in_words, tell_arguments
from clew.analysis.graph.graph import ProcessGraph
from tests.unit.calls import add_calls
from tests.unit.small_trace import MakeTrace, Rows


@st.composite
def nested_calls(draw: st.DrawFn) -> CallNesting:
    """Calls of two threads, each within those that are open; some never return."""
    calls: list[tuple[int, int, int, int]] = []
    parents: list[int] = []
    stacks: dict[int, list[int]] = {0: [], 1: []}
    ends: dict[int, int] = {}
    now = 1000
    for thread, n_returns, name, step in draw(
        st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3), st.integers(0, 2), st.integers(1, 9)), max_size=40)
    ):
        now += step
        stack = stacks[thread]
        for _ in range(min(n_returns, len(stack))):
            ends[stack.pop()] = now
            now += 1
        parents.append(stack[-1] if stack else -1)
        stack.append(len(calls))
        calls.append((thread, now, name, step))
    time_ns = np.array([one[1] for one in calls], np.int64)
    duration = np.array([ends[at] - one[1] if at in ends else -1 for at, one in enumerate(calls)], np.int64)
    rows = CallRows(
        names=["one", "two", "three"],
        tids=[7, 8],
        time_ns=time_ns,
        name=np.array([one[2] for one in calls], np.uint8),
        thread=np.array([one[0] for one in calls], np.uint8),
        block=np.zeros(len(calls), np.int32),
        kind=np.array([one[2] % 2 for one in calls], np.uint8),
        failed=np.array([one[3] == 9 for one in calls], bool),
        duration_ns=duration,
        source=np.arange(len(calls)),
    )
    return CallNesting(rows, np.array(parents, np.int64))


def chain(nesting: CallNesting, call: int) -> list[int]:
    """A call and those around it, the outermost first."""
    found = [call]
    while nesting.parent[found[0]] >= 0:
        found.insert(0, int(nesting.parent[found[0]]))
    return found


@given(nested_calls())
def test_nesting(nesting: CallNesting) -> None:
    n = len(nesting.rows)
    assert nesting.depth.tolist() == [len(chain(nesting, call)) - 1 for call in range(n)]
    within = [nesting.within(call).tolist() for call in range(n)]
    assert within == [[one for one in range(n) if nesting.parent[one] == call] for call in range(n)]
    outermost = [nesting.outermost(thread).tolist() for thread in (0, 1)]
    assert sorted(outermost[0] + outermost[1]) == [call for call in range(n) if nesting.parent[call] < 0]
    took = nesting.took.tolist()
    assert nesting.own.tolist() == [max(took[call] - sum(took[one] for one in within[call]), 0) for call in range(n)]
    assert [list(nesting.around(call)) for call in range(n)] == [chain(nesting, call)[-2::-1] for call in range(n)]


@given(nested_calls(), st.sets(st.integers(0, 39)))
def test_what_is_asked_for_comes_with_what_is_around_it(nesting: CallNesting, wanted: set[int]) -> None:
    chosen = np.isin(np.arange(len(nesting.rows)), list(wanted))
    kept = nesting.with_those_around(chosen)
    assert set(np.flatnonzero(kept).tolist()) == {
        one for call in wanted if call < len(chosen) for one in chain(nesting, call)
    }


@given(nested_calls())
def test_paths_are_calls_with_the_same_names_around_them(nesting: CallNesting) -> None:
    rows = nesting.rows
    by_names: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for call in range(len(rows)):
        names = (int(rows.name[one]) for one in chain(nesting, call))
        by_names[int(rows.thread[call]), *names].append(call)
    paths = CallPaths(nesting, np.ones(len(rows), bool))
    found = {}
    for path in range(len(paths)):
        of_path: list[int] = []
        at = path
        while at >= 0:
            of_path.insert(0, int(paths.name[at]))
            at = int(paths.parent[at])
        found[int(paths.thread[path]), *of_path] = path
    assert set(found) == set(by_names)
    assert len(found) == len(paths)
    for key, path in found.items():
        calls = by_names[key]
        assert paths.first[path] == calls[0]
        assert paths.calls[path] == len(calls)
        assert paths.failed[path] == rows.failed[calls].sum()
        assert (paths.total[path], paths.own[path]) == (nesting.took[calls].sum(), nesting.own[calls].sum())
        inside = {key for key, one in found.items() if paths.parent[one] == path}
        assert len(paths.within(path)) == paths.n_within[path] == len(inside)
    for sort in ("order", "calls", "total", "own", "name"):
        for thread in (0, 1):
            own = paths.of_thread(thread)
            ways = [paths.sort(own, sort, descending=one).tolist() for one in (False, True)]
            assert sorted(ways[0]) == sorted(ways[1]) == own.tolist()


@given(nested_calls(), st.integers(990, 1300), st.integers(1, 300), st.integers(1, 50))
def test_each_call_is_in_one_bar(nesting: CallNesting, start: int, span: int, n_bins: int) -> None:
    rows, end = nesting.rows, start + span
    bars = CallLanes(nesting).bars(start, end, n_bins, None, None)
    wanted: Counter[tuple[int, int]] = Counter()
    failed = 0
    for call in range(len(rows)):
        begins, ends = int(rows.time_ns[call]), int(rows.time_ns[call] + nesting.took[call])
        if begins < end and ends >= start and nesting.depth[call] < MAX_DEPTH:
            wanted[int(rows.thread[call]), int(nesting.depth[call])] += 1
            failed += bool(rows.failed[call])
    found: Counter[tuple[int, int]] = Counter()
    for thread, depth, calls in zip(bars.thread.tolist(), bars.depth.tolist(), bars.calls.tolist(), strict=True):
        found[thread, depth] += calls
    assert found == wanted
    assert bars.failed.sum() == failed
    assert (bars.start_ns <= bars.end_ns).all()
    assert (rows.thread[bars.longest] == bars.thread).all()
    assert (nesting.depth[bars.longest] == bars.depth).all()
    # Of one lane they rise, and there is at most one for each bin, and one that began before.
    for lane in wanted:
        own = (bars.thread == lane[0]) & (bars.depth == lane[1])
        assert (np.diff(bars.start_ns[own]) > 0).all()
        assert np.count_nonzero(own) <= n_bins + 1


def test_calls_that_are_said_to_be_around_each_other_end() -> None:
    zeros = np.zeros(2, np.int64)
    rows = CallRows(["x"], [1], zeros, zeros, zeros, zeros, zeros, zeros > 0, zeros + 5, zeros)
    nesting = CallNesting(rows, np.array([1, 0]))
    assert len(nesting.depth) == 2
    assert list(nesting.around(0)) == [1]
    assert nesting.with_those_around(np.array([True, False])).all()


def test_calls_are_found_in_the_order_of_execution(rows: Rows, make_trace: MakeTrace) -> None:
    tables = add_calls(rows)
    for row, position in zip(tables["calls"], (4, 9, None, 9, 30), strict=True):
        row["position"] = position
    recorded = RecordedCalls(ProcessGraph(make_trace(tables), 0))
    order = CallOrder(recorded.rows, recorded.position)
    assert order.of_thread(7).tolist() == [0, 1, 3, 4]
    assert order.of_thread(99).tolist() == []
    assert [order.first_from(7, position) for position in (0, 4, 5, 9, 10, 31)] == [0, 0, 1, 1, 3, 4]
    assert [order.find(7, position, back=False) for position in (0, 4, 9, 30)] == [4, 9, 30, None]
    assert [order.find(7, position, back=True) for position in (0, 4, 9, 30, 31)] == [None, None, 4, 9, 30]
    assert recorded.nesting.parent.tolist() == [-1, 0, -1, -1, -1]


WORDS = st.text(st.sampled_from('ab\\"{}[],=: 3é\U0001f9f5'), max_size=9)
NAMES = st.from_regex(r"[a-z]{1,4}", fullmatch=True)
ARGUMENTS = st.one_of(
    st.fixed_dictionaries({"name": NAMES, "type": WORDS, "value": st.integers(0, 99), "text": WORDS}),
    st.fixed_dictionaries({"name": st.just("p"), "type": st.just("char *"), "value": st.just("0x10"), "text": WORDS}),
    st.fixed_dictionaries({"value": st.just("0x1f")}),
    st.fixed_dictionaries({"text": WORDS, "name": st.just("odd")}),
    st.fixed_dictionaries({"name": st.just("n"), "type": st.just("int"), "value": st.integers(0, 99)}),
)  # fmt: skip


@given(st.lists(st.tuples(st.lists(ARGUMENTS, max_size=4), WORDS | st.none(), st.sampled_from(["ENOENT", None]))))
def test_calls_are_put_in_words(made: list[tuple[list[dict[str, object]], str | None, str | None]]) -> None:
    """As the page tells them, whatever the traced program wrote in its texts."""
    table = pa.table(
        {
            "arguments": pa.array([json.dumps(arguments, ensure_ascii=False) for arguments, _, _ in made], pa.string()),
            "result_text": pa.array([result for _, result, _ in made], pa.string()),
            "error": pa.array([error for _, _, error in made], pa.string()).dictionary_encode(),
        }
    )
    told = put_in_words(table).to_pylist()
    for words, (arguments, result, error) in zip(told, made, strict=True):
        given_words = [
            f"{one['name']}={one.get('text', one.get('value'))}" if "name" in one else one["value"]
            for one in tell_arguments(json.dumps(arguments))
        ]
        wanted = f"{', '.join(given_words)} = {result or ''} {error or ''}"
        assert words == wanted


def test_arguments_are_searched_for_by_name_and_value(rows: Rows, make_trace: MakeTrace) -> None:
    tables = add_calls(rows)
    texts = ["3", "33", '"/etc/passwd"', '"/etc/group"...', "O_RDONLY"]
    for row, text, name in zip(tables["calls"], texts, ("fd", "oldfd", "filename", "pathname", "flags"), strict=True):
        row["arguments"] = json.dumps(
            [
                {"name": "n", "type": "int", "value": 1, "text": "1"},
                {"name": name, "type": "x", "value": 0, "text": text},
            ]
        )
    recorded = RecordedCalls(ProcessGraph(make_trace(tables), 0))

    def found(text: str) -> list[int]:
        rows_found: list[int] = recorded.find_text(text).tolist()
        return rows_found

    assert found("fd=3") == [0]
    assert found("fd=33") == found("oldfd=33") == [1]
    assert found("fd=3*") == [0, 1]
    assert found("path=/etc/passwd") == found("filename=/etc/passwd") == found('filename="/etc/passwd"') == [2]
    assert found("path=/etc/*") == found("PATH=*etc*") == [2, 3]
    assert found("flags=o_rdonly") == [4]
    assert found("type") == found("value") == []
    assert found("n=1") == [0, 1, 2, 3, 4]
    assert found("n=1, fd") == [0]
    assert found("fd=(") == found("fd=[") == found("nothing") == []
