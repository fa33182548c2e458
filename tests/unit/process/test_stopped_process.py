"""What a process that is held does not notice."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from clew.address import Pid, RemoteAddress
from clew.errors import RemoteCallError, TargetError
from clew.process import ptrace
from clew.process.identity import is_ending
from clew.process.stopped_process import StoppedProcess
from clew.process.waiting import wait_stop

SI_QUEUE = -1


@pytest.fixture
def held_child() -> Iterator[tuple[StoppedProcess, int]]:
    """A process held in its first instructions, and an address in it that can be written."""
    with subprocess.Popen(["/bin/sleep", "100"]) as child:
        pid = Pid(child.pid)
        ptrace.seize(pid, ptrace.OPTION_TRACESYSGOOD)
        ptrace.interrupt(pid)
        wait_stop(pid)
        process = StoppedProcess(pid)
        yield process, process.registers.stack_pointer & ~4095
        process.kill()


@pytest.mark.timeout(20)
def test_what_was_killed_can_be_neither_read_nor_written(held_child: tuple[StoppedProcess, int]) -> None:
    process, address = held_child
    process.write(RemoteAddress(address), process.read(RemoteAddress(address), 8))
    assert not is_ending(process.pid)
    os.kill(process.pid, signal.SIGKILL)
    assert is_ending(process.pid)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    for use in (lambda: process.read(RemoteAddress(address), 8), lambda: process.write(RemoteAddress(address), b"x")):
        with pytest.raises(TargetError):
            use()
    assert is_ending(process.pid)


def test_signals_that_come_meanwhile_arrive_as_they_were_sent(tmp_path: Path) -> None:
    program = tmp_path / "signals"
    subprocess.run(["gcc", "-O1", "-o", program, Path(__file__).with_name("signals.c")], check=True)
    with subprocess.Popen([program], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline() == b"ready\n"
        pid = Pid(child.pid)
        ptrace.seize(pid, ptrace.OPTION_TRACESYSGOOD)
        ptrace.interrupt(pid)
        wait_stop(pid)
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
