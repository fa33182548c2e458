"""Children of an attached process: recorded with it from their first instruction, and left with it."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

import clew
from tests.e2e import runs
from tests.e2e.attaching import (
    attach,
    attaching,
    end_attaching,
    find_descendants,
    has_shared_memory,
    nobody_has_runtime,
    start,
)

SHELL_LOOP = "trap 'exit 7' TERM; echo ready; while :; do (exit 3); /bin/true; /bin/echo x | /bin/cat; done"


def processes_of(trace: Path) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = runs.read(trace).summary["processes"]
    return found


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize("mode", ["counts", pytest.param("coverage", marks=pytest.mark.stress)])
@pytest.mark.long
def test_a_shell_that_runs_commands(tmp_path: Path, mode: str) -> None:
    with start("bash", "-c", SHELL_LOOP) as target:
        before = target.look()
        for cycle in range(3):
            trace = tmp_path / f"{cycle}.clew"
            with attaching(target.pid, trace, "--mode", mode) as clew_process:
                target.wait_for(target.is_attached)
                target.read_what_is_there()
                # The first of these may be of a round that began before.
                target.read_until(b"x\n" * (target.output.count(b"x\n") + 3))
                status, said = end_attaching(clew_process)
            assert (status, "runtime in it" in said) == (0, False), said
            target.wait_for(lambda: nobody_has_runtime(target))
            assert target.look().mappings == before.mappings
            processes = processes_of(trace)
            assert processes[0]["pid"] == target.pid
            children = [process for process in processes if process["parent_pid"] == target.pid]
            assert {"true", "echo", "cat"} <= {Path(child["executable"]).name for child in children}
            ended = [child["exit"] for child in children if child["exit"] != {"code": None}]
            assert {"code": 3} in ended and {"code": 0} in ended
        lines = target.output.count(b"x\n")
        target.read_until(b"x\n" * (lines + 1))
        assert target.end(number=signal.SIGTERM)[0] == 7


@pytest.mark.long
def test_children_made_in_every_way_left_again_and_again(programs_to_attach: Path, tmp_path: Path) -> None:
    """The whole family at once: it is attached to before the workers are made."""
    seen: set[int] = set()
    with start(programs_to_attach / "family", "wait") as target:
        assert target.process.stdin is not None

        def are_many() -> bool:
            seen.update(find_descendants(target.pid))
            return len(seen) > 12

        with attaching(target.pid, tmp_path / "all.clew") as clew_process:
            target.wait_for(target.is_attached)
            target.process.stdin.write(b"g")
            target.process.stdin.flush()
            target.wait_for(are_many)
            status, said = end_attaching(clew_process)
        assert (status, "runtime in it" in said) == (0, False), said
        assert nobody_has_runtime(target), said
        processes = processes_of(tmp_path / "all.clew")
        assert len(processes) > 10
        known = {process["pid"] for process in processes}
        assert all(process["parent_pid"] in known for process in processes[1:])
        for cycle in range(6):
            # Each worker on its own, as it is: in a fork, in an execve, or between them.
            for worker in find_descendants(target.pid)[:1]:
                run = attach(worker, tmp_path / f"{cycle}.clew", "-q", seconds=0.05 * cycle + 0.01)
                assert (run.status, run.stderr) in ((0, b""), (1, run.stderr)), run.stderr
                assert b"runtime in it" not in run.stderr
                assert nobody_has_runtime(target)
        status, output = target.end(number=signal.SIGTERM)
        assert (status, output) == (0, "ready\ngood\n")


def test_no_follow(tmp_path: Path) -> None:
    with start("bash", "-c", SHELL_LOOP) as target:
        assert attach(target.pid, tmp_path / "out.clew", "--no-follow").status == 0
        assert [process["pid"] for process in processes_of(tmp_path / "out.clew")] == [target.pid]
        trace = clew.attach(target.pid, duration=0.2, follow=False, output=tmp_path / "python.clew")
        assert trace.processes["pid"].to_pylist() == [target.pid]
        assert target.end(number=signal.SIGTERM)[0] == 7


def test_a_process_that_entered_through_execve_is_left(programs_to_attach: Path, tmp_path: Path) -> None:
    with start(
        "sh", "-c", f"echo started; read line; exec {programs_to_attach / 'busy'}", ready=b"started\n"
    ) as target:
        assert target.process.stdin is not None
        with attaching(target.pid, tmp_path / "out.clew") as clew_process:
            target.wait_for(target.is_attached)
            target.process.stdin.write(b"\n")
            target.process.stdin.flush()
            target.read_until(b"ready\n")
            target.wait_for(target.is_attached)
            status, said = end_attaching(clew_process)
        assert status == 0, said
        assert not target.has_runtime()
        rows = processes_of(tmp_path / "out.clew")
        assert [Path(row["executable"]).name for row in rows][-1] == "busy"
        assert {row["pid"] for row in rows} == {target.pid}
        ends = runs.read(tmp_path / "out.clew").trace.threads["end"].to_pylist()
        assert ends[-1] == "detached"
        before = target.look()
        assert attach(target.pid, tmp_path / "again.clew").status == 0
        assert target.look() == before
        assert target.end(number=signal.SIGTERM) == (0, "started\nready\ngood\n")


@pytest.mark.parametrize("is_told", [False, True])
def test_children_that_outlive_the_attached_process(programs_to_attach: Path, tmp_path: Path, is_told: bool) -> None:
    """The session goes on with them, until they end or it is told to leave."""
    script = f"echo ready; read line; {programs_to_attach / 'busy'} > {tmp_path / 'busy'} & echo $!"
    with start("sh", "-c", script) as target:
        with attaching(target.pid, tmp_path / "out.clew") as clew_process:
            target.wait_for(target.is_attached)
            status, output = target.end(stdin=b"\n")
            child = int(output.splitlines()[-1])
            try:
                target.wait_for(lambda: (tmp_path / "busy").read_bytes() == b"ready\n")
                assert status == 0
                assert clew_process.poll() is None
                assert has_shared_memory(child)
                if is_told:
                    status, said = end_attaching(clew_process)
                    assert not has_shared_memory(child)
                    assert f"process {target.pid} ended" in said and "1 of its children detached" in said
                os.kill(child, signal.SIGTERM)
                target.wait_for(lambda: not is_running(child))
            finally:
                if is_running(child):
                    os.kill(child, signal.SIGKILL)
            if not is_told:
                _, text = clew_process.communicate(timeout=60)
                status, said = clew_process.returncode, text.decode()
        assert status == 0, said
    assert (tmp_path / "busy").read_text() == "ready\ngood\n"
    first, *_, last = processes_of(tmp_path / "out.clew")
    assert (first["exit"], Path(last["executable"]).name) == ({"code": 0}, "busy")


def test_a_process_that_shares_the_memory_keeps_both_under_the_runtime(
    programs_to_attach: Path, tmp_path: Path
) -> None:
    with start(programs_to_attach / "sharing") as target:
        assert target.process.stdin is not None
        with attaching(target.pid, tmp_path / "out.clew") as clew_process:
            target.wait_for(target.is_attached)
            target.process.stdin.write(b"g")
            target.process.stdin.flush()
            target.read_until(b"shared\n")
            clew_process.send_signal(signal.SIGINT)
            target.wait_for(lambda: target.status("TracerPid") != "0")
            status, said = end_attaching(clew_process)
        assert status == 0
        assert "shares its memory with process" in said or "let go, as told" in said, said
        assert "goes on with clew's runtime in it" in said
        assert target.end(stdin=b"x") == (0, "ready\nshared\ngood\n")
