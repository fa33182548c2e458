"""Recorded counts equal single-stepping: every block, every edge, the total of instructions."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from clew.store.trace import Trace
from tests.e2e import runs
from tests.oracle.compare import find_differences
from tests.oracle.steps import single_step
from tests.oracle.truth import Truth
from tests.programs.build import Program, catalogue

SHORT = [program for program in catalogue() if "oracle" in program.traits]
LONG = [program for program in catalogue() if "oracle-long" in program.traits]


def check(command: runs.Command, folder: Path) -> None:
    """Step and record a command, both without address randomisation and with the same environment; compare."""
    stepped, steps = single_step(command, folder)
    path = folder / "trace.clew"
    recorded = runs.record(command, path, fixed_layout=True)
    assert recorded == stepped
    truth = Truth(steps)
    differences = find_differences(truth, Trace(path))
    assert not differences, f"{len(differences)} differences:\n" + "\n".join(differences[:40])
    assert runs.read(path).totals["instructions"] == truth.total_instructions


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("program", SHORT, ids=lambda program: program.name)
def test_program(program: Program, tmp_path: Path) -> None:
    if program.missing_features:
        pytest.skip(f"this processor has no {', '.join(program.missing_features)}")
    check([program.path], tmp_path)


@pytest.mark.stress
@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("program", LONG, ids=lambda program: program.name)
def test_long_program(program: Program, tmp_path: Path) -> None:
    check([program.path], tmp_path)


@pytest.mark.parametrize("command", [["true"], ["echo", "some", "words"]], ids=lambda command: command[0])
def test_system_program(command: list[str], tmp_path: Path) -> None:
    found = shutil.which(command[0])
    assert found is not None
    check([found, *command[1:]], tmp_path)
