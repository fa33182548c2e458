"""Programs behave natively where none of their threads is followed: signals, faults, children, mappings are clew's."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.e2e import runs
from tests.programs.build import Program, catalogue

STDIN = b"one line\nanother line without an end"

QUICK = {
    *("signal_storm_faults", "signal_stack_small", "exec_from_thread", "fork_threads", "seccomp_legacy"),
    *("code_busy_others", "single_step_itself"),
}
"""Of those that were wrong once one of each kind."""

DIFFERS = {
    "no_address_runtime": "what jumps into the runtime's memory natively meets the runtime",
}
"""What differs where nothing is followed, and why."""


def case(program: Program) -> ParameterSet:
    marks = () if program.name in QUICK else (pytest.mark.long,)
    return pytest.param(program, id=program.name, marks=marks)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("program", [case(one) for one in catalogue()])
def test_unfollowed_like_native(program: Program, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    reason = program.differs or DIFFERS.get(program.name)
    if reason:
        request.applymarker(pytest.mark.xfail(reason=reason, strict=True))
    if program.missing:
        pytest.skip(f"this machine has no {', '.join(program.missing)}")
    words: list[str | Path] = [program.path]
    if program.name == "environment":
        words += ["first argument", "second"]
    layout = runs.FIXED_LAYOUT if "addresses" in program.traits else ()
    environ = {**runs.environment(), "PYTHONPATH": f"{runs.ROOT / 'src'}:{runs.ROOT}"}
    native = runs.run([*layout, *words], stdin=STDIN, environ=environ)
    numbers = tmp_path / "numbers.json"
    command = [*layout, sys.executable, "-m", "tests.sessions.run_session", "unfollowed", numbers, *words]
    unfollowed = runs.run(command, stdin=STDIN, environ=environ)
    if "unordered" in program.traits:
        native, unfollowed = native.sorted_lines(), unfollowed.sorted_lines()
    assert unfollowed == native
    told = json.loads(numbers.read_text())
    assert told["native_runs"] >= 1
    assert told["findings"] == []
