"""`clew api` on a program that makes every system call with good and with bad addresses, each in a process of its own:
what they come to is what they come to natively, and each is told once, with its arguments, as strace tells it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from clew.api.reading import load_built_in
from tests.e2e import every_call, runs
from tests.e2e.strace_lines import read_both
from tests.programs.build import SOURCES, build_plain

pytestmark = pytest.mark.long
TIMEOUT_SECONDS = 600
OWN = {"set_robust_list": 1, "exit_group": 0}
"""What a child of the program does besides, by itself."""
ASKS_TO_BE_TRACED = ("ptrace", "0")
"""Who is traced by its parent goes on natively (docs/design/processes.md)."""


@dataclass(frozen=True)
class Runs:
    """The program by itself and under `clew api`: names and lines of what was asked for, what it printed, and what was
    told."""

    program: str
    wanted: list[tuple[str, str]]
    native: list[str]
    found: list[str]
    told: Path

    @property
    def text(self) -> str:
        """The program's input."""
        return "".join(f"{line}\n" for _, line in self.wanted)


@pytest.fixture(name="made", scope="module")
def fixture_made(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    program, told = str(build_plain(SOURCES / "api" / "every_call.c", "-O1")), tmp_path_factory.mktemp("told") / "told"
    made = Runs(program, list(every_call.lines()), [], [], told)
    clew = [sys.executable, "-m", "clew", "api", "--json", "-o", str(told), "--", program]
    made.native.extend(run([program], made.text))
    made.found.extend(run(clew, made.text))
    return made


def run(words: list[str], text: str) -> list[str]:
    """What the program says of the calls that it is told to make."""
    command = [*runs.FIXED_LAYOUT, *words]
    done = subprocess.run(
        command, input=text.encode(), env=runs.environment(), capture_output=True, check=False, timeout=TIMEOUT_SECONDS
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.decode().splitlines()


def test_every_call_does_what_it_does_natively_and_is_told_once(made: Runs) -> None:
    wanted, native, found = made.wanted, made.native, made.found
    by_name = {function.name: function for function in load_built_in().system_calls.values()}
    assert {name for name, _ in wanted} == set(by_name) - every_call.LEFT_OUT
    assert len(native) == len(found) == len(wanted)

    def plain(lines: list[str]) -> list[tuple[str, str]]:
        pairs = zip(wanted, lines, strict=True)
        return [(asked, every_call.result_of(by_name[name], line)) for (name, asked), line in pairs]

    assert plain(found) == plain(native)
    told = read_children(made.told)
    for (name, asked), line, calls in zip(wanted, found, told, strict=True):
        texts = [call["text"] for call in calls if call["name"] == name]
        n_own = OWN.get(name, 0)
        if (name, asked.split()[1]) == ASKS_TO_BE_TRACED:
            continue
        assert len(texts) == 1 + n_own, (asked, [call["text"] for call in calls])
        # Its own is the first of all, but for the end.
        text = texts[0 if name == "exit_group" else -1]
        # What random bytes are is nothing that is not known.
        said = re.sub(r'"(?:[^"\\]|\\.)*"', '""', text.rpartition(" = ")[0])
        assert re.fullmatch(rf"{name}\(.*\) = .+", text) and "?" not in said, text
        result = next(call["result"] for call in calls if call["text"] == text)
        # What ends the child instead the kernel says beside the result.
        assert line.split()[1] in ("exit", "signal", str(result)), (text, line)


@pytest.mark.skipif(shutil.which("strace") is None, reason="this machine has no strace")
def test_every_call_is_told_as_strace_tells_it(made: Runs, tmp_path: Path) -> None:
    run(["strace", "-f", "-ttt", "-T", "-o", str(tmp_path / "strace"), made.program], made.text)
    objects = [json.loads(line) for line in made.told.read_text().splitlines()]
    lines = "".join(f"{call['tid']} 0.0 {call['text']}\n" for call in objects)
    expected, told = read_both((tmp_path / "strace").read_text(), lines)
    assert len(told) == len(expected) > len(made.wanted)
    # What the first process prints differs by what the kernel chose.
    for ours, theirs in zip(told[1:], expected[1:], strict=True):
        if not any(call[:2] == ("ptrace", "PTRACE_TRACEME") for call in theirs):
            assert ours == theirs


def read_children(path: Path) -> list[list[dict[str, Any]]]:
    """The calls of each child, in the order in which children were made."""
    by_process: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for line in path.read_text().splitlines():
        call = json.loads(line)
        by_process[call["pid"]].append(call)
    parent = next(iter(by_process.values()))
    return [by_process[call["result"]] for call in parent if call["name"] == "clone"]
