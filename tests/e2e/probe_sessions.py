"""Sessions of probes that tests make: in a folder of their own, destroyed at the end; and a program that is told what
to do.

Runs on the machine that tests.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import runs
from tests.programs.build import SOURCES, build_plain

PROBES = SOURCES / "probes"


class Sessions:
    """The sessions of which sockets are in `state`, a short path. Commands work in `folder`."""

    def __init__(self, state: Path, folder: Path) -> None:
        self.state, self.folder = state, folder
        self.environment = {**runs.environment(), "XDG_RUNTIME_DIR": str(state)}

    def run(self, *words: str | Path, status: int = 0, stdin: bytes = b"") -> runs.Run:
        """A command of clew's, which has to end so."""
        done = runs.run([*runs.CLEW, *words], environ=self.environment, cwd=self.folder, stdin=stdin)
        assert done.status == status, (words, done)
        return done

    def listed(self, name: str = "default") -> dict[str, Any]:
        """What `clew list` tells of a session."""
        told: dict[str, Any] = json.loads(self.run("list", "--json", name).stdout)
        return told

    def event(self, name: str, session: str = "default") -> dict[str, Any]:
        """What it tells of an event."""
        events: list[dict[str, Any]] = self.listed(session)["events"]
        return next(one for one in events if one["name"] == name)

    def destroy_all(self) -> None:
        """Whatever there is still."""
        self.run("destroy", "--all")


class Told:
    """A process of probed_turns.c."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid
        assert self.answer() == "ready"

    def ask(self, line: str) -> str:
        """What it answers a line."""
        self.tell(line)
        return self.answer()

    def tell(self, line: str) -> None:
        """Have it do something that takes longer."""
        assert self._process.stdin is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()

    def answer(self) -> str:
        """The next line that it writes."""
        assert self._process.stdout is not None
        return self._process.stdout.readline().rstrip("\n")

    def end(self) -> None:
        """Give it no more lines."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def turn(self, n: int) -> int:
        """The result of `turn(n)`, after which it has called `other(n)`."""
        return int(self.ask(f"turn {n}").split()[0])


@contextmanager
def told_program(*command: str | Path) -> Iterator[Told]:
    """A process that does what it is told, until this is left. `command`: what becomes it."""
    words = command or (turns_program(),)
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, env=os.environ.copy()) as process:
        try:
            yield Told(process)
        finally:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(60)


def turns_program() -> Path:
    return build_plain(PROBES / "probed_turns.c", "-O1", "-g", "-no-pie", "-ldl")


def events_of(path: Path) -> list[dict[str, Any]]:
    """The events of a file of JSON lines; none may be lost."""
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert not [one for one in events if "lost" in one]
    return events


def printed_by_babeltrace(folder: Path) -> list[str]:
    """The lines that babeltrace prints of a trace; the test is skipped where there is none."""
    if shutil.which("babeltrace2") is None:
        pytest.skip("babeltrace2 is not installed")
    return subprocess.run(["babeltrace2", folder], capture_output=True, check=True, text=True).stdout.splitlines()
