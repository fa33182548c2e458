"""What /proc says of a process that waits for the controller, which is stopped meanwhile: to the program it runs."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.e2e import runs
from tests.e2e.attaching import find_descendants, start, wait_for
from tests.programs.build import find

N_SIGNALS = 20_000
"""Their records take more than a thread's ring holds."""

N_READS = 100
WAITS = (b"202 ", b"449 ")
"""futex and futex_waitv"""


def _count_reads(pid: int) -> int:
    line = next(line for line in Path(f"/proc/{pid}/io").read_text().splitlines() if line.startswith("syscr:"))
    return int(line.split()[1])


@pytest.mark.usefixtures("programs")
def test_who_waits_for_the_controller_is_not_seen_asleep(tmp_path: Path) -> None:
    command = runs.clew_command("record", "-q", "-o", tmp_path / "t", "--", find("proc_states").path, str(N_SIGNALS))
    with start(*command, env=runs.environment()) as recorder:
        parent, child = find_descendants(recorder.pid)
        os.kill(recorder.pid, signal.SIGSTOP)
        try:
            assert recorder.process.stdin is not None
            recorder.process.stdin.write(b"\n")
            recorder.process.stdin.flush()
            wait_for(lambda: Path(f"/proc/{child}/syscall").read_bytes().startswith(WAITS))
            n_reads = _count_reads(parent)
            wait_for(lambda: _count_reads(parent) > n_reads + N_READS)
        finally:
            os.kill(recorder.pid, signal.SIGCONT)
        recorder.read_until(b"child seen asleep: no in stat, no in status\n")
        assert recorder.process.wait(runs.TIMEOUT_SECONDS) == 0
    runs.read(tmp_path / "t")
