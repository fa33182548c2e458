"""Two random runs of random code, compared: by instruction it differs as the runs do, however blocks were cut."""

from __future__ import annotations

import tempfile
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.analysis.comparison.trace_diff import SUBJECTS, TraceDiff
from clew.protocol.words import EDGE_WORDS
from tests.unit.small_trace import BASE, Rows, small_trace, write_trace

SIZE = 24
Stretch = tuple[int, int]
"""A straight run, from its first instruction up to the last, which jumps; instructions have one byte."""

stretches = st.tuples(st.integers(0, SIZE - 1), st.integers(0, SIZE - 1)).map(lambda ends: (min(ends), max(ends)))
runs = st.lists(stretches, min_size=1, max_size=12)


def make_rows(run: list[Stretch], base: int) -> Rows:
    """The trace of a thread that ran the stretches one after another, with the blocks that it was seen to enter."""
    rows = small_trace()
    rows["images"][0]["base"] = base
    borders = sorted({first for first, _ in run} | {last + 1 for _, last in run})
    edges: Counter[tuple[int | None, int, str]] = Counter()
    executions: Counter[int] = Counter()
    template, edge = rows["blocks"][0], rows["edges"][0]
    rows["blocks"] = []
    blocks = {begin: end for begin, end in pairwise(borders) if any(first <= begin <= last for first, last in run)}
    before: int | None = None
    numbers = {begin: number for number, begin in enumerate(blocks)}
    for first, last in run:
        kind = "start" if before is None else "indirect_jump"
        begin = first
        while begin <= last:
            edges[before, numbers[begin], kind] += 1
            executions[numbers[begin]] += 1
            before, begin, kind = numbers[begin], blocks[begin], "fall_through"
    for begin, end in blocks.items():
        rows["blocks"].append(
            template
            | {"block_id": numbers[begin], "offset": begin, "app_pc": base + begin, "size_bytes": end - begin}
            | {"symbol_offset": begin, "function_offset": 0, "n_instructions": end - begin}
            | {"bytes": b"\x90" * (end - begin), "exit_kind": "fall_through"}
        )
    whose = rows["counts"][0]
    rows["edges"], rows["counts"] = [], []
    for number, ((source, target, kind), n) in enumerate(edges.items()):
        rows["edges"].append(
            edge | {"edge_id": number, "source_block_id": source, "target_block_id": target, "kind": kind}
        )
        rows["counts"].append(whose | {"block_id": None, "edge_id": number, "executions": n})
    for number, n in executions.items():
        rows["counts"].append(whose | {"block_id": number, "edge_id": None, "executions": n})
    return rows


def count_instructions(run: list[Stretch]) -> Any:
    counts = np.zeros(SIZE, np.int64)
    for first, last in run:
        counts[first : last + 1] += 1
    return counts


def count_ways(run: list[Stretch], borders: set[int]) -> Counter[tuple[int, int]]:
    """How often it was gone from an instruction to another, over the borders."""
    ways: Counter[tuple[int, int]] = Counter()
    before = -1
    for first, last in run:
        ways[before, first] += 1
        ways.update((at - 1, at) for at in range(first + 1, last + 1) if at in borders)
        before = last
    return ways


def compare(a: Rows, b: Rows) -> tuple[TraceDiff, dict[str, Any]]:
    """The two compared, and what is told of them by subject. The other way round it is mirrored."""
    with tempfile.TemporaryDirectory() as folder:
        traces = [write_trace(rows, Path(folder) / name) for rows, name in ((a, "a"), (b, "b"))]
        pair = TraceDiff(*traces), TraceDiff(*reversed(traces))
        told = {by: pair[0].to_dict(by, 100) for by in SUBJECTS}
        contents = [told["block"], pair[1].to_dict("block", 100)]
    assert contents[0]["blocks"] == {
        name: contents[1]["blocks"][other]
        for name, other in (
            ("same", "same"),
            ("differ", "differ"),
            ("only_in_a", "only_in_b"),
            ("only_in_b", "only_in_a"),
        )
    }
    assert contents[0]["equal"] == contents[1]["equal"]
    return pair[0], told


@settings(max_examples=40, deadline=None)
@given(runs, runs)
@pytest.mark.long
def test_differences_are_those_of_the_instructions(a: list[Stretch], b: list[Stretch]) -> None:
    diff, _ = compare(make_rows(a, BASE), make_rows(b, 0x555500000000))
    instructions = [count_instructions(run) for run in (a, b)]
    for side in (0, 1):
        assert diff.blocks.instructions[side].sum() == instructions[side].sum()
    # Instruction by instruction, as the pieces have it.
    found = np.zeros((2, SIZE), np.int64)
    _, start = diff.place
    for side, pieces in enumerate(diff.pieces):
        for number, begin, size in zip(pieces.number, pieces.start, pieces.size_bytes, strict=True):
            into = int(begin - start.min()) + min(min(first for first, _ in run) for run in (a, b))
            found[side, into : into + int(size)] += diff.blocks.executions[side, number]
    assert (found == instructions).all()
    apart = int(np.abs(instructions[0] - instructions[1]).sum())
    assert int(np.abs(diff.blocks.instructions[0] - diff.blocks.instructions[1]).sum()) == apart
    borders = {border for run in (a, b) for first, last in run for border in (first, last + 1)}
    ways = [count_ways(run, borders) for run in (a, b)]
    # By straight line and by jump it is gone to the next instruction: two edges of one way.
    of_ways = sum(abs(ways[0][way] - ways[1][way]) for way in ways[0] | ways[1] if way[0] + 1 != way[1])
    kinds = [np.full(len(diff.edges.is_comparable), -1) for _ in diff.flows]
    for kind, flow, first in zip(kinds, diff.flows, diff.edges.first, strict=True):
        kind[first >= 0] = flow.kind[first[first >= 0]]
    is_straight = np.maximum(*kinds) == EDGE_WORDS.index("fall_through")
    straight = [Counter(at for first, last in run for at in range(first + 1, last + 1) if at in borders)
                for run in (a, b)]  # fmt: skip
    differing = np.abs(diff.edges.executions[0] - diff.edges.executions[1])
    assert differing[is_straight].sum() == sum(abs(straight[0][at] - straight[1][at]) for at in borders)
    assert differing[~is_straight].sum() >= of_ways
    assert diff.is_equal == (apart == 0 and not differing.any())


@settings(max_examples=15, deadline=None)
@given(runs)
def test_a_run_and_itself(run: list[Stretch]) -> None:
    diff, told = compare(make_rows(run, BASE), make_rows(run, BASE + 0x1000))
    assert diff.is_equal
    for content in told.values():
        assert content["rows"] == content["only_in_a"] == content["only_in_b"] == []


@settings(max_examples=15, deadline=None)
@given(runs, st.randoms(use_true_random=False))
def test_the_same_stretches_in_another_order(run: list[Stretch], random: Any) -> None:
    """Only the jumps between them differ."""
    other = list(run)
    random.shuffle(other)
    diff, told = compare(make_rows(run, BASE), make_rows(other, BASE))
    assert not diff.blocks.differs.any()
    assert told["block"]["rows"] == told["function"]["rows"] == []
