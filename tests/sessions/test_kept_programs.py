"""Programs behave natively where a transformer sees each of their blocks, and keeps all: threads wait at any place."""

from __future__ import annotations

from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.programs.build import Program, catalogue
from tests.sessions.beside_native import run_beside_native

QUICK = {"signal_storm", "exec_from_thread", "fork_threads", "code_made", "coroutines"}
"""Of what takes little time one of each kind."""


def case(program: Program) -> ParameterSet:
    marks = () if program.name in QUICK else (pytest.mark.long,)
    return pytest.param(program, id=program.name, marks=marks)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("program", [case(one) for one in catalogue()])
def test_kept_like_native(program: Program, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    told = run_beside_native(program, "kept", tmp_path, request, program.differs)
    assert told["n_shown"] > 0
    assert told["blocks_refused"] == 0
