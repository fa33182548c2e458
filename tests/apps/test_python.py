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
TIMEOUT_SECONDS = 7200.0
FILE_SECONDS = 6000
"""How long a file of tests may take; the limits within them are shares of it."""
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


METHODS = ("fork", "spawn", "forkserver")
"""How multiprocessing starts processes. An installed Python has its tests, not always the modules that name these."""

READ = "import sys; from pathlib import Path; from tests.e2e import runs; runs.read(Path(sys.argv[1]))"

# A pool of threads whose first task begins before it is told to end sleeps for LONG_TIMEOUT, recorded or not.
MULTIPROCESSING = """
import test.support
import test._test_multiprocessing
test.support.LONG_TIMEOUT = 300.0
test._test_multiprocessing.install_tests_in_module_dict(globals(), "{}")
"""


def compare(folder: Path, module: str, words: list[str | Path]) -> None:
    """Run tests natively once and recorded over and over, in `folder`: each ends the same way every time."""
    if importlib.util.find_spec(f"test.{module}") is None:
        pytest.skip("this Python was installed without its tests")
    report = folder / "report.xml"
    python = Path(sys.executable).resolve()
    command: list[str | Path] = [python, "-m", "test", "--timeout", str(FILE_SECONDS), "--junit-xml", report, *words]
    runs.run(command, timeout_seconds=TIMEOUT_SECONDS, cwd=folder)
    native = results(report)
    assert len(native) > 3
    for number in range(REPEATS):
        report.unlink()
        trace = folder / f"{number}.clew"
        runs.record(command, trace, timeout_seconds=TIMEOUT_SECONDS, cwd=folder)
        assert results(report) == native, f"time {number}"
        # In a process of its own: it takes gigabytes for the larger ones, which are to be free again for the next.
        read = runs.run([sys.executable, "-c", READ, trace], timeout_seconds=TIMEOUT_SECONDS, cwd=runs.ROOT)
        assert read.status == 0, read.stderr
        shutil.rmtree(trace)


@pytest.mark.parametrize("part", PARTS)
def test_python_tests_itself(part: str, tmp_path: Path) -> None:
    compare(tmp_path, part, [part])


@pytest.mark.parametrize("method", METHODS)
def test_python_tests_multiprocessing(method: str, tmp_path: Path) -> None:
    (tmp_path / f"test_{method}_method.py").write_text(MULTIPROCESSING.format(method))
    words: list[str | Path] = ["--testdir", tmp_path, f"test_{method}_method"]
    compare(tmp_path, "_test_multiprocessing", words)
