"""Recorded counts equal single-stepping: every block, every edge, the total of instructions."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.store.trace import Trace
from tests.e2e import runs
from tests.oracle.compare import find_differences, find_instruction_differences
from tests.oracle.steps import single_step
from tests.oracle.truth import Truth
from tests.programs.build import Program, catalogue

Comparison = Callable[[Truth, Trace], list[str]]


def programs_with(trait: str) -> list[Program]:
    return [program for program in catalogue() if trait in program.traits]


def check(command: runs.Command, folder: Path, find: Comparison = find_differences) -> None:
    """Step and record a command, both without address randomisation and with the same environment; compare."""
    stepped, steps = single_step(command, folder)
    path = folder / "trace.clew"
    recorded = runs.record(command, path, fixed_layout=True)
    assert recorded == stepped
    truth = Truth(steps)
    differences = find(truth, Trace(path))
    assert not differences, f"{len(differences)} differences:\n" + "\n".join(differences[:40])
    assert runs.read(path).totals["instructions"] == truth.total_instructions


def check_program(program: Program, folder: Path, find: Comparison = find_differences) -> None:
    if program.missing:
        pytest.skip(f"this machine has no {', '.join(program.missing)}")
    check([program.path], folder, find)


def marks_of(program: Program) -> tuple[pytest.MarkDecorator, ...]:
    """Other builds of a source that is compared each time are stress, and all but one of the ends by a signal."""
    source = program.name.split(".")[0]
    if source.startswith("fatal_") and program.name != "fatal_segv":
        return (pytest.mark.stress,)
    is_other = source != program.name and any(other.name == source for other in programs_with("oracle"))
    return (pytest.mark.stress,) if is_other else ()


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    "program", [pytest.param(program, id=program.name, marks=marks_of(program)) for program in programs_with("oracle")]
)
def test_program(program: Program, tmp_path: Path) -> None:
    check_program(program, tmp_path)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("program", programs_with("oracle-instructions"), ids=lambda program: program.name)
def test_program_that_changes_its_code(program: Program, tmp_path: Path) -> None:
    check_program(program, tmp_path, find_instruction_differences)


@pytest.mark.stress
@pytest.mark.timeout(1000)
@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("program", programs_with("oracle-long"), ids=lambda program: program.name)
def test_long_program(program: Program, tmp_path: Path) -> None:
    check_program(program, tmp_path)


@pytest.mark.parametrize("command", [["true"], ["echo", "some", "words"]], ids=lambda command: command[0])
def test_system_program(command: list[str], tmp_path: Path) -> None:
    found = shutil.which(command[0])
    assert found is not None
    check([found, *command[1:]], tmp_path)
