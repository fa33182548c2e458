"""Programs behave natively where none of their threads is followed: signals, faults, children, mappings are clew's."""

from __future__ import annotations

from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.programs.build import Program, catalogue
from tests.sessions.beside_native import run_beside_native

QUICK = {
    *("signal_storm_faults", "signal_stack_small", "exec_from_thread", "fork_threads", "seccomp_legacy"),
    *("code_busy_others", "single_step_itself"),
}
"""Of those that were wrong once one of each kind."""

UNDEFINED = {"no_address_runtime"}
"""What jumps into the runtime's memory natively meets the runtime: anything may happen, also that it never ends."""


def case(program: Program) -> ParameterSet:
    marks = () if program.name in QUICK else (pytest.mark.long,)
    return pytest.param(program, id=program.name, marks=marks)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("program", [case(one) for one in catalogue() if one.name not in UNDEFINED])
def test_unfollowed_like_native(program: Program, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    told = run_beside_native(program, "unfollowed", tmp_path, request, program.differs)
    assert told["native_runs"] >= 1
