"""The program whose probed function is called many times, and the ways in which it is traced meanwhile."""

from __future__ import annotations

import contextlib
import select
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from bench.workloads import compile_program
from clew.address import Pid

N_CALLS = 4000
FUNCTION = "short_function"
RUN_SECONDS = 60.0

Attach = Callable[["Program"], contextlib.AbstractContextManager[Callable[[], int]]]
"""Has a tracer attached to the program; what it gives reads what has come, and says how much was lost since."""


@dataclass
class Way:
    """A way to run the program: how it is traced, and what it may cost."""

    name: str
    attach: Attach | None = None
    bar_ns: float | None = None
    text: str = "stack"
    called: str = FUNCTION
    program: str = "probe_hits"
    """How it is compiled."""
    prefix: tuple[str, ...] = ()
    """The command that it runs under."""
    baseline: str = "native"
    times: list[float] = field(default_factory=list)
    lost: int = 0
    failure: str = ""


class Program:
    """The program, which waits to begin."""

    def __init__(self, way: Way, bursts: int) -> None:
        self.path = compile_program(way.program, of="probe_hits")
        words = [*way.prefix, self.path, str(bursts), str(N_CALLS), way.text, way.called]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        assert self.process.stdin is not None and self.process.stdout is not None
        self.stdin, self.stdout = self.process.stdin, self.process.stdout
        if self.stdout.readline() != "ready\n":
            raise RuntimeError("the program did not start")
        self.pid = Pid(self.process.pid)
        # One burst more than is measured.
        self.n_calls = (bursts + 1) * N_CALLS

    def go_on(self) -> None:
        self.stdin.write("\n")
        self.stdin.flush()

    def end(self) -> None:
        """Let it end, or end it."""
        with contextlib.suppress(OSError):
            self.go_on()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def run(way: Way, bursts: int) -> None:
    """One round of a way."""
    program = Program(way, bursts)
    try:
        with way.attach(program) if way.attach else contextlib.nullcontext(lambda: 0) as read:
            program.go_on()
            deadline = time.monotonic() + RUN_SECONDS
            while not select.select([program.stdout], [], [], 0.0005)[0]:
                way.lost += read()
                if time.monotonic() > deadline:
                    raise RuntimeError("it took too long")
            way.times.append(float(program.stdout.readline().split()[0]))
            way.lost += read()
    finally:
        program.end()
