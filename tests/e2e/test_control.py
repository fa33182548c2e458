"""A running recording is told to hold, step, leave or end its process.

Nothing of that changes what the program does, or what is counted.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from clew.binary.architectures.x86_64 import X86_64
from clew.binary.disassembly import disassemble
from clew.errors import ControlError
from tests.e2e import runs
from tests.e2e.attaching import has_shared_memory, wait_for
from tests.e2e.controlled import Controlled, control, control_json, controlled

MODES = ("coverage", "counts", "full")


@pytest.fixture
def program(programs_to_attach: Path) -> Path:
    return programs_to_attach / "controlled"


def executions_of(trace: Path, function: str) -> int:
    """How often a function was entered."""
    recorded = runs.read(trace)
    blocks = {
        row["block_id"]
        for row in recorded.trace.blocks.to_pylist()
        if row["symbol"] == function and row["symbol_offset"] == 0
    }
    return sum(row["executions"] for row in recorded.trace.counts.to_pylist() if row["block_id"] in blocks)


def finish_well(target: Controlled) -> None:
    """End the program's input: it did everything right, and clew complains of nothing."""
    status, output, said = target.finish()
    assert (status, said) == (0, ""), said
    assert output.endswith("good\n")


@pytest.mark.parametrize("mode", MODES)
def test_threads_stop_and_go_on(program: Path, tmp_path: Path, mode: str) -> None:
    with controlled(program, tmp_path / "out.clew", "--mode", mode) as target:
        for number in (3, 4):
            status = target.pause_while_it_reads()
            assert status["is_held"]
            assert len(status["threads"]) == 2, "those that compute"
            assert [one["system_call"] for one in status["elsewhere"]] == [0], "the first one reads"
            where = {tid: thread["registers"] for tid, thread in target.stopped().items()}
            target.tell(str(number))
            wait_for(lambda: len(target.stopped()) == 3)
            after = {tid: thread["registers"] for tid, thread in target.stopped().items()}
            assert {tid: after[tid] for tid in where} == where
            assert not target.do("continue")["is_held"]
            target.read_until(f"did {number}\n".encode())
        finish_well(target)
    assert mode == "coverage" or executions_of(tmp_path / "out.clew", "counted") == 7
    runs.read(tmp_path / "out.clew")


@pytest.mark.parametrize("mode", MODES)
def test_steps_follow_the_instructions(program: Path, tmp_path: Path, mode: str) -> None:
    """Each step ends where the instruction leads, by an independent decoder and what is on the stack."""
    with controlled(program, tmp_path / "out.clew", "--mode", mode) as target:
        thread = target.stop_at("outer", "2")
        assert thread["symbol"].endswith("!outer")
        with open(f"/proc/{target.target_pid}/mem", "rb", buffering=0) as memory:
            for _ in range(60):
                registers = thread["registers"]
                code = os.pread(memory.fileno(), 15, registers["rip"])
                instruction = disassemble(code, registers["rip"], X86_64)[0]
                behind = registers["rip"] + len(instruction.code)
                name, _, operand = instruction.text.partition(" ")
                expected, stack = {behind}, registers["rsp"]
                if name == "ret":
                    expected = {int.from_bytes(os.pread(memory.fileno(), 8, stack), "little")}
                    stack += 8
                elif name == "call" and operand.startswith("0x"):
                    expected, stack = {int(operand, 16)}, stack - 8
                elif name.startswith("j") and operand.startswith("0x"):
                    expected = {int(operand, 16)} if name == "jmp" else {behind, int(operand, 16)}
                elif name in ("call", "jmp"):
                    break
                elif name == "push":
                    stack -= 8
                elif name == "pop":
                    stack += 8
                target.do("step", tid=thread["tid"])
                thread = target.wait_for_stop("stepped")
                assert thread["registers"]["rip"] in expected, instruction.text
                assert name not in ("ret", "call", "push") or thread["registers"]["rsp"] == stack, instruction.text
        target.do("continue")
        target.read_until(b"did 2\n")
        finish_well(target)
    assert mode == "coverage" or executions_of(tmp_path / "out.clew", "counted") == 2
    runs.read(tmp_path / "out.clew")


