"""How long a target waits for a controller that has no time, or is stopped: nothing is lost that need not be."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from clew.process.shared_layout import SharedLayout
from clew.process.shared_memory import MEMFD_NAME
from clew.protocol._constants import FULL_WAIT_SECONDS
from clew.protocol.layout import field_offset
from clew.recording.options.record_options import RecordOptions
from clew.recording.session.interrupts import InterruptGuard
from clew.recording.session.launched import Launch
from clew.recording.session.session import start_session
from tests.e2e import runs
from tests.e2e.attaching import wait_for

LONGER_SECONDS = FULL_WAIT_SECONDS + 2


def read_heartbeat(pid: int) -> int:
    """How often a recording process has told its first target's runtime that it is there."""
    shared = next(fd for fd in Path(f"/proc/{pid}/fd").iterdir() if os.readlink(fd).startswith(f"/memfd:{MEMFD_NAME}"))
    with shared.open("rb") as file:
        word = os.pread(file.fileno(), 4, SharedLayout().status_offset + field_offset("StatusPage", "heartbeat"))
    return int.from_bytes(word, "little")


@pytest.mark.long
def test_a_controller_without_time_is_waited_for(tmp_path: Path) -> None:
    """As behind a disk that takes seconds: its heart beats, and nobody takes it for gone."""
    launch = Launch(["sh", "-c", "/bin/true; (exit 3); /bin/true"])
    session = start_session(launch, RecordOptions(tmp_path / "t"), InterruptGuard())
    time.sleep(LONGER_SECONDS)
    session.wait()
    assert session.finish().exit_status == 0
    processes = runs.read(tmp_path / "t").summary["processes"]
    assert sum(Path(process["executable"]).name == "true" for process in processes) == 2


@pytest.mark.long
def test_a_controller_that_was_stopped_goes_on_where_it_can(tmp_path: Path) -> None:
    """The target runs on meanwhile, and its children natively; those that it makes later are followed."""
    script = (
        "import os, sys, time\n"
        "def child(): os.waitpid(os.posix_spawn('/bin/true', ['true'], {}), 0)\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "child(); print('gone', flush=True); sys.stdin.readline()\n"
        "child(); child()\n"
    )
    target = ["/usr/bin/python3", "-I", "-S", "-c", script]
    command = runs.clew_command("record", "-q", "-o", tmp_path / "t", "--", *target)
    recorder = runs.start(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert recorder.stdin is not None and recorder.stdout is not None

    def turn() -> None:
        assert recorder.stdin is not None
        recorder.stdin.write(b"\n")
        recorder.stdin.flush()

    try:
        assert recorder.stdout.readline() == b"ready\n"
        os.kill(recorder.pid, signal.SIGSTOP)
        turn()
        assert recorder.stdout.readline() == b"gone\n"
        heartbeat = read_heartbeat(recorder.pid)
        os.kill(recorder.pid, signal.SIGCONT)
        wait_for(lambda: read_heartbeat(recorder.pid) != heartbeat)
        turn()
        assert recorder.wait(60) == 0
    finally:
        recorder.kill()
        recorder.communicate()
    recorded = runs.read(tmp_path / "t")
    processes = recorded.summary["processes"]
    assert any("went on without an answer" in line for line in recorded.trace.manifest.warnings)
    assert [process["exit"] for process in processes if Path(process["executable"]).name == "true"] == [{"code": 0}] * 2
