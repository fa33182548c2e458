"""Loops that count in a register count what was executed, whatever they are left by and whoever runs them meanwhile."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e import runs
from tests.programs.build import find

PREFIX = "head_"


def executions_of_heads(trace: Path) -> dict[str, int]:
    """How often each loop was gone round: executions of the blocks at its label."""
    recorded = runs.read(trace).trace
    names = {row["block_id"]: row["symbol"] for row in recorded.blocks.to_pylist() if row["symbol_offset"] == 0}
    executed: dict[str, int] = {}
    for row in recorded.counts.to_pylist():
        name = names.get(row["block_id"])
        if name is not None and name.startswith(PREFIX):
            executed[name.removeprefix(PREFIX)] = executed.get(name.removeprefix(PREFIX), 0) + row["executions"]
    return executed


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    ("relayout", "mode"),
    [
        ("00004", "full"),
        ("01024", "counts"),
        pytest.param("00004", "counts", marks=pytest.mark.long),
        pytest.param("01024", "full", marks=pytest.mark.long),
    ],
)
def test_loops_that_signals_and_threads_run_as_well(mode: str, relayout: str, tmp_path: Path) -> None:
    trace = tmp_path / "out.clew"
    environ = runs.environment() | {"CLEW_RELAYOUT": relayout}
    run = runs.record([find("hot_loops").path, "3", "30000"], trace, "--mode", mode, environ=environ)
    assert run.status == 0, run.stderr
    expected = {name: int(n) for name, n in (line.split() for line in run.stdout.decode().splitlines())}
    executed = executions_of_heads(trace)
    assert {name: executed[name] for name in expected} == expected
