"""A run of the tests that leaves a process or a file behind fails, and says which."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.runs import ROOT

LEAVES = """
import os, subprocess, tempfile

def test_a_process(tmp_path):
    # In a session of its own, adopted by another process, and with nothing in its environment.
    script = f"(setsid sleep 1000 > /dev/null 2>&1 & echo $! > {tmp_path}/pid)"
    subprocess.run(["sh", "-c", script], env={"PATH": os.environ["PATH"]}, check=True)

def test_a_folder():
    tempfile.mkdtemp(prefix="anything-")

def test_a_name_of_its_own():
    open(f"/dev/shm/clew-left-{os.environ['LEFT']}", "w")

def test_what_a_program_makes():
    os.mkdir(f"/tmp/exec_script.{os.environ['LEFT']}")
"""
LEAVES_NOTHING = """
import subprocess, tempfile

def test_processes_and_files(tmp_path):
    subprocess.run(["sleep", "0"])
    with tempfile.NamedTemporaryFile():
        (tmp_path / "kept").touch()
"""
IS_NOT_IGNORED = """
import signal

def test_interrupts_are_not_ignored():
    assert signal.getsignal(signal.SIGINT) == signal.default_int_handler
    assert signal.getsignal(signal.SIGHUP) == signal.getsignal(signal.SIGQUIT) == signal.SIG_DFL
"""


def run_tests(folder: Path, content: str, mark: str, *options: str, **how: Any) -> subprocess.CompletedProcess[str]:
    """Run tests as if they were some of the suite's."""
    (folder / "test_some.py").write_text(content)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.left_behind", "-p", "no:cacheprovider", *options]
    environ = {**os.environ, "PYTHONPATH": f"{ROOT}:{ROOT / 'src'}", "LEFT": mark}
    environ |= {"CLEW_LEFT_SECONDS": "2", "CLEW_LEFT_ALONE": "1" if content == LEAVES else "0"}
    # Most of what it takes is to import the plugins that are installed, none of which is wanted.
    environ |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    environ = {name: value for name, value in environ.items() if not name.startswith("PYTEST_XDIST")}
    (folder / "pytest.ini").write_text("[pytest]\n")
    return subprocess.run(
        [*command, folder], cwd=folder, env=environ, capture_output=True, text=True, timeout=240, **how
    )


def told_of(run: subprocess.CompletedProcess[str]) -> list[str]:
    """What it says of itself: what else is in folders that all share may be of runs beside it."""
    return [line for line in run.stderr.splitlines() if ": of this run, or of process " not in line]


@pytest.mark.parametrize(
    "options",
    [pytest.param((), id="alone"), pytest.param(("-p", "xdist", "-n", "2"), id="spread", marks=pytest.mark.long)],
)
def test_what_is_left_is_told(tmp_path: Path, options: tuple[str, ...]) -> None:
    mark = f"{os.getpid():06d}"[-6:]
    left = [Path(f"/dev/shm/clew-left-{mark}"), Path(f"/tmp/exec_script.{mark}")]
    try:
        run = run_tests(tmp_path, LEAVES, mark, "--basetemp", str(tmp_path / "base"), *options)
        assert "4 passed" in run.stdout and run.returncode == 1, run
        told = told_of(run)
        (pid,) = [int(path.read_text()) for path in (tmp_path / "base").glob("**/pid")]
        assert f"ERROR: process {pid} still runs: sleep 1000" in told
        assert not Path(f"/proc/{pid}").exists() or "State:\tZ" in Path(f"/proc/{pid}/status").read_text()
        assert all(f"ERROR: left behind: {path}" in told for path in left)
        assert any("/anything-" in line for line in told)
        assert [line for line in told if " process " in line] == [f"ERROR: process {pid} still runs: sleep 1000"]
    finally:
        left[0].unlink(missing_ok=True)
        if left[1].is_dir():
            left[1].rmdir()


@pytest.mark.long
def test_nothing_is_told_of_what_ended(tmp_path: Path) -> None:
    run = run_tests(tmp_path, LEAVES_NOTHING, "none")
    assert not told_of(run) and "1 passed" in run.stdout, run


def test_what_whoever_started_it_ignores_is_not_ignored(tmp_path: Path) -> None:
    def ignore() -> None:
        for number in (signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
            signal.signal(number, signal.SIG_IGN)

    run = run_tests(tmp_path, IS_NOT_IGNORED, "none", preexec_fn=ignore)
    assert "1 passed" in run.stdout, run
