"""Programs behave natively where a transformer sees each of their blocks, and keeps all: threads wait at any place."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.e2e import runs
from tests.programs.build import Program, catalogue

STDIN = b"one line\nanother line without an end"

QUICK = {"signal_storm", "exec_from_thread", "fork_threads", "code_made", "coroutines"}
"""Of what takes little time one of each kind."""


def case(program: Program) -> ParameterSet:
    marks = () if program.name in QUICK else (pytest.mark.long,)
    return pytest.param(program, id=program.name, marks=marks)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("program", [case(one) for one in catalogue()])
def test_kept_like_native(program: Program, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if program.differs:
        request.applymarker(pytest.mark.xfail(reason=program.differs, strict=True))
    if program.missing:
        pytest.skip(f"this machine has no {', '.join(program.missing)}")
    words: list[str | Path] = [program.path]
    if program.name == "environment":
        words += ["first argument", "second"]
    layout = runs.FIXED_LAYOUT if "addresses" in program.traits else ()
    environ = {**runs.environment(), "PYTHONPATH": f"{runs.ROOT / 'src'}:{runs.ROOT}"}
    native = runs.run([*layout, *words], stdin=STDIN, environ=environ)
    numbers = tmp_path / "numbers.json"
    command = [*layout, sys.executable, "-m", "tests.sessions.run_session", "kept", numbers, *words]
    kept = runs.run(command, stdin=STDIN, environ=environ)
    if "unordered" in program.traits:
        native, kept = native.sorted_lines(), kept.sorted_lines()
    assert kept == native
    told = json.loads(numbers.read_text())
    assert told["n_shown"] > 0
    assert told["blocks_refused"] == 0
    assert told["findings"] == []
