"""What a process that is held does not notice."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from pathlib import Path

import pytest

from clew.address import Pid
from clew.errors import RemoteCallError
from clew.process import ptrace
from clew.process.stopped_process import StoppedProcess

SI_QUEUE = -1


def test_signals_that_come_meanwhile_arrive_as_they_were_sent(tmp_path: Path) -> None:
    program = tmp_path / "signals"
    subprocess.run(["gcc", "-O1", "-o", program, Path(__file__).with_name("signals.c")], check=True)
    with subprocess.Popen([program], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        pid = Pid(child.pid)
        ptrace.seize(pid, ptrace.OPTION_TRACESYSGOOD)
        ptrace.interrupt(pid)
        ptrace.wait_stop(pid)
        process = StoppedProcess(pid)
        sender = subprocess.run(["sh", "-c", f"kill -USR1 {pid}; echo $$"], check=True, capture_output=True)
        for value in (5, 6):
            ctypes.CDLL(None).sigqueue(pid, signal.SIGRTMIN, ctypes.c_void_p(value))
        with pytest.raises(RemoteCallError):
            process.call("close", -1)
        process.detach()
        told = [[int(word) for word in line.split()] for line in child.stdout]
    assert told[0][:3] == [signal.SIGUSR1, 0, int(sender.stdout)]
    assert told[1:] == [[signal.SIGRTMIN, SI_QUEUE, os.getpid(), value] for value in (5, 6)]
