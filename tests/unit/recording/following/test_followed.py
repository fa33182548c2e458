"""Who goes on with the memory of a process that has ended."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest

from clew.address import Pid
from clew.process.shared_layout import SharedLayout
from clew.process.shared_memory import HeaderSettings, SharedFile, SharedMemory
from clew.protocol._constants import Mode
from clew.recording.following.followed import FollowedProcess
from clew.recording.following.region import FollowedRegion
from clew.recording.sinks.sink import Identity

LAYOUT = SharedLayout(max_threads=4, ring_bytes=1024, counter_bytes=64 << 10)
MAPS = """import mmap, sys
memory = mmap.mmap(int(sys.argv[1]), 16384, offset=int(sys.argv[2]))
print('ready', flush=True)
sys.stdin.read()"""


@pytest.mark.parametrize("running", ["begun", "not begun"])
def test_a_task_that_has_the_memory_is_found(running: str) -> None:
    shared = SharedMemory(SharedFile.create(LAYOUT), HeaderSettings(mode=Mode.COUNTS))
    anything: Any = None
    region = FollowedRegion(anything, anything, shared, anything, Mode.COUNTS)
    who = Identity(Pid(1 << 30), Pid(1), "", [], "", has_own_namespace=False)
    followed = FollowedProcess(region, who, -1, {})
    words = [sys.executable, "-I", "-S", "-c", MAPS, str(shared.fd), str(shared.offset)]
    try:
        with subprocess.Popen(words, pass_fds=[shared.fd], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as task:
            assert task.stdout is not None and task.stdout.readline() == b"ready\n"
            # A slot that was taken for a thread has no number until that begins.
            number = task.pid if running == "begun" else 0
            drain: Any = SimpleNamespace(find_running=lambda: [number])
            region.drain = drain
            assert followed.find_survivor() == task.pid
            task.communicate()
        assert followed.find_survivor() is None
    finally:
        shared.close()
