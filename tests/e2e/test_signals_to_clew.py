"""Signals that come to clew because it is in the program's process group: they are the program's."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.e2e import runs
from tests.e2e.attaching import Target, find_descendants, wait_for

ON_TSTP = {
    "stops": "",
    "ignores": "signal.signal(signal.SIGTSTP, signal.SIG_IGN)",
    "handles": "signal.signal(signal.SIGTSTP, lambda *_: os.write(1, b'handled\\n'))",
}


@contextmanager
def recorded_job(trace: Path, code: str) -> Iterator[Target]:
    """A recording of Python code, in a process group of its own, as a shell starts its jobs."""
    words = runs.clew_command("record", "-q", "-o", trace, "--", sys.executable, "-S", "-E", "-c", code)
    process = subprocess.Popen(
        [os.fspath(word) for word in words],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=runs.environment(),
        process_group=0,
    )
    try:
        target = Target(process)
        target.read_until(b"ready\n")
        yield target
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()


def is_stopped(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def was_handled(job: Target) -> bool:
    """Whether the program has told that it handled a signal; it gets one more if not."""
    assert job.process.stdout is not None
    select.select([job.process.stdout], [], [], 0.5)
    job.read_what_is_there()
    if b"handled\n" not in job.output:
        os.killpg(job.pid, signal.SIGTSTP)
    return b"handled\n" in job.output


@pytest.mark.parametrize("what", ["stops", "handles", pytest.param("ignores", marks=pytest.mark.long)])
def test_job_control(what: str, tmp_path: Path) -> None:
    code = f"import os, signal; {ON_TSTP[what]}\nprint('ready', flush=True)\nraise SystemExit(len(input()))"
    with recorded_job(tmp_path / "out.clew", code) as job:
        (program,) = find_descendants(job.pid)
        os.killpg(job.pid, signal.SIGTSTP)
        if what == "stops":
            # Whoever started it sees it stop, as natively.
            status = os.waitpid(job.pid, os.WUNTRACED)[1]
            assert os.WIFSTOPPED(status) and os.WSTOPSIG(status) == signal.SIGTSTP
            assert is_stopped(program)
            os.killpg(job.pid, signal.SIGCONT)
            wait_for(lambda: not is_stopped(job.pid) and not is_stopped(program))
        elif what == "handles":
            # Python looks for signals between its instructions: one just before it reads is handled after the next.
            wait_for(lambda: was_handled(job))
        assert job.end(stdin=b"four\n")[0] == 4
    runs.read(tmp_path / "out.clew")
