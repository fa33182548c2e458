"""Families of system calls (tests/suites): many cases that check themselves, right natively and the same recorded."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.e2e import runs

pytestmark = [pytest.mark.suites, pytest.mark.timeout(600)]

SOURCES = Path(__file__).resolve().parents[1] / "suites"
FAMILIES = sorted(source.stem for source in SOURCES.glob("*.c"))
MODES = ("counts", "coverage", "region", "full")
TIMEOUT_SECONDS = 100.0

DIFFERENT: dict[tuple[str, str], str] = {}
"""Cases, by family and name, that are known to find something else when recorded, and why."""

LOST = {"ptrace": frozenset({"released_threads"}), "seccomp": frozenset({"released_threads"})}
"""Families whose traces say that they lack something, and what."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built families."""
    folder = tmp_path_factory.mktemp("suites")
    for family in FAMILIES:
        source, program = SOURCES / f"{family}.c", folder / family
        subprocess.run(["gcc", "-O1", "-D_GNU_SOURCE", "-pthread", "-o", program, source], check=True)
    return folder


@pytest.fixture(scope="module")
def native(built: Path) -> dict[str, runs.Run]:
    """What each family does alone."""
    return {family: runs.run([built / family], timeout_seconds=TIMEOUT_SECONDS) for family in FAMILIES}


def by_case(run: runs.Run) -> dict[str, str]:
    """Each case's line, by the case's name; AssertionError when one has two."""
    lines = run.stdout.decode().splitlines()
    told = {line.split()[0].rstrip(":"): line for line in lines}
    assert len(told) == len(lines)
    return told


def is_right(name: str, line: str) -> bool:
    return line == f"{name} ok" or line.startswith(f"{name} skipped: ")


@pytest.mark.parametrize("family", FAMILIES)
def test_right_alone(family: str, native: dict[str, runs.Run]) -> None:
    run = native[family]
    told = by_case(run)
    assert (run.status, run.stderr) == (0, b"")
    assert len(told) >= 15
    assert [line for name, line in told.items() if not is_right(name, line)] == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("family", FAMILIES)
def test_same_when_recorded(family: str, mode: str, built: Path, native: dict[str, runs.Run], tmp_path: Path) -> None:
    alone = native[family]
    recorded = runs.record([built / family], tmp_path / "t", "--mode", mode, timeout_seconds=TIMEOUT_SECONDS)
    assert (recorded.status, recorded.stderr) == (alone.status, alone.stderr)
    expected, told = by_case(alone), by_case(recorded)
    assert list(told) == list(expected)
    different = {name: line for name, line in told.items() if line != expected[name]}
    assert set(different) == {name for at, name in DIFFERENT if at == family}, different
    runs.read(tmp_path / "t", lost=LOST.get(family, frozenset()))
