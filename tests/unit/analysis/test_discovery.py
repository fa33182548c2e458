"""Functions of blocks: the order in which they were discovered, their entries, their first callers."""

from __future__ import annotations

import numpy as np

from clew.analysis.code.functions import group_blocks
from clew.analysis.graph.discovery import Discovery

# Four blocks of f (at 0x40), in two versions and one in front of its start, then two of g, whose start is not known.
APP_PC = np.array([0x50, 0x40, 0x40, 0x30, 0x90, 0x80], np.uint64)
VERSION = np.array([0, 1, 0, 0, 0, 0])
FIRST = np.array([7, 9, 5, 8, 3, 4], np.uint64)
START = np.array([0x40, 0x40, 0x40, 0x40, 0, 0], np.uint64)


def discover() -> Discovery:
    of_block, first_block = group_blocks(START)
    return Discovery(of_block, len(first_block), APP_PC, VERSION, FIRST)


def test_blocks_are_of_one_function_where_all_columns_are_equal() -> None:
    of_block, first_block = group_blocks(np.array([1, 0, 1, 1]), np.array([5, 9, 4, 5]))
    assert (of_block.tolist(), first_block.tolist()) == ([2, 0, 1, 2], [1, 2, 0])
    nothing = np.zeros(0, np.int64)
    assert [part.tolist() for part in group_blocks(nothing, nothing)] == [[], []]


def test_functions_are_numbered_as_they_were_discovered() -> None:
    found = discover()
    assert found.function.tolist() == [1, 1, 1, 1, 0, 0]
    assert found.discovered.tolist() == [3, 5]
    assert found.order.tolist() == [5, 4, 3, 2, 1, 0]
    assert found.first_block.tolist() == [0, 2, 6]


def test_a_function_is_entered_at_the_first_version_of_its_start_or_else_at_its_lowest_block() -> None:
    found = discover()
    assert found.find_entries(np.array([0, 0x40], np.uint64), np.array([False, True])).tolist() == [5, 2]
    assert found.find_entries(np.array([0x90, 0x41], np.uint64), np.array([False, True])).tolist() == [5, 3]


def test_the_first_caller_is_known_by_what_ran_before_it() -> None:
    found = discover()
    # From g's blocks to f's first one; from f to g, which was there before; from f to a block of f.
    source, target = np.array([4, 5, 0, 1, -1]), np.array([2, 2, 4, 2, 2])
    every = np.ones(5, bool)
    caller, depth = found.find_callers(source, target, every, every)
    assert (caller.tolist(), depth.tolist()) == ([-1, 0], [0, 1])
    caller, depth = found.find_callers(source, target, every, ~every)
    assert (caller.tolist(), depth.tolist()) == ([-1, 0], [0, 0])
    caller, _ = found.find_callers(source, target, ~every, every)
    assert caller.tolist() == [-1, -1]