def test_a_step_over_a_call_ends_behind_it(program: Path, tmp_path: Path) -> None:
    with controlled(program, tmp_path / "out.clew") as target:
        thread = target.stop_at("recursive", "r")
        stack = thread["registers"]["rsp"]
        passed = []
        while thread["registers"]["rsp"] <= stack:
            passed.append((thread["symbol"].partition("!")[2].partition("+")[0], thread["registers"]["rsp"]))
            target.do("next", tid=thread["tid"])
            thread = target.wait_for_stop("stepped")
        # Its own frame alone: what it calls, itself four times, ran to its end each time.
        assert {name for name, _ in passed} == {"recursive"}
        assert min(rsp for _, rsp in passed) >= stack - 64
        target.do("continue")
        target.read_until(b"recursive 11\n")
        finish_well(target)
    assert executions_of(tmp_path / "out.clew", "recursive") == 5


@pytest.mark.parametrize("mode", MODES)
def test_every_call_of_a_function_stops(program: Path, tmp_path: Path, mode: str) -> None:
    with controlled(program, tmp_path / "out.clew", "--mode", mode) as target:
        target.tell("50")
        target.read_until(b"did 50\n")
        target.do("break", place="counted")
        target.tell("3")
        seen = []
        for _ in range(3):
            seen.append(target.wait_for_stop("breakpoint")["registers"]["rdi"])
            target.do("continue")
        target.read_until(b"did 3\n")
        assert seen == [0, 1, 2]
        target.do("delete", place="counted")
        target.tell("20")
        target.read_until(b"did 20\n")
        finish_well(target)
    assert mode == "coverage" or executions_of(tmp_path / "out.clew", "counted") == 73
    runs.read(tmp_path / "out.clew")


def test_a_breakpoint_holds_in_children(program: Path, tmp_path: Path) -> None:
    with controlled(program, tmp_path / "out.clew") as target:
        target.do("break", place="outer")
        target.tell("f")
        child = 0

        def has_stopped() -> bool:
            nonlocal child
            for process in control_json(target.target_pid, "status")["processes"]:
                if process["pid"] != target.target_pid and process["threads"]:
                    child = process["pid"]
            return child != 0

        wait_for(has_stopped)
        wait_for(lambda: control(child, "continue").status == 0)
        target.read_until(b"child 17\n")
        target.do("delete", place="outer")
        finish_well(target)


def test_what_is_recorded_changes_while_it_runs(program: Path, tmp_path: Path) -> None:
    with controlled(program, tmp_path / "out.clew") as target:
        for what, n_calls in [
            ((), 10),
            (("exclude", "controlled!counted"), 200),
            (("include", "controlled!counted"), 3),
            (("only", "libc.so.6"), 400),
            (("include", "controlled"), 7),
        ]:
            if what:
                assert control(target.target_pid, *what).status == 0
            target.tell(str(n_calls))
            target.read_until(f"did {n_calls}\n".encode())
        finish_well(target)
    assert executions_of(tmp_path / "out.clew", "counted") == 20
    assert executions_of(tmp_path / "out.clew", "outer") == 220
    recorded = runs.read(tmp_path / "out.clew")
    assert recorded.trace.manifest.exclude == ["controlled!counted", "everything"]
    changes = [row for row in recorded.trace.events.to_pylist() if row["kind"] == "recording_changed"]
    assert len(changes) >= 4


