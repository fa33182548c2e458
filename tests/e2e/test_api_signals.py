"""Signals to `clew api`: they are the program's, and what was told until then is not lost; and who descends from it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

import clew
from tests.e2e import runs

CAREFUL = """
import time
print("ready", flush=True)
try:
    time.sleep(100)
except KeyboardInterrupt:
    print("cleaned up", flush=True)
    raise SystemExit(5)
"""
PATIENT = "import time; print('ready', flush=True); time.sleep(100)"


def signalled(arguments: list[str], code: str, send: Callable[[int], None]) -> tuple[int, str, str]:
    """Exit status, output and what clew said, of a program in a session of its own that is sent a signal once it has
    said that it is ready."""
    words = [sys.executable, "-m", "clew", "api", *arguments, "--", sys.executable, "-S", "-E", "-c", code]
    # As a terminal's programs have it, whatever runs the tests.
    words = [sys.executable, "-c", _WITH_SIGNALS, *words]
    process = subprocess.Popen(
        words,
        env={**runs.environment(), "PYTHONPATH": str(runs.ROOT / "src")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == "ready\n"
        # It is in the call that it is to be interrupted in.
        time.sleep(0.3)
        send(process.pid)
        said, told = process.communicate(timeout=60)
    finally:
        process.kill()
    return process.returncode, said, told


_WITH_SIGNALS = (
    "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"
)


def interrupt_all(pid: int) -> None:
    os.killpg(pid, signal.SIGINT)


def terminate(pid: int) -> None:
    os.kill(pid, signal.SIGTERM)


def test_the_program_decides_what_ctrl_c_means(tmp_path: Path) -> None:
    status, said, _ = signalled(["-o", str(tmp_path / "told")], CAREFUL, interrupt_all)
    assert (status, said) == (5, "cleaned up\n")
    assert "exit_group(5) = ?" in (tmp_path / "told").read_text()


@pytest.mark.parametrize(("send", "status"), [(interrupt_all, 130), (terminate, 143)])
def test_what_was_counted_is_told_when_a_signal_ends_the_program(
    send: Callable[[int], None], status: int, tmp_path: Path
) -> None:
    ended, _, told = signalled(["-c"], PATIENT, send)
    assert ended == status and " total" in told and " openat" in told
    ended, _, _ = signalled(["--trace", str(tmp_path / "it.clew"), "-o", os.devnull], PATIENT, send)
    calls = clew.Trace(tmp_path / "it.clew").calls.to_pylist()
    assert ended == status and len(calls) > 50
    # The call that the signal came into is told, too.
    waiting = [one for one in calls if one["name"] in ("clock_nanosleep", "select", "pselect6")]
    assert len(waiting) == 1 and (waiting[0]["result"] is None or waiting[0]["error"] is not None)


def test_a_process_that_is_looked_at_is_left_at_any_signal() -> None:
    target = subprocess.Popen(["sleep", "100"])
    try:
        for number in (signal.SIGTERM, signal.SIGINT):
            words = [
                sys.executable,
                "-c",
                _WITH_SIGNALS,
                sys.executable,
                "-m",
                "clew",
                "api",
                "-c",
                "-p",
                str(target.pid),
            ]
            clew_api = subprocess.Popen(
                words,
                env={**runs.environment(), "PYTHONPATH": str(runs.ROOT / "src")},
                stderr=subprocess.PIPE,
                text=True,
            )
            maps = Path(f"/proc/{target.pid}/maps")
            while "memfd:clew" not in maps.read_text() and clew_api.poll() is None:
                time.sleep(0.02)
            time.sleep(0.5)
            clew_api.send_signal(number)
            told = clew_api.communicate(timeout=60)[1]
            assert clew_api.returncode == 0 and " total" in told and target.poll() is None
            assert "memfd:clew" not in maps.read_text()
    finally:
        target.kill()
        target.wait()


def test_who_descends_from_the_program_is_told_to_the_end(tmp_path: Path) -> None:
    late = tmp_path / "late"
    script = f"(sleep 0.5; echo late >> {late}) & exit 3"
    told = tmp_path / "told"
    words = [sys.executable, "-m", "clew", "api", "-o", str(told), "--", "sh", "-c", script]
    done = subprocess.run(words, env={**runs.environment(), "PYTHONPATH": str(runs.ROOT / "src")}, timeout=60)
    text = told.read_text()
    assert done.returncode == 3 and late.read_text() == "late\n"
    assert f'"{late}"' in text and text.count("exit_group(") == 3
