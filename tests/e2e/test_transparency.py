"""A recorded program behaves as it does alone: output, exit status, addresses; and its trace is well-formed."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from tests.e2e import runs
from tests.programs.build import Program, catalogue

STDIN = b"one line\nanother line without an end"
MODES = ("counts", "coverage")
EACH_TIME = (
    "code_",
    "signal_s",
    "thread",
    "rseq_",
    "fork_",
    "exec_",
    "calls",
    "coroutines",
    "computed_goto",
    "exceptions",
)
"""Programs that unlink, replace and link code anew, and that come back from anywhere: begins of names."""
COVERED_EACH_TIME = ("code_r", "code_mapped_", "signal_storm", "thread", "rseq_abort", "fork_threads", "calls")
"""Those of them that are recorded in mode coverage, too: what is counted nowhere else has less to go wrong."""


def case(program: Program, mode: str) -> ParameterSet:
    """In modes that have less to go wrong, what does not touch them is for the long runs; other builds are in CI's."""
    is_other_build = "." in program.name
    is_like_counts = is_other_build or not program.name.startswith(EACH_TIME)
    marks: tuple[pytest.MarkDecorator, ...] = ()
    if mode == "coverage" and is_like_counts:
        marks = (pytest.mark.stress,)
    elif is_like_counts or (mode == "coverage" and not program.name.startswith(COVERED_EACH_TIME)):
        marks = (pytest.mark.long,)
    return pytest.param(program, mode, id=f"{program.name}-{mode}", marks=marks)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(("program", "mode"), [case(*one) for one in itertools.product(catalogue(), MODES)])
def test_recorded_like_native(program: Program, mode: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if program.differs:
        request.applymarker(pytest.mark.xfail(reason=program.differs, raises=AssertionError, strict=True))
    if program.missing:
        pytest.skip(f"this machine has no {', '.join(program.missing)}")
    command: runs.Command = [program.path]
    if program.name == "environment":
        command = [program.path, "first argument", "second"]
    fixed_layout = "addresses" in program.traits
    native = runs.run([*(runs.FIXED_LAYOUT if fixed_layout else ()), *command], stdin=STDIN)
    assert native.status == program.status
    trace = tmp_path / "trace.clew"
    recorded = runs.record(command, trace, "--mode", mode, fixed_layout=fixed_layout, stdin=STDIN)
    if "unordered" in program.traits:
        native, recorded = native.sorted_lines(), recorded.sorted_lines()
    assert recorded == native
    runs.read(trace, lost=program.lost)
