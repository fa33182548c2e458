"""What `clew control` prints of a recording's answers."""

from __future__ import annotations

from typing import Any

import pytest

from clew.cli.control_text import iter_lines
from clew.cli.main import main

Captured = pytest.CaptureFixture[str]


def _thread(tid: int, reason: str) -> dict[str, Any]:
    return {"tid": tid, "reason": reason, "symbol": "spin!work", "registers": {"rax": 7, "rip": 0x401136}}


def _status(**changes: Any) -> dict[str, Any]:
    process = {
        "pid": 7,
        "executable": "/tmp/spin",
        "is_held": True,
        "breakpoints": [{"address": 0x401136, "symbol": "spin!work"}],
        "threads": [_thread(7, "asked"), _thread(8, "stepped")],
        "elsewhere": [{"tid": 9, "system_call": 230}, {"tid": 10, "system_call": None}],
    }
    return {
        "output": "spin.clew",
        "mode": "counts",
        "budget": None,
        "is_paused": False,
        "include": [],
        "exclude": [],
        "processes": [process],
    } | changes


def test_stopped_threads_have_their_registers() -> None:
    assert list(iter_lines("status", _status())) == [
        "recording spin.clew, mode counts",
        "process 7 (/tmp/spin) is held",
        "  breakpoint 0x401136  spin!work",
        "  thread 7 paused at 0x401136  spin!work",
        "       rax 0x0000000000000007    rip 0x0000000000401136",
        "  thread 8 stepped to 0x401136  spin!work",
        "       rax 0x0000000000000007    rip 0x0000000000401136",
        "  thread 9 waits in clock_nanosleep",
        "  thread 10 runs",
    ]


def test_a_step_tells_the_registers_of_what_moved() -> None:
    lines = list(iter_lines("step", _status()))
    at = lines.index("  thread 8 stepped to 0x401136  spin!work")
    assert [number for number, line in enumerate(lines) if "rax" in line] == [at + 1]


def test_a_call_that_nobody_wrote_is_not_named() -> None:
    status = _status()
    status["processes"][0]["elsewhere"] = [{"tid": 9, "system_call": 219}]
    assert list(iter_lines("status", status))[-1] == "  thread 9 waits in a system call that a stop interrupted"


def test_the_mode_is_called_as_it_was_told() -> None:
    def first(**changes: Any) -> str:
        return next(iter_lines("status", _status(**changes)))

    assert first(mode="full") == "recording spin.clew, mode full"
    assert first(mode="full", budget=4_000_000) == "recording spin.clew, mode auto, at most 4 MB/s of order"
    assert first(mode="full", budget=0) == "recording spin.clew, mode auto, at most 0 MB/s of order"


def test_the_status_says_what_is_recorded() -> None:
    lines = list(iter_lines("status", _status(include=["libc.so.6", "spin\x1b"], exclude=["everything"])))
    assert lines[1:3] == [
        "included, the last one last: libc.so.6, spin\\x1b",
        "excluded, the last one last: everything",
    ]


@pytest.mark.parametrize(("n", "pieces"), [(0, "0 pieces"), (1, "1 piece")])
def test_a_filter_says_what_it_is_of(n: int, pieces: str) -> None:
    said = f"exclude: {pieces} of code that is loaded now, and what is loaded later"
    assert list(iter_lines("exclude", {"places": n})) == [said]


@pytest.mark.parametrize("arguments", [["control", "spin", "status"], ["attach", "spin"]])
def test_what_is_no_process_id_is_told_alike(arguments: list[str], capsys: Captured) -> None:
    assert main(arguments) == 2
    assert "spin: not a process id; give the number that `ps` or `pgrep` shows" in capsys.readouterr().err
