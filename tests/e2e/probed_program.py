"""Starts a test program that waits for lines, puts probes into it, and hands out the events that come of them.

Runs on the machine that tests. A program says `ready` and waits; it does what it does for each line that it is given,
and says in one line what came of it.
"""

from __future__ import annotations

import re
import select
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from clew.address import Pid
from clew.sessions.probes.probe_session import ProbeSession
from clew.sessions.probes.specs import ProbeSpec
from tests.e2e import runs
from tests.programs.build import SOURCES, build_plain

__all__ = [
    "PROBES",
    "Probed",
    "at_once",
    "build_cxx",
    "calls_of",
    "calls_program",
    "hears",
    "instructions_of",
    "points",
    "run_clew",
    "started",
]

PROBES = SOURCES / "probes"
Event = dict[str, Any]


def build_cxx(name: str, *flags: str, called: str = "") -> Path:
    """A program of a source in C++ in the folder of programs for probes."""
    options = ["-Wl,--push-state,--no-as-needed", "-lstdc++", "-Wl,--pop-state"]
    return build_plain(PROBES / name, *flags, *options, name=called)


def calls_program() -> Path:
    """Calls with known arguments and results."""
    return build_plain(PROBES / "probed_calls.c", "-O1", "-g", "-no-pie")


def run_clew(*words: str | Path, status: int) -> subprocess.CompletedProcess[str]:
    """A command of clew's, which ends with that status."""
    command = [*runs.CLEW, *words]
    done = subprocess.run(command, env=runs.environment(), capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == status, done.stderr
    return done


def calls_of(*names: str, **how: Any) -> list[ProbeSpec]:
    """Probes of calls of functions: where they begin and where they return."""
    return [ProbeSpec(name, name, is_function=True, **how) for name in names]


def points(*places: str, **how: Any) -> list[ProbeSpec]:
    """Probes in front of instructions."""
    return [ProbeSpec(place, place, **how) for place in places]


class Program:
    """A program that runs, and waits for lines."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.pid = process.pid

    def hear(self) -> str:
        """The next line that it says."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().rstrip("\n")

    def tell(self, line: str = "") -> None:
        """Give it a line."""
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def ask(self, line: str = "") -> str:
        """Give it a line, and hear what came of that."""
        self.tell(line)
        return self.hear()

    def has_said(self) -> bool:
        """Whether there is something to hear, or nothing more ever."""
        assert self.process.stdout is not None
        return bool(select.select([self.process.stdout], [], [], 0)[0])

    def end(self) -> int:
        """Give it no more lines; its status, as `subprocess` has it."""
        self.process.communicate(timeout=60)
        return self.process.returncode


@contextmanager
def started(*command: str | Path, cwd: Path | None = None) -> Iterator[Program]:
    """A program that is ready. It is ended if it still runs in the end."""
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=runs.environment(), cwd=cwd) as process:
        try:
            program = Program(process)
            assert program.hear() == "ready"
            yield program
        finally:
            process.kill()


class Probed:
    """Probes in a process."""

    def __init__(self, session: ProbeSession) -> None:
        self.session = session
        self.target = session.owned[0]

    def read(self) -> list[Event]:
        """The events that have come since, those of each thread in its order. None may be lost."""
        batch = self.session.read()
        assert not batch.losses
        events = [{"event": kind.name, **one} for kind, table in batch.tables for one in table.to_pylist()]
        return sorted(events, key=lambda one: (one["tid"], one["sequence"]))

    def ask(self, program: Program, line: str = "") -> tuple[str, list[Event]]:
        """Give the program a line; what it says to that, and the events. Meanwhile its threads are answered, which wait
        where they load something."""
        program.tell(line)
        events = []
        while not program.has_said():
            self.session.wait(0.01)
            events += self.read()
        said = program.hear()
        return said, events + self.read()

    def count(self) -> Counter[str]:
        """How many events have come since, by their names."""
        return Counter(one["event"] for one in self.read())


@contextmanager
def at_once(pid: int, specs: Sequence[ProbeSpec], *, remarks: Sequence[str] = (), pending: int = 0) -> Iterator[Probed]:
    """Probes in a process that runs, all of them there but for what `remarks` tell and so many that are `pending`;
    nothing stays of them."""
    session = ProbeSession(specs)
    try:
        session.attach(Pid(pid))
        told = session.targets[0].remarks
        assert len(told) == len(remarks), told
        assert all(part in one for part, one in zip(remarks, told, strict=True)), told
        assert len(session.missing()) == pending
        yield Probed(session)
    finally:
        session.close()
    assert not session.left


def hears(program: Program, lines: int, probed: Probed) -> tuple[list[str], list[Event]]:
    """What a program says to so many lines, and what is told of that."""
    said, events = [], []
    for _ in range(lines):
        said.append(program.ask())
        events += probed.read()
    return said, events


def instructions_of(file: Path, *names: str) -> list[str]:
    """The places of all instructions of functions, `FUNCTION+OFFSET`, as another tool decodes them; of what the
    compiler put elsewhere of them (`.cold`), too."""
    command: list[str | Path] = ["objdump", "-d", "--no-show-raw-insn", "-w", file]
    blocks = subprocess.run(command, capture_output=True, check=True, text=True).stdout.split("\n\n")
    is_padding = re.compile(r"(cs |data16 )*(nop|int3|xchg +%ax,%ax)").match
    found = []
    for head, *lines in (block.splitlines() for block in blocks if block):
        begun = re.match(r"([0-9a-f]+) <(\S+)>:$", head)
        if begun is None or begun[2].removesuffix(".cold") not in names:
            continue
        own = [one for line in lines if (one := re.match(r" *([0-9a-f]+):\t(.+)", line))]
        # What fills the room between functions belongs to none of them.
        while is_padding(own[-1][2]):
            own.pop()
        found += [f"{begun[2]}+{int(one[1], 16) - int(begun[1], 16)}" for one in own]
    return found
