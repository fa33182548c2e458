"""The controller is killed (SIGKILL) at any moment: its targets go on as if nothing had been."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clew.address import Pid
from clew.process import ptrace
from clew.process.injection_plan import layout_for_limits
from clew.process.maps import read_maps
from clew.process.refuge import refuge
from clew.process.shared_layout import SharedLayout
from clew.process.stopped_process import StoppedProcess
from clew.process.waiting import wait_stop
from clew.protocol._constants import FULL_WAIT_SECONDS
from tests.e2e import runs
from tests.e2e.attaching import start, wait_for
from tests.programs.build import SOURCES

LIMIT_SECONDS = 60.0
LIMIT_BYTES = 16 << 30
KILLS = int(os.environ.get("CLEW_KILLS", "8"))
KILLS_EACH_TIME = 1
GETPID = 39
COMMANDS = "i=0; while [ $i -lt 30 ]; do i=$((i+1)); seq 1 200 | sort -rn | head -1 > /dev/null; done; echo all; exit 7"


def die_before_call(process: StoppedProcess) -> None:
    del process


def die_inside_call(process: StoppedProcess) -> None:
    registers = process.registers.copy()
    registers.make_call_at(process._find_syscall_instruction() or 0, GETPID)
    process.processor.set_registers(process.task, registers)
    process.run_to_syscall_stop()


def die_after_call(process: StoppedProcess) -> None:
    die_inside_call(process)
    process.run_to_syscall_stop()


@pytest.mark.parametrize("die", [die_before_call, die_inside_call, die_after_call])
def test_a_call_whose_tracer_dies(programs_to_attach: Path, die: Callable[[StoppedProcess], None]) -> None:
    with start(programs_to_attach / "registers") as target:
        for _ in range(5):
            tracer = os.fork()
            if tracer == 0:
                pid = Pid(target.pid)
                ptrace.seize(pid, ptrace.OPTION_TRACESYSGOOD)
                ptrace.interrupt(pid)
                wait_stop(pid)
                process = StoppedProcess(pid)
                with refuge(process, read_maps(pid)):
                    die(process)
                    os._exit(0)
            assert os.waitpid(tracer, 0)[1] == 0
            deadline = time.monotonic() + 10
            while int(target.status("SigBlk"), 16) != 0:
                assert time.monotonic() < deadline, "its mask is not the program's again"
                time.sleep(0.005)
        assert target.end(number=signal.SIGTERM) == (0, "ready\ngood\n")


@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=() if n < KILLS_EACH_TIME else pytest.mark.stress) for n in range(KILLS)]
)
def test_a_shell_goes_on(tmp_path: Path, seed: int) -> None:
    """Whatever it runs just then: not begun, in the hands of clew, or under the runtime."""
    command = runs.clew_command("record", "-o", tmp_path / "t", "--", "sh", "-c", COMMANDS)
    with runs.start(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as recorder:
        # From when there is a target on: a clew that is killed before leaves none.
        children = Path(f"/proc/{recorder.pid}/task/{recorder.pid}/children")
        wait_for(lambda: bool(children.read_text()))
        time.sleep(0.5 + 1.5 * random.Random(seed).random())
        recorder.kill()
        # Until the last of the targets has closed them.
        assert recorder.communicate(timeout=LIMIT_SECONDS) == (b"all\n", b"")


@contextmanager
def few_slots() -> Iterator[int]:
    """A limit of the address space for programs that are begun meanwhile; and how many slots for threads it leaves."""
    limits = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (LIMIT_BYTES, limits[1]))
    try:
        yield layout_for_limits(SharedLayout())[0].max_threads
    finally:
        resource.setrlimit(resource.RLIMIT_AS, limits)


def test_a_program_that_makes_threads(tmp_path: Path) -> None:
    """It gets more of them than there are slots, none of which is given back any more, and never waits for long."""
    program = tmp_path / "thread_after_thread"
    source = SOURCES / "load" / "thread_after_thread.c"
    subprocess.run(["gcc", "-O1", "-pthread", "-o", program, source], check=True)
    with few_slots() as n_slots:
        command = runs.clew_command("record", "-o", tmp_path / "t", "--", program, str(n_slots + 200))
        words = [os.fspath(word) for word in command]
        started = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=runs.environment())
    with started as recorder:
        assert recorder.stdout is not None
        assert recorder.stdout.readline() == b"ready\n"
        recorder.kill()
        # As a shell does at once: before that its number is somebody's still.
        recorder.wait()
        said, complaints = recorder.communicate(timeout=LIMIT_SECONDS)
    assert (int(said) < 1000 * FULL_WAIT_SECONDS, complaints) == (True, b"")
