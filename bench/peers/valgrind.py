"""valgrind, where the machine has it: following alone (`--tool=none`), and exact counts (`--tool=callgrind`).

Both follow every thread from the first instruction on, one thread at a time, and no child process.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bench.counted import INSTRUCTIONS, Counted
from bench.tools import Tool, make_environment

NAMES = ("valgrind-none", "callgrind")

_TOTALS = re.compile(rb"^totals: (\d+)", re.MULTILINE)


def find_version() -> str:
    """The version of the valgrind on PATH. FileNotFoundError, told to people, without one."""
    program = shutil.which("valgrind")
    if program is None:
        raise FileNotFoundError("no valgrind on PATH (Debian: apt-get install valgrind)")
    done = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
    return done.stdout.strip().removeprefix("valgrind-")


def make_tools() -> list[Tool]:
    """FileNotFoundError without valgrind."""
    version = find_version()

    def follow(command: Sequence[str], _: Path) -> list[str]:
        return ["valgrind", "--quiet", "--tool=none", *command]

    def count(command: Sequence[str], folder: Path) -> list[str]:
        return ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={folder / 'callgrind.out'}", *command]

    return [
        Tool(
            "valgrind-none",
            "valgrind --tool=none: follows, counts nothing",
            follow,
            make_environment(),
            version=version,
            is_peer=True,
            same_code_as="callgrind",
        ),
        Tool(
            "callgrind",
            "valgrind --tool=callgrind: exact counts of instructions by line, and of calls",
            count,
            make_environment(),
            version=version,
            is_peer=True,
            read_counted=_read_instructions,
        ),
    ]


def _read_instructions(folder: Path) -> Counted:
    """Instructions of all threads, from the last line of callgrind's file."""
    found = _TOTALS.findall((folder / "callgrind.out").read_bytes())
    return {INSTRUCTIONS: int(found[-1])} if found else {}
