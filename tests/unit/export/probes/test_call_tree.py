"""Trees of calls are those of made-up runs, in which is known when each call was made."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from clew.export.probes.call_paths_diff import diff_paths
from clew.export.probes.call_tree import Call, CallPath, CallPaths, CallTrees, TreeChoice, walk_paths
from clew.export.probes.call_tree_text import (
    changes_json,
    changes_text,
    paths_json,
    paths_text,
    trees_json,
    trees_text,
)
from clew.export.probes.event_types import EventBatch, EventKind, EventType
from clew.export.probes.open_calls import MAX_OPEN, CallEnd
from tests.unit.export.probes.made_events import START_NS, calls_of, to_table

TYPES = {name: calls_of(name) for name in "abc"}
UNNUMBERED = {
    name: tuple(EventType(f"{name}:{kind.value}", kind=kind, function=name) for kind in [*EventKind][1:])
    for name in "abc"
}


@dataclass
class Made:
    """A call that was made: how long it ran before each call within it, and after the last; whether it was left."""

    function: str
    times: list[int]
    calls: list[Made] = field(default_factory=list)
    is_left: bool = False
    start_ns: int = 0
    end_ns: int = 0


@st.composite
def made_calls(draw: st.DrawFn, depth: int = 4) -> Made:
    calls = draw(st.lists(made_calls(depth - 1), max_size=3)) if depth else []
    times = draw(st.lists(st.integers(0, 50), min_size=len(calls) + 1, max_size=len(calls) + 1))
    return Made(draw(st.sampled_from("abc")), times, calls)


def run(roots: list[Made], *, is_numbered: bool = True, tid: int = 4711) -> EventBatch:
    """The events of a thread that makes the calls: types apart, as they come."""
    rows: dict[EventType, list[tuple[Any, ...]]] = {}
    clock = sequence = n_calls = 0
    types = TYPES if is_numbered else UNNUMBERED

    def tell(event_type: EventType, number: int) -> None:
        nonlocal sequence
        values = (number,) if is_numbered else ()
        rows.setdefault(event_type, []).append((clock, sequence, 4711, tid, b"prog", 0, *values))
        sequence += 1

    def make(call: Made) -> None:
        nonlocal clock, n_calls
        number = n_calls = n_calls + 1
        call.start_ns = START_NS + clock
        tell(types[call.function][0], number)
        for time, inner in zip(call.times, call.calls, strict=False):
            clock += time
            make(inner)
        clock += call.times[-1]
        call.end_ns = START_NS + clock
        if not call.is_left:
            tell(types[call.function][1], number)

    for root in roots:
        make(root)
    return EventBatch([(one, to_table(one, own)) for one, own in rows.items()])


def trees_of(batch: EventBatch, **choice: Any) -> list[Call]:
    trees = CallTrees(TreeChoice(**choice))
    trees.write(batch)
    trees.close()
    return trees.threads.get((4711, 4711), [])


def paths_of(batch: EventBatch, **choice: Any) -> CallPaths:
    paths = CallPaths(TreeChoice(**choice))
    paths.write(batch)
    paths.close()
    return paths


def as_call(call: Made) -> Call:
    """What is to be told of it. Its own time is told apart from calls within: it is what `times` add up to."""
    total = call.end_ns - call.start_ns
    inner = [as_call(one) for one in call.calls]
    return Call(call.function, call.start_ns, total, sum(call.times), CallEnd.RETURNED, inner)


@given(st.lists(made_calls(), max_size=3), st.booleans())
def test_trees_are_the_calls_that_were_made(roots: list[Made], is_numbered: bool) -> None:
    found = trees_of(run(roots, is_numbered=is_numbered))
    assert found == [as_call(one) for one in roots]


def cut(call: Call, choice: TreeChoice, depth: int = 1) -> list[Call]:
    """A call as it is chosen, by looking at the whole tree."""
    if call.total_ns < choice.min_duration_ns or (choice.depth is not None and depth > choice.depth):
        return []
    inner = [one for each in call.calls for one in cut(each, choice, depth + 1)]
    return [Call(call.function, call.start_ns, call.total_ns, call.self_ns, call.end, inner)]


def below(call: Call, function: str) -> list[Call]:
    return [call] if call.function == function else [one for inner in call.calls for one in below(inner, function)]


@given(
    st.lists(made_calls(), max_size=3),
    st.integers(0, 100),
    st.none() | st.integers(1, 4),
    st.none() | st.sampled_from("abcd"),
)
def test_what_is_asked_for_is_told(roots: list[Made], least: int, depth: int | None, within: str | None) -> None:
    choice = TreeChoice(least, depth, within)
    found = trees_of(run(roots), min_duration_ns=least, depth=depth, within=within)
    whole = [as_call(one) for one in roots]
    starts = whole if within is None else [one for root in whole for one in below(root, within)]
    assert found == [one for start in starts for one in cut(start, choice)]


def add_up(calls: list[Call], root: CallPath) -> None:
    for call in calls:
        path = root.calls.setdefault(call.function, CallPath(call.function))
        path.add(call.total_ns, call.self_ns, call.end)
        add_up(call.calls, path)


@given(st.lists(made_calls(), max_size=3), st.none() | st.integers(1, 4), st.none() | st.sampled_from("abc"))
def test_paths_are_trees_added_up(roots: list[Made], depth: int | None, within: str | None) -> None:
    batch = run(roots)
    expected = CallPath("")
    add_up(trees_of(batch, depth=depth, within=within), expected)
    assert paths_of(batch, depth=depth, within=within).root == expected


def leave(function: str, *times: int) -> Made:
    return Made(function, [*times], is_left=True)


def test_calls_that_are_left_end_with_the_one_outside() -> None:
    inner = Made("b", [1, 2], [leave("c", 4)], is_left=True)
    [root] = trees_of(run([Made("a", [10, 20], [inner])]))
    assert (root.end, root.total_ns, root.self_ns) == (CallEnd.RETURNED, 37, 10)
    [left] = root.calls
    assert (left.end, left.total_ns) == (CallEnd.LEFT, 27)
    assert [one.end for one in left.calls] == [CallEnd.LEFT]


def test_numbers_tell_a_call_from_one_of_its_own_function_that_was_left() -> None:
    roots = [Made("a", [1, 1], [leave("a", 5)])]
    [root] = trees_of(run(roots))
    assert (root.end, root.total_ns, [one.end for one in root.calls]) == (CallEnd.RETURNED, 7, [CallEnd.LEFT])


def test_calls_without_an_end_are_open() -> None:
    [root] = trees_of(run([Made("a", [3, 4], [Made("b", [5])], is_left=True)]))
    assert (root.end, root.total_ns, root.self_ns) == (CallEnd.OPEN, 8, 3)


def test_returns_without_an_entry_are_counted() -> None:
    entry, leaving = TYPES["a"]
    trees = CallTrees()
    trees.write(EventBatch([(leaving, to_table(leaving, [(1, 0, 4711, 4711, b"prog", 0, 9)]))]))
    trees.write(EventBatch([(entry, to_table(entry, [(2, 1, 4711, 4711, b"prog", 0, 10)]))]))
    trees.close()
    assert trees.n_unmatched == 1
    assert len(trees.threads[4711, 4711]) == 1


def test_calls_that_are_always_left_take_no_more_room_than_there_is() -> None:
    entry, leaving = TYPES["a"]
    n = MAX_OPEN + 10
    paths = CallPaths(TreeChoice(depth=1))
    paths.write(EventBatch([(entry, to_table(entry, [(i, i, 4711, 4711, b"prog", 0, i) for i in range(n)]))]))
    # The last one is still known.
    paths.write(EventBatch([(leaving, to_table(leaving, [(n, n, 4711, 4711, b"prog", 0, n - 1)]))]))
    paths.close()
    assert paths.n_unmatched == 0


def test_threads_are_apart() -> None:
    trees = CallTrees()
    for tid in (4711, 4712):
        trees.write(EventBatch(run([leave("a", 5)], tid=tid).tables))
    trees.end_thread(4711, 4711)
    assert [*trees.threads] == [(4711, 4711)]
    trees.close()
    assert [*trees.threads] == [(4711, 4711), (4711, 4712)]


def test_trees_that_are_deeper_than_python_calls_itself() -> None:
    n = 20_000
    entry, leaving = TYPES["a"]
    rows = [(i, i, 4711, 4711, b"prog", 0, i) for i in range(n)]
    back = [(n + i, n + i, 4711, 4711, b"prog", 0, n - 1 - i) for i in range(n)]
    batch = EventBatch([(entry, to_table(entry, rows)), (leaving, to_table(leaving, back))])
    trees = CallTrees()
    trees.write(batch)
    trees.close()
    assert json.loads([*trees_json(trees)][-1])["depth"] == n - 1
    paths = paths_of(batch)
    assert sum(1 for _ in walk_paths(paths.root)) == n
    assert sum(1 for _ in changes_json(diff_paths(paths.root, paths.root))) == n


def test_text_of_a_tree() -> None:
    trees = CallTrees()
    trees.write(run([Made("a", [1500, 10], [Made("b", [2_000_000])]), leave("c", 0)]))
    trees.close()
    assert [*trees_text(trees)] == [
        "       TOTAL         SELF    THREAD | FUNCTION",
        "    2.002 ms     1.510 us    [4711] | a",
        "    2.000 ms     2.000 ms    [4711] |   b",
        "    0.000 us     0.000 us    [4711] | c  (no end seen)",
    ]


def test_text_and_json_of_paths_and_of_what_changed() -> None:
    before = paths_of(run([Made("a", [1000, 0], [Made("b", [500])])]))
    after = paths_of(run([Made("a", [1000, 0], [Made("c", [900])]), Made("a", [100])]))
    assert [*paths_text(after)] == [
        "       TOTAL         SELF      AVERAGE      CALLS | FUNCTION",
        "    2.000 us     1.100 us     1.000 us          2 | a",
        "    0.900 us     0.900 us     0.900 us          1 |   c",
    ]
    assert [json.loads(line) for line in paths_json(before)] == [
        {"depth": 0, "function": "a", "count": 1, "n_left": 0, "total_ns": 1500, "self_ns": 1000,
         "least_ns": 1500, "most_ns": 1500},
        {"depth": 1, "function": "b", "count": 1, "n_left": 0, "total_ns": 500, "self_ns": 500,
         "least_ns": 500, "most_ns": 500},
    ]  # fmt: skip
    change = diff_paths(before.root, after.root)
    assert [*changes_text(change)] == [
        "        TOTAL          SELF                  CALLS | FUNCTION",
        "    +0.500 us     +0.100 us                 1 -> 2 | a",
        "    +0.900 us     +0.900 us                 0 -> 1 |+  c",
        "    -0.500 us     -0.500 us                 1 -> 0 |-  b",
    ]
    assert [json.loads(line)["total_ns"] for line in changes_json(change)] == [[1500, 2000], [0, 900], [500, 0]]


@given(st.lists(made_calls(), max_size=2), st.lists(made_calls(), max_size=2))
def test_a_change_leads_from_one_tree_to_the_other(before: list[Made], after: list[Made]) -> None:
    one, other = paths_of(run(before)).root, paths_of(run(after)).root
    rows = [json.loads(line) for line in changes_json(diff_paths(one, other))]
    for side, root in enumerate((one, other)):
        stack: list[str] = []
        found = {}
        for row in rows:
            stack[row["depth"] :] = [row["function"]]
            if row["count"][side]:
                found[tuple(stack)] = row["count"][side], row["total_ns"][side], row["self_ns"][side]
        stack, expected = [], {}
        for depth, path in walk_paths(root):
            stack[depth:] = [path.function]
            expected[tuple(stack)] = path.count, path.total_ns, path.self_ns
        assert found == expected
