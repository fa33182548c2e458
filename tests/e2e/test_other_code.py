"""Code that is not 64-bit code: what a trace tells of threads that went there, came back, and did not."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e import runs
from tests.programs.build import find

LONGEST = 1 << 16
"""Instructions that a thread executes there before it is released."""


def released(recorded: runs.Recorded) -> list[str]:
    rows = [row for row in recorded.trace.events.to_pylist() if row["kind"] == "released"]
    return [json.loads(row["details"])["reason"] for row in rows]


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("name", ["far_return", "far_transfers", "far_faults", "segment_selectors", "gs_segment"])
def test_segments_of_64bit_code_cost_nothing(name: str, tmp_path: Path) -> None:
    program = find(name)
    if program.missing:
        pytest.skip(f"this machine has no {', '.join(program.missing)}")
    runs.record([program.path], tmp_path / "trace.clew")
    assert released(runs.read(tmp_path / "trace.clew")) == []


@pytest.mark.usefixtures("programs")
def test_who_comes_back_is_followed(tmp_path: Path) -> None:
    runs.record([find("mode_32bit").path], tmp_path / "trace.clew", fixed_layout=True)
    recorded = runs.read(tmp_path / "trace.clew", find("mode_32bit").lost)
    assert released(recorded) == []


@pytest.mark.usefixtures("programs")
def test_who_stays_is_released_and_that_is_told(tmp_path: Path) -> None:
    runs.record([find("mode_32bit_left").path], tmp_path / "trace.clew")
    recorded = runs.read(tmp_path / "trace.clew", find("mode_32bit_left").lost)
    assert released(recorded) == ["other_code"] * 2
    assert recorded.summary["losses"]["uncounted_instructions"] == LONGEST
