"""Attaching to running programs, and leaving them as they were."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.e2e import runs
from tests.e2e.attaching import Target, attach, attaching, end_attaching, start


@pytest.mark.parametrize("mode", ["counts", "coverage"])
def test_one_thread(programs_to_attach: Path, tmp_path: Path, mode: str) -> None:
    with start(programs_to_attach / "busy") as target:
        before = target.look()
        run = attach(target.pid, tmp_path / "out.clew", "--mode", mode)
        assert (run.status, run.stdout) == (0, b"")
        assert target.look() == before
        recorded = runs.read(tmp_path / "out.clew")
        assert [thread["end"] for thread in recorded.trace.threads.to_pylist()] == ["detached"]
        assert target.end(number=signal.SIGTERM) == (0, "ready\ngood\n")
    if mode == "counts":
        assert recorded.totals["instructions"] > 1_000_000
    assert recorded.summary["cpu"]["target_seconds"] > 0
    process = recorded.summary["processes"][0]
    assert (process["pid"], process["parent_pid"]) == (target.pid, os.getpid())
    functions = set(recorded.trace.blocks["symbol"].to_pylist())
    assert {"main", "step"} <= functions


@pytest.mark.long
@pytest.mark.parametrize("name", ["threads", pytest.param("threads.static", marks=pytest.mark.stress)])
def test_many_threads_again_and_again(programs_to_attach: Path, tmp_path: Path, name: str) -> None:
    with start(programs_to_attach / name) as target:
        for cycle in range(2):
            run = attach(target.pid, tmp_path / f"{cycle}.clew", seconds=0.2)
            assert run.status == 0, run.stderr
            assert not target.has_runtime()
        status, output = target.end(number=signal.SIGTERM)
    assert (status, output.splitlines()[-1]) == (0, "good")
    assert "did not run" not in output
    for cycle in range(2):
        recorded = runs.read(tmp_path / f"{cycle}.clew")
        assert {thread["end"] for thread in recorded.trace.threads.to_pylist()} <= {"detached", "exit"}
        assert recorded.totals["instructions"] > 0


def test_registers_control_words_and_gs_base(programs_to_attach: Path, tmp_path: Path) -> None:
    with start(programs_to_attach / "registers") as target:
        before = target.look()
        for cycle in range(8):
            assert attach(target.pid, tmp_path / f"{cycle}.clew", "-q", seconds=0.02).status == 0
            assert target.look() == before
        assert target.end(number=signal.SIGTERM) == (0, "ready\ngood\n")
    runs.read(tmp_path / "7.clew")


@pytest.mark.long
def test_threads_that_wait_go_on_waiting(programs_to_attach: Path, tmp_path: Path) -> None:
    """However often they are disturbed, no wait fails, and none takes longer."""
    with start(programs_to_attach / "waiting", "8") as target:
        before = target.look()
        for cycle in range(4):
            assert attach(target.pid, tmp_path / f"{cycle}.clew", seconds=0.2).status == 0
            assert target.look() == before
        status, output = target.end(stdin=b"x")
    assert (status, output.splitlines()[-1]) == (0, "good"), output


@contextmanager
def busy_machine() -> Iterator[None]:
    """More work than there are processors: threads are left before they ran under the runtime at all."""
    workers = [subprocess.Popen(["sh", "-c", "while :; do :; done"]) for _ in range(2 * (os.cpu_count() or 1))]
    try:
        yield
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()


@pytest.mark.long
def test_threads_that_wait_are_left_at_once(programs_to_attach: Path, tmp_path: Path) -> None:
    with start(programs_to_attach / "waiting", "12") as target:
        # Not until its waits are over, which is seconds later.
        with busy_machine():
            for cycle in range(4):
                assert attach(target.pid, tmp_path / f"{cycle}.clew", seconds=0.001).status == 0
        status, output = target.end(stdin=b"x")
    assert (status, output.splitlines()[-1]) == (0, "good"), output


@pytest.mark.long
def test_waits_that_end_while_recorded(programs_to_attach: Path, tmp_path: Path) -> None:
    with start(programs_to_attach / "waiting", "4") as target:
        with attaching(target.pid, tmp_path / "out.clew") as clew:
            target.wait_for(target.is_attached)
            status, output = target.end(stdin=b"x")
            _, said = clew.communicate(timeout=60)
        assert (status, output.splitlines()[-1]) == (0, "good"), output
    assert clew.returncode == 0, said
    runs.read(tmp_path / "out.clew")


def test_inside_a_signal_handler(programs_to_attach: Path, tmp_path: Path) -> None:
    with start(programs_to_attach / "handling") as target:
        before = target.look()
        assert attach(target.pid, tmp_path / "1.clew").status == 0
        assert target.look() == before
        # Once more, and the handler returns while it is recorded.
        with attaching(target.pid, tmp_path / "2.clew"):
            target.wait_for(target.is_attached)
            assert target.end(stdin=b"x") == (0, "ready\ngood\n")


def test_a_handler_left_natively(programs_to_attach: Path, tmp_path: Path) -> None:
    with start(programs_to_attach / "handling") as target:
        assert attach(target.pid, tmp_path / "1.clew").status == 0
        assert target.end(stdin=b"x") == (0, "ready\ngood\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_told_to_leave(programs_to_attach: Path, tmp_path: Path, number: int) -> None:
    with start(programs_to_attach / "busy") as target:
        before = target.look()
        with attaching(target.pid, tmp_path / "out.clew") as clew:
            target.wait_for(target.is_attached)
            status, said = end_attaching(clew, number)
        assert status == 0, said
        assert f"recording until Ctrl-C or SIGTERM to clew (kill {clew.pid})\n" in said
        assert target.look() == before
        assert target.end(number=signal.SIGTERM) == (0, "ready\ngood\n")
    runs.read(tmp_path / "out.clew")


def test_told_to_leave_in_the_background(programs_to_attach: Path, tmp_path: Path) -> None:
    """A shell that runs a script starts its background jobs with SIGINT ignored: Ctrl-C is no way out."""

    def ignore() -> None:
        signal.signal(signal.SIGINT, signal.SIG_IGN)

    with start(programs_to_attach / "busy") as target:
        with attaching(target.pid, tmp_path / "out.clew", preexec_fn=ignore) as clew:
            target.wait_for(target.is_attached)
            clew.send_signal(signal.SIGINT)
            status, said = end_attaching(clew, signal.SIGTERM)
        assert status == 0, said
        assert f"recording until SIGTERM to clew (kill {clew.pid})\n" in said
        assert target.end(number=signal.SIGTERM) == (0, "ready\ngood\n")
    runs.read(tmp_path / "out.clew")


def test_a_controller_that_is_killed(programs_to_attach: Path, tmp_path: Path) -> None:
    with start(programs_to_attach / "busy") as target:
        before = target.look()
        with attaching(target.pid, tmp_path / "out.clew") as clew:
            target.wait_for(target.is_attached)
            refused = attach(target.pid, tmp_path / "refused.clew")
            assert refused.status == 1
            assert f"is recorded by clew already (process {clew.pid})".encode() in refused.stderr
            clew.kill()
            clew.wait(60)
        for number in range(2):
            again = attach(target.pid, tmp_path / f"{number}.clew")
            assert again.status == 0, again.stderr
            assert (b"took out the runtime of a clew that was killed" in again.stderr) == (number == 0)
            assert target.look() == before
            runs.read(tmp_path / f"{number}.clew")
        assert target.end(number=signal.SIGTERM) == (0, "ready\ngood\n")


def test_a_process_that_ends_while_recorded(programs_to_attach: Path, tmp_path: Path) -> None:
    with start(programs_to_attach / "threads") as target, attaching(target.pid, tmp_path / "out.clew") as clew:
        target.wait_for(target.is_attached)
        assert target.end(number=signal.SIGTERM)[0] == 0
        _, said = clew.communicate(timeout=60)
        assert (clew.returncode, b"ended" in said) == (0, True)
    # What it used only its parent is told.
    assert runs.read(tmp_path / "out.clew").summary["cpu"].keys() == {"controller_seconds"}


def test_a_stopped_process_stays_stopped(programs_to_attach: Path, tmp_path: Path) -> None:
    with start(programs_to_attach / "threads") as target:
        os.kill(target.pid, signal.SIGSTOP)
        target.wait_for(lambda: target.status("State").startswith("T"))
        assert attach(target.pid, tmp_path / "out.clew").status == 0
        assert not target.has_runtime()
        target.wait_for(lambda: target.status("State").startswith("T (stopped"))
        os.kill(target.pid, signal.SIGCONT)
        assert target.end(number=signal.SIGTERM)[0] == 0
    runs.read(tmp_path / "out.clew")


@pytest.fixture(params=[(), ("polls",)], ids=["workers", "polls"])
def ringing(programs_to_attach: Path, request: pytest.FixtureRequest) -> Iterator[Target]:
    """A program for which the kernel has tasks of its own in the process."""
    with start(programs_to_attach / "ring", *request.param, ready=b"\n") as target:
        if b"no ring" in target.output:
            pytest.skip("io_uring is not to be had here")
        yield target


def test_tasks_of_the_kernel_are_left_alone(ringing: Target, tmp_path: Path) -> None:
    assert int(ringing.status("Threads")) > 1
    before = ringing.look()
    for cycle in range(2):
        run = attach(ringing.pid, tmp_path / f"{cycle}.clew", seconds=0.1)
        assert run.status == 0, run.stderr
        assert ringing.look() == before
        assert {row["tid"] for row in runs.read(tmp_path / f"{cycle}.clew").trace.threads.to_pylist()} == {ringing.pid}
    assert ringing.end(stdin=b"x") == (0, "ready\ngood\n")


def test_told_to_leave_while_attaching(programs_to_attach: Path, tmp_path: Path) -> None:
    with start(programs_to_attach / "busy") as target:
        before = target.look()
        for cycle in range(5):
            with attaching(target.pid, tmp_path / f"{cycle}.clew", "-q") as clew:
                target.wait_for(lambda: target.status("TracerPid") != "0" or target.has_runtime(), pause_seconds=0)
                status, said = end_attaching(clew)
            assert (status, said) in ((0, ""), (1, f"clew: process {target.pid}: let go, as told\n"))
            assert target.look() == before
        assert target.end(number=signal.SIGTERM) == (0, "ready\ngood\n")


def test_a_program_whose_first_thread_has_ended(programs_to_attach: Path, tmp_path: Path) -> None:
    with start(programs_to_attach / "leaderless") as target:
        assert target.status("State").startswith("Z")
        run = attach(target.pid, tmp_path / "out.clew")
        assert run.status == 0, run.stderr
        assert target.end(number=signal.SIGTERM) == (0, "ready\ngood\n")
    assert runs.read(tmp_path / "out.clew").totals["instructions"] > 0


@pytest.mark.long
def test_a_process_in_another_pid_namespace(programs_to_attach: Path, tmp_path: Path) -> None:
    command = ["unshare", "--pid", "--fork", "--kill-child", str(programs_to_attach / "threads")]
    if subprocess.run([*command[:-1], "true"], capture_output=True).returncode != 0:
        pytest.skip("only root can make a pid namespace")
    with start(*command) as parent:
        pid = int(Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()[0])
        for cycle in range(2):
            run = attach(pid, tmp_path / f"{cycle}.clew")
            assert run.status == 0, run.stderr
            assert b"memfd:clew" not in Path(f"/proc/{pid}/maps").read_bytes()
        os.kill(pid, signal.SIGTERM)
        status, output = parent.end()
        assert (status, output.splitlines()[-1]) == (0, "good"), output
    for cycle in range(2):
        runs.read(tmp_path / f"{cycle}.clew")


def test_a_parent_that_waits_in_vfork(programs_to_attach: Path, tmp_path: Path) -> None:
    with start(programs_to_attach / "vforking") as target:
        run = attach(target.pid, tmp_path / "out.clew")
        assert run.status == 1
        assert b"can't be stopped" in run.stderr and run.stderr.count(b"\n") == 1
        assert not (tmp_path / "out.clew").exists()
        assert target.end(stdin=b"x") == (0, "ready\ngood\n")
