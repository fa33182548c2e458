"""What events have besides: backtraces as a debugger has them, and all contexts as babeltrace2 prints them."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from clew.sessions.probes.specs import ContextField
from tests.e2e import runs
from tests.e2e.probed_program import PROBES, at_once, calls_program, points, started
from tests.programs.build import build_plain

FRAMES = 32


@pytest.mark.skipif(shutil.which("gdb") is None, reason="gdb is not installed: no backtraces were compared")
@pytest.mark.parametrize("flags", ["-O2 -fomit-frame-pointer", "-O0", "-O2 -fno-omit-frame-pointer -pie"])
def test_backtraces_are_those_of_a_debugger(flags: str, tmp_path: Path) -> None:
    name = "probed_backtrace" + re.sub(r"\W+", "-", flags)
    program = build_plain(PROBES / "probed_backtrace.c", *flags.split(), name=name)
    script = tmp_path / "script"
    # A debugger has address randomisation switched off.
    script.write_text(
        "set pagination off\nset backtrace past-main on\nbreak *reached\n"
        "commands\nsilent\necho hit\\n\nbt\ncontinue\nend\n"
        f"run < {tmp_path / 'line'}\n"
    )
    (tmp_path / "line").write_text("\n")
    command: list[str | Path] = ["gdb", "-nx", "-batch", "-x", script, program]
    done = subprocess.run(command, env=runs.environment(), capture_output=True, text=True, check=True, timeout=120)
    expected = [
        [int(address, 16) for address in re.findall(r"^#\d+ +(0x[0-9a-f]+) in", hit, re.MULTILINE)]
        for hit in done.stdout.split("hit\n")[1:]
    ]
    with started("setarch", "-R", program) as running:
        with at_once(running.pid, points("reached", fields=(ContextField("backtrace", backtrace=FRAMES),))) as one:
            said = running.ask()
            found = [event["backtrace"] for event in one.read()]
        assert f"\n{said}\n" in done.stdout
    assert len(expected) > 8
    assert all(len(frames) > 3 for frames in expected)
    assert found == expected


def test_babeltrace2_prints_all_contexts(tmp_path: Path) -> None:
    if shutil.which("babeltrace2") is None:
        pytest.skip("babeltrace2 is not installed: no traces were read by it")
    program = calls_program()
    contexts = ("regs", "reg:rsi", "int:count:counter", "string:words:*(char **)text", "s32:bad:8", "backtrace:4")
    options = [word for one in (*contexts, "twice=rdi * 2", "comm", "pid") for word in ("-t", one)]
    folder = tmp_path / "ctf"
    command: list[str | Path] = [*runs.CLEW, "trace", "--probe", "add", *options, "-o", folder, "--", program]
    done = subprocess.run(command, env=runs.environment(), capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 3, done.stderr
    printed = subprocess.run(["babeltrace2", folder], capture_output=True, check=True, text=True).stdout.splitlines()
    counted = [int(line.split()[1]) for line in done.stdout.splitlines()[:5]]
    symbols = subprocess.run(["nm", program], capture_output=True, check=True, text=True).stdout
    add = int(next(line for line in symbols.splitlines() if line.endswith(" T add")).split()[0], 16)
    assert len(printed) == len(counted) == 5
    for number, (line, count) in enumerate(zip(printed, counted, strict=True)):
        assert re.search(r'\bwords = "a \\"quoted\\" text"', line), line
        assert re.search(rf"\bcount = {count}\b", line), line
        assert re.search(r"\brsi = 0x7\b", line), line
        assert re.search(rf"\brdi = 0x{number:X}\b", line), line
        assert re.search(rf"\brip = 0x{add:X}\b", line), line
        assert re.search(rf"\btwice = {number * 2}\b", line), line
        assert re.search(r'\bcomm = "probed_calls"', line), line
        assert re.search(rf"\[0\] = 0x{add:X}\b", line), line


@pytest.mark.parametrize("place", ["main+0x10", "main+16", "main+020"])
def test_a_place_behind_a_symbol_of_a_command(place: str) -> None:
    """An instruction begins there; the program's output and its status are what they are natively."""
    program = build_plain(PROBES / "probed_calls.c", "-O0", name="probed_calls-O0")
    native = subprocess.run([program], capture_output=True, check=False)
    command = [*runs.CLEW, "trace", "--probe", place, "--format", "json", "-c", str(program)]
    done = subprocess.run(command, env=runs.environment(), capture_output=True, check=False, timeout=120)
    assert done.returncode == native.returncode == 3
    lines = done.stdout.splitlines(keepends=True)
    assert b"".join(line for line in lines if not line.startswith(b"{")) == native.stdout
    assert len([line for line in lines if line.startswith(b"{")]) == 1
