"""A Windows program, run by Wine: recorded with all that Wine starts, it behaves the same, and its own code is counted.

What is special about it: a preloader, signal stacks, a gs base of its own in each thread, faults that handlers mend,
and `iretq` all the time.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.e2e import runs

pytestmark = [pytest.mark.stress, pytest.mark.timeout(1800)]

SOURCE = Path(__file__).with_name("windows_program.cc")
TIMEOUT_SECONDS = 600.0
COMPILER, NAMES = "x86_64-w64-mingw32-g++", "x86_64-w64-mingw32-nm"
N_CALLS = 5_000 + 4 * 20_000
"""How often the program calls `clew_mix`."""


def find_wine() -> Path:
    """Wine's loader of 64-bit programs, wherever the packages of distributions put it."""
    places = (shutil.which("wine64"), "/usr/lib/wine/wine64", "/usr/lib64/wine/wine64")
    for place in places:
        if place is not None and Path(place).exists():
            return Path(place)
    pytest.skip("not installed: wine64")


@pytest.fixture
def windows(tmp_path: Path) -> Mapping[str, str]:
    """The environment of programs that Wine runs, in a Windows folder that is made here."""
    environ = {**runs.environment(), "HOME": str(tmp_path), "WINEPREFIX": str(tmp_path / "prefix"), "WINEDEBUG": "-all"}
    wine = find_wine()
    for program, *words in ((wine, "wineboot", "-i"), (wine.with_name("wineserver"), "-w")):
        subprocess.run([program, *words], env=environ, check=True, capture_output=True, timeout=TIMEOUT_SECONDS)
    return environ


@pytest.mark.parametrize("mode", ["counts", "full"])
def test_a_windows_program(mode: str, tmp_path: Path, windows: Mapping[str, str]) -> None:
    for tool in (COMPILER, NAMES):
        if shutil.which(tool) is None:
            pytest.skip(f"not installed: {tool}")
    program, trace = tmp_path / "program.exe", tmp_path / "trace.clew"
    subprocess.run([COMPILER, "-O1", "-static", "-o", program, SOURCE], check=True)
    listed = subprocess.run([NAMES, program], check=True, capture_output=True, text=True).stdout
    (mix,) = (int(line.split()[0], 16) for line in listed.splitlines() if line.endswith(" clew_mix"))

    command: runs.Command = [find_wine(), program]
    native = runs.run(command, environ=windows, timeout_seconds=TIMEOUT_SECONDS)
    assert native.status == 9
    recorded = runs.record(command, trace, "--mode", mode, environ=windows, timeout_seconds=TIMEOUT_SECONDS)
    assert recorded == native
    # Free of losses: no thread of any of them was released.
    runs.read(trace)
    counts = [n for (pc, _), n in runs.counts_by_place(trace).items() if pc == mix]
    assert counts == [N_CALLS]
