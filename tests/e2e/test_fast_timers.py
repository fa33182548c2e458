"""A program whose timer expires faster than its signal is delivered gets on all the same."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.e2e import runs
from tests.programs.build import SOURCES

TIMEOUT_SECONDS = 60.0
"""It takes a second; where the program does not get on, for ever."""
NATIVE_SECONDS = 5.0
"""It takes some hundredths of one."""

MULTIPLIER, INCREMENT, WORD = 1103515245, 12345, 0xFFFFFFFF


@pytest.fixture(scope="module")
def fast_timer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("fast_timer") / "fast_timer"
    subprocess.run(["gcc", "-O1", "-o", path, SOURCES / "load" / "fast_timer.c"], check=True)
    return path


@pytest.fixture(scope="module")
def value() -> int:
    """What the program's loop comes to."""
    value = 1
    for turn in range(200_000):
        value = value * MULTIPLIER + INCREMENT & WORD if turn % 3 == 0 else value ^ turn
    return value


@pytest.mark.parametrize(("timer", "mode"), [("setitimer", "counts"), ("timer_create", "full")])
def test_a_timer_of_ten_microseconds(fast_timer: Path, value: int, tmp_path: Path, timer: str, mode: str) -> None:
    try:
        subprocess.run([fast_timer, timer], check=True, stdout=subprocess.DEVNULL, timeout=NATIVE_SECONDS)
    except subprocess.TimeoutExpired:
        pytest.skip(f"{timer}: a hypervisor takes longer for a timer than 10 us: the program itself does not get on")
    command = runs.clew_command("record", "-q", "--mode", mode, "-o", tmp_path / "t", "--", fast_timer, timer)
    run = runs.run(command, timeout_seconds=TIMEOUT_SECONDS)
    assert (run.status, run.stdout) == (0, b"%d 1\n" % value), run
    runs.read(tmp_path / "t")
