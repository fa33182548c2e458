"""A thread that comes to restartable sequences announces nothing that the kernel could not read, at any instruction."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from clew.address import Pid, Tid
from clew.process import ptrace
from tests.e2e.attaching import attach_here, start, wait_for

SINGLE_STEP = 9
WALL = 0x40000000
N_ANNOUNCED = 3
"""A thread that is stepped is aborted in front of each critical section, so it comes to the dispatcher for all."""

MAX_STEPS = 300_000
BEGUN_NS = 1_000_000
"""A thread that ran for so long has told the kernel of its area long since, which is the first that it does."""

TABLES_NS = 20_000_000


@contextmanager
def stopped(tid: Tid) -> Iterator[None]:
    """Hold a thread by ptrace; its process is killed in the end."""
    ptrace.seize(tid, 0)
    ptrace.interrupt(tid)
    os.waitpid(tid, WALL)
    try:
        yield
    finally:
        os.kill(tid, signal.SIGKILL)
        os.waitpid(tid, WALL)


def _ran_ns(tid: Tid) -> int:
    return int(Path(f"/proc/{tid}/schedstat").read_text().split()[0])


def step(tid: Tid) -> None:
    ptrace._ptrace(SINGLE_STEP, tid, 0, 0)
    status = os.waitpid(tid, WALL)[1]
    assert os.WIFSTOPPED(status) and os.WSTOPSIG(status) == signal.SIGTRAP, hex(status)


def test_what_is_announced_can_be_read(programs_to_attach: Path) -> None:
    with start(programs_to_attach / "sequences") as target:
        # In the order in which they began.
        adder = Tid(int(os.listdir(f"/proc/{target.pid}/task")[1]))
        wait_for(lambda: _ran_ns(adder) > BEGUN_NS)
        attach_here(Pid(target.pid))
        # Whoever is first in the runtime makes the decoder's tables, which are a million steps.
        before = _ran_ns(adder)
        wait_for(lambda: _ran_ns(adder) > before + TABLES_NS)
        announced = [0]
        with stopped(adder), open(f"/proc/{target.pid}/mem", "rb", buffering=0) as memory:
            registration = ptrace.get_rseq(adder)
            assert registration is not None
            for _ in range(MAX_STEPS):
                step(adder)
                word = int.from_bytes(os.pread(memory.fileno(), 8, registration[0] + 8), "little")
                if word != announced[-1]:
                    announced.append(word)
                if len(announced) > 2 * N_ANNOUNCED:
                    break
            for address in set(announced) - {0}:
                # Otherwise the kernel kills the thread when it is interrupted there (kernel/rseq.c, rseq_get_rseq_cs).
                assert len(os.pread(memory.fileno(), 32, address)) == 32
        assert len(announced) > 2 * N_ANNOUNCED
