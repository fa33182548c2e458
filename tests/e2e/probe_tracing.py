"""Sessions of probes in one program, several at a time: commands that go on until they are told to leave.

Runs on the machine that tests. The program is that of probed_turns.c.
"""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.e2e import runs
from tests.e2e.forked import Process
from tests.e2e.probe_sessions import Sessions, Told
from tests.e2e.process_code import dirty_code, maps_text

Event = dict[str, Any]
BOTH = ("--function", "turn", "-t", "arg1")
WARM = 100_000
"""What `turn` is called with until a session is told of it is no less."""
_SOCKETS = "*.probes"
_warm = itertools.count(WARM)


class Tracing:
    """A `clew` that has probes in a process, and writes its events as JSON."""

    def __init__(self, sessions: Sessions, name: str, pid: int, *words: str) -> None:
        self.path = sessions.folder / f"{name}.json"
        self.process = runs.start(
            [*runs.CLEW, "trace", "-p", str(pid), "--format", "json", "-o", self.path, *words],
            environ=sessions.environment,
            stderr=subprocess.PIPE,
        )

    def events(self, name: str = "turn_entry") -> list[Event]:
        """The events of a name that were written by now, by time: of one thread more may have been read than of
        another."""
        lines = self.path.read_text().splitlines() if self.path.exists() else []
        found = [json.loads(line) for line in lines]
        assert not [one for one in found if "lost" in one]
        return sorted((one for one in found if one["event"] == name), key=lambda one: int(one["time_ns"]))

    def arguments(self, name: str = "turn_entry") -> list[int]:
        """What it has of a call's argument, but for those by which it was waited for it."""
        found = [int(str(one["fields"]["arg1"]), 0) for one in self.events(name)]
        return [one for one in found if one < WARM]

    def end(self, number: int = signal.SIGTERM, status: int = 0) -> str:
        """Tell it to leave; what it has said to people."""
        self.process.send_signal(number)
        _, errors = self.process.communicate(timeout=60)
        assert self.process.returncode == status, errors
        return errors.decode()


@contextmanager
def tracing(sessions: Sessions, name: str, program: Told, *words: str, event: str = "turn_entry") -> Iterator[Tracing]:
    """A session that has its probes in a program, by now: events called `event` come of `turn`."""
    one = Tracing(sessions, name, program.pid, *words)
    try:
        wait_for(one, program, event)
        yield one
    finally:
        if one.process.poll() is None:
            one.process.kill()
        one.process.communicate()


def wait_for(one: Tracing, program: Told, name: str) -> None:
    """Call `turn` until a session is told of such a call."""
    deadline = time.monotonic() + 60
    called: set[int] = set()
    while called.isdisjoint(int(str(event["fields"]["arg1"]), 0) for event in one.events(name)):
        assert time.monotonic() < deadline, one.process.poll()
        n = next(_warm)
        assert program.turn(n) == 7 * n + 1
        called.add(n)
        time.sleep(0.01)


def turn_all(program: Told, numbers: Sequence[int]) -> None:
    for n in numbers:
        assert program.turn(n) == 7 * n + 1


def is_left(sessions: Sessions, program: Told) -> bool:
    """Whether nothing is left of any session."""
    return (
        not dirty_code(program.pid)
        and "clew" not in maps_text(program.pid)
        and not list((sessions.state / "clew").glob(_SOCKETS))
    )


def rows_of(process: Process, number: int = signal.SIGTERM) -> list[dict[str, Any]]:
    """What is added up by a command that is told to leave."""
    process.send_signal(signal.SIGTERM)
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return [json.loads(line) for line in output.splitlines()]


def has_joined(pid: int, probed: int) -> bool:
    """Whether a process has the shared memory of a probed one open."""
    inode = next((line.split()[4] for line in maps_text(probed).splitlines() if "/memfd:clew" in line), "")
    for link in Path(f"/proc/{pid}/fd").iterdir():
        try:
            if str(link.stat().st_ino) == inode:
                return True
        except OSError:
            continue
    return False
