"""Breakpoints that somebody who is not recorded puts into code that runs, and takes out again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from clew.address import Pid
from tests.e2e import runs
from tests.e2e.attaching import Target, find_descendants, start

BREAKPOINT, NOP = b"\xcc", b"\x90"


def _write(pid: int, address: int, code: bytes) -> None:
    """Write as a debugger does, whatever the memory's protection."""
    memory = os.open(f"/proc/{pid}/mem", os.O_RDWR)
    try:
        assert os.pwrite(memory, code, address) == len(code)
    finally:
        os.close(memory)


def _ask(target: Target, line: bytes, answer: bytes) -> None:
    assert target.process.stdin is not None
    target.process.stdin.write(line)
    target.process.stdin.flush()
    target.read_until(b"\n" + answer)


@pytest.mark.parametrize("mode", [None, "counts", "full"])
def test_a_breakpoint_comes_and_goes(mode: str | None, programs_to_attach: Path, tmp_path: Path) -> None:
    command: list[str | Path] = [programs_to_attach / "breakable"]
    if mode is not None:
        command = runs.clew_command("record", "-q", "--mode", mode, "-o", tmp_path / "t", "--", *command)
    with start(*command, ready=b"ready ", env=runs.environment()) as target:
        target.read_until(b"\n")
        pid = target.pid if mode is None else find_descendants(target.pid)[0]
        address = int(target.output.split()[1], 16)
        for n in range(1, 3):
            _write(Pid(pid), address, BREAKPOINT)
            _ask(target, b"t\n", b"traps\nfree\n" * (n - 1) + b"traps\n")
            _write(Pid(pid), address, NOP)
            _ask(target, b"f\n", b"traps\nfree\n" * n)
        assert target.end()[0] == 0
    if mode is not None:
        runs.read(tmp_path / "t")