def test_leaving_while_it_is_held(program: Path, tmp_path: Path) -> None:
    with controlled(program, tmp_path / "out.clew") as target:
        target.tell("5")
        target.read_until(b"did 5\n")
        target.do("break", place="counted")
        target.do("pause")
        target.do("detach")
        assert not has_shared_memory(target.target_pid)
        target.tell("6")
        target.read_until(b"did 6\n")
        _, output, _ = target.finish()
        assert output.endswith("good\n")
    assert executions_of(tmp_path / "out.clew", "counted") == 5


def test_killing(program: Path, tmp_path: Path) -> None:
    with controlled(program, tmp_path / "out.clew") as target:
        target.do("pause")
        assert control(target.target_pid, "kill").status == 0
        status, _, _ = target.finish()
    assert status == 128 + signal.SIGKILL
    (process,) = runs.read(tmp_path / "out.clew").summary["processes"]
    assert process["exit"] == {"signal": signal.SIGKILL}


def test_the_target_goes_on_when_clew_is_killed(program: Path, tmp_path: Path) -> None:
    with controlled(program, tmp_path / "out.clew") as target:
        target.do("pause")
        target.tell("6")
        wait_for(lambda: len(target.stopped()) == 3)
        target.process.send_signal(signal.SIGKILL)
        target.read_until(b"did 6\n")


def test_before_the_first_instruction(program: Path, tmp_path: Path) -> None:
    with controlled(program, tmp_path / "out.clew", "--pause", "60") as target:
        assert control_json(target.target_pid, "status")["is_paused"]
        refused = control(target.target_pid, "step")
        assert refused.status == 1
        assert b"waits in front of its first instruction: pause it" in refused.stderr
        (thread,) = target.do("pause")["threads"]
        assert thread["symbol"].startswith("ld-linux")
        assert control(target.target_pid, "break", "main").status == 0
        target.do("continue")
        assert target.wait_for_stop("breakpoint")["symbol"].endswith("!main")
        target.do("continue")
        target.read_until(b"ready\n")
        finish_well(target)


def test_a_target_that_waits_at_its_start_goes_on_when_clew_is_killed(program: Path, tmp_path: Path) -> None:
    with controlled(program, tmp_path / "out.clew", "--pause", "600") as target:
        assert control_json(target.target_pid, "status")["is_paused"]
        target.process.send_signal(signal.SIGKILL)
        target.read_until(b"ready\n")


def test_what_is_refused(program: Path, tmp_path: Path) -> None:
    with controlled(program, tmp_path / "out.clew") as target:
        pid = target.target_pid
        for words, said in [
            (("step",), "runs"),
            (("break", "no_such_function"), "nothing that process"),
            (("break", "0xffffffffffffffff"), "no program has code there"),
            (("delete", "counted"), "no breakpoint"),
            (("include", ""), "empty"),
        ]:
            run = control(pid, *words)
            assert run.status in (1, 2)
            assert said in run.stderr.decode()
            assert run.stderr.count(b"\n") == 1
        assert control(pid, "break").status == 2
        assert control(pid, "pause", "everything").status == 2
        run = control(os.getpid(), "pause")
        assert (run.status, run.stdout) == (1, b"")
        assert b"no recording of yours has it" in run.stderr
        target.pause_while_it_reads()
        with pytest.raises(ControlError, match="waits in a system call"):
            target.do("step", tid=pid)
        with pytest.raises(ControlError, match=f"process {pid} has no thread 1$"):
            target.do("next", tid=1)
        target.do("continue")
        finish_well(target)


def test_a_call_that_a_stop_interrupted_is_told_as_what_it_is(tmp_path: Path) -> None:
    script = "import time; print('ready', flush=True); time.sleep(1000)"
    with controlled(Path(sys.executable), tmp_path / "out.clew", arguments=["-c", script]) as target:
        wait_for(lambda: "waits in clock_nanosleep" in control(target.target_pid, "status").stdout.decode())
        for command in ("pause", "continue") * 2:
            assert "waits in clock_nanosleep" in control(target.target_pid, command).stdout.decode()
