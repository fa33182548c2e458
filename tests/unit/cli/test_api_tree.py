"""Trees of calls as text: random ones, told as they return."""

from __future__ import annotations

from random import Random

from clew.api.description import Function
from clew.cli.api_tree import CallTree
from clew.sessions.api_calls import ApiCall


def test_calls_are_under_those_that_made_them() -> None:
    random, clock_ns = Random(7), 0
    expected: dict[int, list[str]] = {1: [], 2: []}
    told: list[ApiCall] = []

    def make(tid: int, depth: int) -> None:
        nonlocal clock_ns
        number = len(expected[tid])
        clock_ns += 1
        began_ns = clock_ns
        expected[tid].append(f"{'  ' * depth}{number}")
        for _ in range(random.randrange(4) if depth < 5 else 0):
            make(tid, depth + 1)
        clock_ns += 1
        took_ns = clock_ns - began_ns
        function = Function(str(number), "Other", ())
        told.append(ApiCall(began_ns, 5, tid, 0, function, (), 0, took_ns, clock_ns, 1000 - depth))

    for _ in range(60):
        make(random.choice((1, 2)), 0)
    tree = CallTree()
    for call in told:
        tree.add(call, [call.function.name])
    lines = list(tree.lines())
    assert max(map(len, expected[1])) > 12
    for tid in expected:
        assert [line.partition("| ")[2] for line in lines if f"{tid}] |" in line] == expected[tid]


def test_times_have_their_units() -> None:
    tree = CallTree()
    for number, took_ns in enumerate((1, 999_999, 2_500_000, 7_200_000_000_000, None)):
        end_ns = (number << 50) + (took_ns or 0)
        call = ApiCall(number << 50, 5, 5, 0, Function("f", "Other", ()), (), 0, took_ns, end_ns, 100)
        tree.add(call, ["f", " > frame"])
    assert list(tree.lines())[::2] == [
        "    0.001 us [      5] | f",
        "  999.999 us [      5] | f",
        "    2.500 ms [      5] | f",
        " 7200.000 s  [      5] | f",
        "             [      5] | f",
    ]
    assert list(tree.lines())[1] == "                       |  > frame"


def test_what_follows_upon_a_call_that_was_left_is_not_within_it() -> None:
    function = Function("f", "Other", ())
    # One began at 1, called another one and was left; a third began where the first one had been.
    inner = ApiCall(2, 5, 5, 0, function, (), 0, 1, 3, 80)
    later = ApiCall(5, 5, 5, 0, function, (), 0, 2, 7, 96)
    left = ApiCall(1, 5, 5, 0, function, (), None, None, 9, 90)
    tree = CallTree()
    for name, call in (("inner", inner), ("later", later), ("left", left)):
        tree.add(call, [name])
    assert [line.partition("| ")[2] for line in tree.lines()] == ["left", "  inner", "later"]
