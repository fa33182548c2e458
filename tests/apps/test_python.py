"""CPython's own tests of signals, threads and processes, recorded: each of them ends as it does natively, every time.

`CLEW_PYTHON_REPEATS` says how often each part is recorded; ten times take most of an hour.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.e2e import runs

pytestmark = [pytest.mark.stress, pytest.mark.timeout(0)]

REPEATS = int(os.environ.get("CLEW_PYTHON_REPEATS", "1"))
TIMEOUT_SECONDS = 1800.0
PARTS = (
    "test_signal",
    "test_threading",
    "test_subprocess",
    "test_multiprocessing_main_handling",
    "test_faulthandler",
    "test_ctypes",
)


def results(report: Path) -> dict[str, tuple[str, ...]]:
    """How each test of a JUnit report ended: nothing for those that passed."""
    cases = ElementTree.parse(report).iter("testcase")
    return {str(case.get("name")): tuple(sorted(one.tag for one in case if "out" not in one.tag)) for case in cases}


@pytest.mark.parametrize("part", PARTS)
def test_python_tests_itself(part: str, tmp_path: Path) -> None:
    if importlib.util.find_spec(f"test.{part}") is None:
        pytest.skip("this Python was installed without its tests")
    report = tmp_path / "report.xml"
    command: list[str | Path] = [
        Path(sys.executable).resolve(),
        "-m",
        "test",
        "--timeout",
        "6000",
        "--junit-xml",
        report,
        part,
    ]
    runs.run(command, timeout_seconds=TIMEOUT_SECONDS, cwd=tmp_path)
    native = results(report)
    assert len(native) > 3
    for number in range(REPEATS):
        report.unlink()
        trace = tmp_path / f"{number}.clew"
        runs.record(command, trace, timeout_seconds=TIMEOUT_SECONDS, cwd=tmp_path)
        assert results(report) == native, f"time {number}"
        runs.read(trace)
        shutil.rmtree(trace)
