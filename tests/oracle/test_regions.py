"""Mode region: tags equal those of the algorithm, fed with every instruction; totals equal counts."""

from __future__ import annotations

import subprocess
from collections import Counter
from itertools import zip_longest
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.store.trace import Trace
from tests.e2e import runs
from tests.oracle.compare import find_differences
from tests.oracle.regions import Activity, Execution, Tag, agree, iter_executions, iter_tags, read_tags
from tests.oracle.steps import SteppedOnce
from tests.oracle.test_exact import cases
from tests.oracle.truth import Truth
from tests.programs.build import BIN, Program, build_one, find

EACH_TIME = (
    "recursion.static",
    "virtual_calls.static",
    "string_instructions",
    "changed_return",
    "nested_loops",
    "signal_return",
)
PROGRAMS = [
    *("bare_exit", "calls.nopie", "recursion.static", "virtual_calls.static", "switch_table.nopie", "computed_goto"),
    *("loop_instructions", "string_instructions", "overlapping", "push_ret", "changed_return", "coroutines"),
    *("long_jumps", "first_targets", "nested_loops", "flags_live", "registers_live", "big_frames"),
    *("signal_fixup", "signal_return", "signal_long_jump", "signal_mask", "signal_context", "syscall_registers"),
]


def check(command: runs.Command, step: SteppedOnce, folder: Path, *options: str, limit: int = 10) -> None:
    """Step and record a command; every tag must be that of the algorithm, and every count that of stepping."""
    stepped, steps = step(command)
    path = folder / "trace.clew"
    assert runs.record(command, path, "--mode", "region", *options, fixed_layout=True) == stepped
    truth, trace = Truth(steps), Trace(path)
    expected, found = list(iter_tags(iter_executions(truth), limit)), read_tags(trace)
    for number, (wanted, tag) in enumerate(zip_longest(expected, found)):
        told = f"tag {number} of {len(expected)} and {len(found)}: {wanted}, not {tag}"
        assert wanted is not None and tag is not None and agree(wanted, tag), told
    assert not find_differences(truth, trace)
    assert sum(thread["tags"] for thread in runs.read(path).summary["processes"][0]["threads"]) == len(found)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    "program", [case for name in PROGRAMS for case in cases(find(name), is_stress=name not in EACH_TIME)]
)
def test_program(program: Program, step_once: SteppedOnce, tmp_path: Path) -> None:
    build_one(program)
    check([program.path], step_once, tmp_path)


@pytest.mark.usefixtures("programs")
@pytest.mark.stress
@pytest.mark.parametrize("limit", [1, 2, 254])
def test_limit(limit: int, step_once: SteppedOnce, tmp_path: Path) -> None:
    check([find("loops_uneven").path], step_once, tmp_path, "--busy-limit", str(limit), limit=limit)


def test_nested_loops(tmp_path: Path) -> None:
    """The known figures of the nested loops: blocks from the loops' first to the one behind them."""
    program = tmp_path / "nested_loops"
    source = BIN.parents[2] / "bench" / "programs" / "nested_loops.c"
    subprocess.run(["gcc", "-O1", "-static", "-o", program, source], check=True)
    path = tmp_path / "trace.clew"
    assert runs.record([program], path, "--mode", "region").stdout == b"68658\n"
    trace = Trace(path)
    names = {row["app_pc"]: row["symbol"] for row in trace.blocks.select(["app_pc", "symbol"]).to_pylist()}
    tags = read_tags(trace)
    in_main = [number for number, tag in enumerate(tags) if tag.block is not None and names[tag.block] == "main"]
    # But for main's own first block, and what comes after printf.
    loops = Counter(tag.kind for tag in tags[in_main[1] : in_main[-2] + 1])
    assert loops == {"executed": 237, "became_busy": 97, "counts": 97, "left_busy": 31}


RUNS = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 25)), max_size=60)
"""Blocks, and how often each is executed in a row."""


@given(RUNS, st.integers(1, 12))
def test_levels_may_end_at_the_limit(blocks: list[tuple[int, int]], limit: int) -> None:
    """What clew does instead: after an execution the block's level is its thread's, and none is above the limit."""
    activity = Activity()
    levels: dict[int, int] = {}
    thread = 0
    for block, n in blocks:
        for _ in range(n):
            activity.execute(block)
            level = levels.get(block, -1)
            thread = levels[block] = min(thread if level > thread else level + 1, limit)
            assert activity.levels[block] == activity.thread
            assert min(activity.thread, limit) == thread


def test_a_loop_becomes_busy_and_ends() -> None:
    turns = [Execution(1, 1)] * 12 + [Execution(1, 2), Execution(2, None)]
    tags = list(iter_tags(turns, limit=3))
    assert tags == [
        *[Tag("executed", 1, 1)] * 3,
        Tag("became_busy", 1),
        Tag("counts", 1, executions=10, targets=((1, 9), (2, 1))),
        Tag("left_busy"),
        Tag("executed", 2),
    ]
