"""Every command of `clew control`, as it is typed, to a program of several threads; what was recorded is well-formed.

What each command does to the target is tested in test_control.py and test_modes.py, by what `clew control` asks.
"""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.binary.architectures.x86_64 import X86_64
from clew.binary.disassembly import DisassembledInstruction, disassemble
from clew.recording.control.client import COMMAND_ARGUMENTS
from tests.e2e import runs
from tests.e2e.attaching import has_shared_memory, wait_for
from tests.e2e.controlled import Controlled, control, control_json, controlled
from tests.e2e.test_control import executions_of, finish_well
from tests.e2e.test_modes import told_of

HOLDING = {"status", "pause", "continue", "break", "delete", "step", "next", "step-over", "mode", "budget"}
LEAVING = {"exclude", "include", "only", "break", "pause", "detach"}
KILLING = {"pause", "kill"}


@pytest.fixture
def program(programs_to_attach: Path) -> Path:
    return programs_to_attach / "controlled"


class Typed:
    """Types commands for the process of a recording, and keeps which ones."""

    def __init__(self, target: Controlled) -> None:
        self._target = target
        self.pid = target.target_pid
        self.commands: set[str] = set()

    def __call__(self, command: str, *words: str) -> str:
        """What it prints; it says nothing else and is obeyed."""
        self.commands.add(command)
        run = control(self.pid, command, *words)
        assert (run.status, run.stderr) == (0, b""), run.stderr
        return run.stdout.decode()

    def status(self) -> dict[str, Any]:
        """How the process stands."""
        self.commands.add("status")
        processes = control_json(self.pid, "status")["processes"]
        found: dict[str, Any] = next(one for one in processes if one["pid"] == self.pid)
        return found

    def stopped(self) -> dict[int, dict[str, Any]]:
        """The threads that are stopped, by their numbers."""
        return {thread["tid"]: thread for thread in self.status()["threads"]}

    def wait_for_main(self, reason: str) -> dict[str, Any]:
        """Until the first thread is stopped for this reason, and all others are, too."""
        wait_for(lambda: len(self.stopped()) == 3 and self.stopped()[self.pid]["reason"] == reason)
        return self.stopped()[self.pid]

    def call(self, n: int) -> None:
        """Have the program call its functions so often."""
        self._target.tell(str(n))
        self._target.read_until(f"did {n}\n".encode())

    def instruction_at(self, thread: dict[str, Any]) -> DisassembledInstruction:
        """What a thread executes next, by an independent decoder."""
        address = int(thread["registers"]["rip"], 16)
        with open(f"/proc/{self.pid}/mem", "rb", buffering=0) as memory:
            memory.seek(address)
            return disassemble(memory.read(15), address, X86_64)[0]


def rip_of(thread: dict[str, Any]) -> int:
    return int(thread["registers"]["rip"], 16)


def verify(trace: Path) -> None:
    """`clew verify` finds nothing, and nothing was lost."""
    run = runs.run(runs.clew_command("verify", trace))
    assert (run.status, run.stderr) == (0, b""), run.stdout
    assert b"well-formed" in run.stdout and b"lost" not in run.stdout
    runs.read(trace)


def hold_and_step(typed: Typed, target: Controlled, step_over: str) -> None:
    """Pause, continue, break, delete, step and step over a call."""
    target.wait_until_it_reads()
    assert "is held" in typed("pause")
    assert len(typed.stopped()) == 2, "those that compute; the first one reads"
    assert " runs\n" in typed("continue")
    typed("break", "outer")
    target.tell("2")
    first = typed.wait_for_main("breakpoint")
    assert first["symbol"].endswith("!outer")
    typed("delete", "outer")
    assert typed.status()["breakpoints"] == []
    others = {tid: thread["registers"] for tid, thread in typed.stopped().items() if tid != typed.pid}
    thread, n_calls = first, 0
    # To its return, each instruction but what it calls.
    while (instruction := typed.instruction_at(thread)).text != "ret":
        is_call = instruction.text.startswith("call")
        n_calls += is_call
        behind = rip_of(thread) + len(instruction.code)
        typed(step_over if is_call else "step", "--thread", str(typed.pid))
        thread = typed.wait_for_main("stepped")
        assert rip_of(thread) == behind, instruction.text
        if not is_call and n_calls == 0:
            stopped = typed.stopped()
            assert {tid: stopped[tid]["registers"] for tid in others} == others, "a step moves one thread alone"
    assert n_calls == 1, "counted"
    assert thread["registers"]["rsp"] == first["registers"]["rsp"]
    typed("continue")
    target.read_until(b"did 2\n")


def test_what_holds_and_what_chooses_the_mode(program: Path, tmp_path: Path) -> None:
    trace = tmp_path / "out.clew"
    with controlled(program, trace) as target:
        typed = Typed(target)
        hold_and_step(typed, target, "next")
        typed("mode", "full")
        typed.call(6)
        hold_and_step(typed, target, "step-over")
        typed("mode", "auto")
        assert "mode auto" in typed("status") or "at most 4 MB/s" in typed("status")
        typed("budget", "50")
        typed.call(7)
        typed("budget", "all")
        typed("mode", "counts")
        typed.call(300)
        assert typed.commands == HOLDING
        pid = typed.pid
        finish_well(target)
    verify(trace)
    assert executions_of(trace, "counted") == executions_of(trace, "outer") == 2 + 6 + 2 + 7 + 300
    assert told_of(clew.Trace(trace), "counted", pid) == 6 + 2 + 7


def test_what_chooses_the_code_and_what_leaves(program: Path, tmp_path: Path) -> None:
    trace = tmp_path / "out.clew"
    with controlled(program, trace) as target:
        typed = Typed(target)
        typed.call(10)
        assert "1 piece of code" in typed("exclude", "controlled!counted")
        typed.call(200)
        typed("include", "controlled!counted")
        typed.call(3)
        typed("only", "libc.so.6")
        typed.call(400)
        typed("include", "controlled")
        typed.call(7)
        typed("break", "counted")
        typed("pause")
        assert "goes on natively" in typed("detach")
        assert typed.commands == LEAVING
        wait_for(lambda: not has_shared_memory(typed.pid))
        typed.call(1000)
        # clew did not wait for it.
        status, output, said = target.finish()
        assert (status, said) == (128 + signal.SIGTERM, "")
        assert output.endswith("good\n")
    verify(trace)
    assert executions_of(trace, "counted") == 10 + 3 + 7
    assert executions_of(trace, "outer") == 10 + 200 + 3 + 7
    summary = runs.read(trace).summary
    (process,) = summary["processes"]
    assert summary["cpu"]["target_seconds"] > 0, "what it had used when it was left"
    assert {thread["end"] for thread in process["threads"]} == {"detached"}


def test_killing(program: Path, tmp_path: Path) -> None:
    trace = tmp_path / "out.clew"
    with controlled(program, trace) as target:
        typed = Typed(target)
        typed.call(5)
        typed("pause")
        assert "was sent SIGKILL" in typed("kill")
        assert typed.commands == KILLING
        assert target.finish()[0] == 128 + signal.SIGKILL
    verify(trace)
    assert executions_of(trace, "counted") == 5


def test_no_command_is_left_out() -> None:
    assert set(COMMAND_ARGUMENTS) == HOLDING | LEAVING | KILLING
