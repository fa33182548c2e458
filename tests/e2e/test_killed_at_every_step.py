"""The controller is killed in front of every single thing that it does to a process, to attach to it and to leave it.

CLEW_STEP is the distance between two that are tried: 1 tries all of them.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clew.address import Pid
from clew.process import ptrace
from clew.process.detach import detach
from clew.process.leftover import take_out_leftover
from clew.process.stopped_process import StoppedProcess
from tests.e2e.attaching import Target, attach_here, has_shared_memory, start

STEP = int(os.environ.get("CLEW_STEP", "64"))
RECORDED_SECONDS = 0.02


class Steps:
    """Counts what is done to a process from now on; in front of number `last` this process is killed."""

    def __init__(self, last: int) -> None:
        self.n_done = 0
        self._last = last
        ptrace._ptrace = self._counted(ptrace._ptrace)
        ptrace.try_wait = self._counted(ptrace.try_wait)
        StoppedProcess.write = self._counted(StoppedProcess.write)  # type: ignore[method-assign]

    def _counted(self, do: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any) -> Any:
            self.n_done += 1
            if self.n_done == self._last:
                os.kill(os.getpid(), signal.SIGKILL)
            return do(*arguments)

        return step


def attach_and_leave(pid: Pid, last: int) -> int:
    """Do it in a process of its own, killed at step `last` (0: never); how many steps there were, if it was not."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            n_done = _attach_and_leave(pid, Steps(last))
            os.write(writer, str(n_done).encode())
            os._exit(0)
        except BaseException as error:
            os.write(writer, str(error).encode())
            os._exit(1)
    os.close(writer)
    with open(reader, "rb") as said:
        words = said.read().decode()
    # How many steps it takes is not always the same.
    assert os.waitpid(child, 0)[1] in ((0, signal.SIGKILL) if last else (0,)), words
    return int(words or 0)


def _attach_and_leave(pid: Pid, steps: Steps) -> int:
    take_out_leftover(pid)
    attachment = attach_here(pid)
    time.sleep(RECORDED_SECONDS)
    detach(pid, attachment.shared, attachment.plan)
    return steps.n_done


@pytest.mark.parametrize("name", ["threads", "registers", "alternate", "sequences"])
@pytest.mark.long
def test_a_process_goes_on(programs_to_attach: Path, name: str) -> None:
    with start(programs_to_attach / name) as target:
        n_steps = attach_and_leave(Pid(target.pid), 0)
        assert not target.has_runtime()
        assert goes_on(target)
    # Other ones for each program.
    for last in range(1 + len(name) % STEP, n_steps + 1, STEP):
        with start(programs_to_attach / name) as target:
            attach_and_leave(Pid(target.pid), last)
            time.sleep(RECORDED_SECONDS)
            if last // STEP % 2:
                # Another clew takes out what that one left.
                attach_and_leave(Pid(target.pid), 0)
                assert not has_shared_memory(target.pid)
            assert goes_on(target), f"step {last} of {n_steps}: {target.output!r}"


def goes_on(target: Target) -> bool:
    """Whether the program has done all that it should when it is told to end."""
    status, output = target.end(number=signal.SIGTERM)
    return (status, output.endswith("good\n"), "bad" in output) == (0, True, False)
