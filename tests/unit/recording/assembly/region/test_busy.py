"""What a thread was busy with when it was killed is counted out of its counters, and told only where it follows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from clew.protocol._generated import NO_INDEX, EdgeKind, ExitKind, RegionWord
from clew.recording.assembly.region.busy import count_untold
from clew.recording.assembly.region.tags import NOT_THERE, TAG_KINDS, Tags

START_PC = np.array([0x1000, 0x1010, 0x1020], np.uint64)


def code(**changes: Any) -> Any:
    """Three blocks: 0 ends with a conditional branch, 1 with a jump, 2 with a return."""
    columns = {
        "region_block": np.array([0, 1, 2]),
        "end_pc": START_PC + np.uint64(16),
        "exit_kind": np.array([ExitKind.CONDITIONAL, ExitKind.JUMP, ExitKind.RETURN]),
    }
    return SimpleNamespace(**columns | changes)


def flow() -> Any:
    """Block 0 was executed 30 times, 20 of them went to block 1, and the others to 2; a part of it once more."""
    paths = SimpleNamespace(fragment=np.array([0, 0, 1, 2]), stop_pc=np.array([0x1010, 0x1008, 0x1020, 0x1030], "u8"))
    edges = SimpleNamespace(
        source=np.array([0, 0, 1, -1]),
        target_pc=np.array([0x1010, 0x1020, 0x1000, 0x1000], np.uint64),
        kind=np.array([EdgeKind.TAKEN, EdgeKind.NOT_TAKEN, EdgeKind.JUMP, EdgeKind.START]),
    )
    thread = SimpleNamespace(
        path=np.arange(4),
        path_count=np.array([30, 1, 20, 10]),
        edge=np.arange(4),
        edge_count=np.array([20, 10, 20, 1]),
    )
    return SimpleNamespace(paths=paths, edges=edges, threads=[thread])


def told(*executed: tuple[int, int]) -> Tags:
    """Tags of executions: a block, and the next."""
    n = len(executed)
    nothing, kind = np.full(n, NOT_THERE), np.full(n, TAG_KINDS.index(RegionWord.EXECUTED))
    block, target = np.array(executed, np.int64).reshape(-1, 2).T
    return Tags(np.arange(n), kind, block, target, nothing, nothing, nothing, nothing)


def rows(busy: dict[int, int], tags: Tags, fragments: Any = None) -> list[tuple[int, ...]]:
    found = count_untold(busy, 5, [tags], START_PC, fragments or code(), flow(), 0)
    columns = (found.number, found.block, found.target_pc, found.executions)
    return list(zip(*(column.tolist() for column in columns), strict=True))


def test_what_was_executed_since() -> None:
    assert rows({1: 2, 0: 3, 2: 1}, told((0, 1), (1, 0), (0, 1), (1, 0), (0, 2))) == [
        (5, 1, 0x1000, 18),
        (6, 0, 0x1010, 18),
        (6, 0, 0x1020, 9),
        (7, 2, NOT_THERE, 9),
    ]


def test_the_execution_that_was_cut_off_went_nowhere() -> None:
    assert rows({0: 2}, told((0, 1), (0, 1), (0, 2))) == [(5, 0, NOT_THERE, 1), (5, 0, 0x1010, 18), (5, 0, 0x1020, 9)]


def test_more_ways_than_executions_are_not_told() -> None:
    assert rows({0: 3}, told((0, 1), (0, 1))) == [(5, 0, NOT_THERE, 27)]


@pytest.mark.parametrize("tags", [told((0, 0)), told(*[(0, 2)] * 11)])
def test_ways_that_do_not_fit_are_not_told(tags: Tags) -> None:
    assert rows({0: 3}, tags) == [(5, 0, NOT_THERE, 27)]


def test_ways_through_code_without_tags_are_not_told() -> None:
    fragments = code(region_block=np.array([0, 1, NO_INDEX]))
    assert rows({0: 3}, told((0, 1), (0, 1), (0, 2)), fragments) == [(5, 0, NOT_THERE, 27)]


def test_counters_that_are_older_than_tags_say_nothing() -> None:
    assert rows({0: 31, 1: 0}, told()) == [(5, 1, 0x1000, 20)]
