"""`clew api --vdso`: calls that the vDSO answers, held against what the program says that it was told."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import runs
from tests.programs.build import SOURCES, build_plain


def run(tmp_path: Path, program: Path, *arguments: str) -> tuple[list[dict[str, Any]], list[list[str]]]:
    """The calls that were told, and the words of each line that the program wrote."""
    path = tmp_path / "calls"
    command = [sys.executable, "-m", "clew", "api", "--json", *arguments, "-o", str(path), "--", str(program)]
    environ = {**runs.environment(), "PYTHONPATH": str(runs.ROOT / "src")}
    done = subprocess.run(command, env=environ, capture_output=True, check=True, timeout=120, text=True)
    calls = [json.loads(line) for line in path.read_text().splitlines()]
    return calls, [line.split() for line in done.stdout.splitlines()]


def told_by(call: dict[str, Any]) -> tuple[str, ...]:
    """A call's name and the numbers that it gave, as the program says them."""
    numbers = re.findall(r"tv_\w+=(\d+)", call["text"]) or [str(call["result"])]
    return (call["name"], *numbers)


@pytest.mark.parametrize("flags", [["-O1", "-pthread"], ["-O1", "-pthread", "-static"]], ids=["dynamic", "static"])
def test_calls_of_the_vdso_are_told_as_those_that_they_stand_for(flags: list[str], tmp_path: Path) -> None:
    program = build_plain(SOURCES / "api" / "clocks.c", *flags)
    calls, lines = run(tmp_path, program, "--vdso", "--filter", "Time")
    own = [call for call in calls if call["library"] == "[vdso]"]
    used = ("clock_gettime", *next(line[1:] for line in lines if line[0] == "used"))
    said = Counter(tuple(line) for line in lines if line[0] != "used")
    assert said[used] == 0
    assert Counter(map(told_by, own)) == said + Counter([used])
    assert len({call["tid"] for call in own}) == 3
    # What the vDSO leaves to the kernel is told twice, one within the other.
    inner = next(call for call in calls if call["library"] is None and told_by(call) == used)
    outer = next(call for call in own if told_by(call) == used)
    assert outer["time_ns"] <= inner["time_ns"]
    assert inner["time_ns"] + inner["duration_ns"] <= outer["time_ns"] + outer["duration_ns"]


def test_only_the_filters_that_are_asked_for(tmp_path: Path) -> None:
    program = build_plain(SOURCES / "api" / "clocks.c", "-O1", "-pthread")
    calls, _ = run(tmp_path, program, "--vdso", "--filter", "Network")
    assert calls == []
    calls, _ = run(tmp_path, program)
    assert {call["library"] for call in calls} == {None}
