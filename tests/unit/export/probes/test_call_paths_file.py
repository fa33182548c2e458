"""Trees of calls that were written as JSON are read back, and what is none is refused by its line."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.export.probes.call_paths_file import read_paths
from clew.export.probes.call_tree import CallPath, CallTrees, walk_paths
from clew.export.probes.call_tree_text import paths_json, trees_json
from tests.unit.export.probes.test_call_tree import Made, made_calls, paths_of, run

ROW = {
    "depth": 0,
    "function": "a",
    "count": 1,
    "n_left": 0,
    "total_ns": 5,
    "self_ns": 5,
    "least_ns": 5,
    "most_ns": 5,
}
CALL = {"depth": 0, "function": "a", "total_ns": 5, "self_ns": 5, "end": "returned"}


def listed(root: CallPath) -> list[tuple[Any, ...]]:
    """All paths with their numbers."""
    names: list[str] = []
    found = []
    for depth, one in walk_paths(root):
        names[depth:] = [one.function]
        found.append((*names, one.count, one.n_left, one.total_ns, one.self_ns, one.least_ns, one.most_ns))
    return sorted(found, key=str)


@given(st.lists(made_calls(), max_size=3))
def test_paths_are_read_as_they_were_written(roots: list[Made]) -> None:
    paths = paths_of(run(roots))
    assert listed(read_paths(paths_json(paths))) == listed(paths.root)


@given(st.lists(made_calls(), max_size=3))
def test_single_calls_are_read_as_their_paths(roots: list[Made]) -> None:
    batch = run(roots)
    trees = CallTrees()
    trees.write(batch)
    trees.close()
    assert listed(read_paths(trees_json(trees))) == listed(paths_of(batch).root)


@pytest.mark.parametrize(
    ("rows", "wrong"),
    [
        (["{"], 1),
        (["[" * 100_000], 1),
        (["5"], 1),
        ([ROW, ROW], 2),
        ([{**ROW, "depth": 1}], 1),
        ([ROW, {**ROW, "depth": 2}], 2),
        ([{**ROW, "depth": -1}], 1),
        ([{**ROW, "depth": True}], 1),
        ([{**ROW, "count": 0}], 1),
        ([{**ROW, "count": 1.5}], 1),
        ([{**ROW, "total_ns": 1 << 63}], 1),
        ([{**ROW, "function": 5}], 1),
        ([{name: value for name, value in ROW.items() if name != "most_ns"}], 1),
        ([CALL, {**CALL, "end": "never"}], 2),
        ([CALL, {**CALL, "end": ["open"]}], 2),
    ],
)
def test_what_is_no_tree_is_refused(rows: list[Any], wrong: int) -> None:
    lines = [one if isinstance(one, str) else json.dumps(one) for one in rows]
    with pytest.raises(ValueError, match=f"line {wrong}: "):
        read_paths(lines)


def test_what_is_deep_is_read() -> None:
    lines = [json.dumps({**ROW, "depth": depth}) for depth in range(20_000)]
    assert sum(1 for _ in walk_paths(read_paths(lines))) == 20_000
