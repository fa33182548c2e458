"""A program of the catalogue as it runs natively and in a session, one beside the other: for tests."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import runs
from tests.programs.build import Program

__all__ = ["run_beside_native"]

STDIN = b"one line\nanother line without an end"


def run_beside_native(
    program: Program, how: str, folder: Path, request: pytest.FixtureRequest, reason: str | None
) -> dict[str, Any]:
    """Ask that a program behaves in a session (`run_session`) as it does natively, and that its trace has no findings.

    Gives the runtime's own numbers. Where there is a `reason` it is to differ. What this machine can't run is skipped.
    """
    if reason:
        request.applymarker(pytest.mark.xfail(reason=reason, raises=AssertionError, strict=True))
    if program.missing:
        pytest.skip(f"this machine has no {', '.join(program.missing)}")
    words: list[str | Path] = [program.path]
    if program.name == "environment":
        words += ["first argument", "second"]
    layout = runs.FIXED_LAYOUT if "addresses" in program.traits else ()
    environ = {**runs.environment(), "PYTHONPATH": f"{runs.ROOT / 'src'}:{runs.ROOT}"}
    native = runs.run([*layout, *words], stdin=STDIN, environ=environ)
    numbers = folder / "numbers.json"
    command = [*layout, sys.executable, "-m", "tests.sessions.run_session", how, numbers, *words]
    followed = runs.run(command, stdin=STDIN, environ=environ)
    if "unordered" in program.traits:
        native, followed = native.sorted_lines(), followed.sorted_lines()
    assert followed == native
    told: dict[str, Any] = json.loads(numbers.read_text())
    assert told["findings"] == []
    return told
