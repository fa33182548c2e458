"""Recorded counts equal single-stepping: every block, every edge, the total of instructions."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from clew.store.trace import Trace
from tests.e2e import runs
from tests.oracle.compare import find_differences, find_instruction_differences
from tests.oracle.steps import SteppedOnce
from tests.oracle.truth import Truth
from tests.programs.build import Program, build_one, catalogue

Comparison = Callable[[Truth, Trace], list[str]]


def programs_with(trait: str) -> list[Program]:
    return [program for program in catalogue() if trait in program.traits]


def check(command: runs.Command, step: SteppedOnce, folder: Path, find: Comparison = find_differences) -> None:
    """Step and record a command, both without address randomisation and with the same environment; compare."""
    stepped, steps = step(command)
    path = folder / "trace.clew"
    recorded = runs.record(command, path, fixed_layout=True)
    assert recorded == stepped
    truth = Truth(steps)
    differences = find(truth, Trace(path))
    assert not differences, f"{len(differences)} differences:\n" + "\n".join(differences[:40])
    assert runs.read(path).totals["instructions"] == truth.total_instructions


def check_program(program: Program, step: SteppedOnce, folder: Path, find: Comparison = find_differences) -> None:
    if program.missing:
        pytest.skip(f"this machine has no {', '.join(program.missing)}")
    build_one(program)
    check([program.path], step, folder, find)


def is_seldom(program: Program) -> bool:
    """Other builds of a source that is compared each time, and all but one of the ends by a signal."""
    source = program.name.split(".")[0]
    if source.startswith("fatal_"):
        return program.name != "fatal_segv"
    builds = [other for other in programs_with("oracle") if other.name.split(".")[0] == source]
    return program.name != next((other.name for other in builds if other.is_static), builds[0].name)


def cases(program: Program, *, is_stress: bool = False) -> Iterator[ParameterSet]:
    """What a dynamic linker does is 100,000 instructions of each program: stress, and each time a build without one."""
    yield pytest.param(
        program, id=program.name, marks=() if program.is_static and not is_stress else pytest.mark.stress
    )
    if not is_stress and not program.is_static:
        alone = program.linked_statically()
        yield pytest.param(alone, id=alone.name)


SELDOM = {
    *("vector_state.avx512.alone", "calls.static_pie", "static_pie.static", "switch_table.nopie.alone"),
    *("signal_long_jump.alone", "signal_mask.alone", "signal_context.alone", "hot_loops.alone", "gs_segment.alone"),
    *("code_reused.alone", "code_many_mappings.alone", "code_busy.alone", "code_mapped_twice.alone"),
    "code_flags_rewritten.alone",
}
"""What takes longer than most and is like another, for the long runs."""


def seldom(case: ParameterSet) -> ParameterSet:
    """The same, for the long runs if it is one of these."""
    marks = [*case.marks, pytest.mark.long] if case.id in SELDOM else case.marks
    return pytest.param(*case.values, id=case.id, marks=marks)


PROGRAMS = [
    seldom(case) for program in programs_with("oracle") for case in cases(program, is_stress=is_seldom(program))
]


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program: Program, step_once: SteppedOnce, tmp_path: Path) -> None:
    check_program(program, step_once, tmp_path)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    "program", [seldom(case) for program in programs_with("oracle-instructions") for case in cases(program)]
)
def test_program_that_changes_its_code(program: Program, step_once: SteppedOnce, tmp_path: Path) -> None:
    check_program(program, step_once, tmp_path, find_instruction_differences)


@pytest.mark.stress
@pytest.mark.timeout(1000)
@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("program", programs_with("oracle-long"), ids=lambda program: program.name)
def test_long_program(program: Program, step_once: SteppedOnce, tmp_path: Path) -> None:
    check_program(program, step_once, tmp_path)


@pytest.mark.parametrize(
    "command",
    [
        pytest.param(["true"], id="true", marks=pytest.mark.long),
        pytest.param(["echo", "some", "words"], id="echo", marks=pytest.mark.stress),
    ],
)
def test_system_program(command: list[str], step_once: SteppedOnce, tmp_path: Path) -> None:
    found = shutil.which(command[0])
    assert found is not None
    check([found, *command[1:]], step_once, tmp_path)
