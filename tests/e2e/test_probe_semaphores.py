"""Static probes that nobody comes to unless their counter is raised: it is so while they are probed, and no longer."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

import clew
from clew.sessions.probes.specs import ContextField
from tests.e2e import runs
from tests.e2e.probed_program import PROBES, at_once, points, started
from tests.programs.build import build_plain

NOBODY = "0 0"


@pytest.fixture(params=["-no-pie", "-pie"])
def shop(request: pytest.FixtureRequest) -> Path:
    return build_plain(PROBES / "probed_semaphores.c", "-O1", "-fPIE", request.param)


def counters(said: str) -> str:
    return " ".join(said.split()[:2])


def test_raised_while_probed(shop: Path) -> None:
    with started(shop) as running:
        assert running.ask("turn") == "0 0 0 0"
        with at_once(running.pid, points("usdt:shop:sold", fields=(ContextField("n", "$rdi"),))) as one:
            said, events = one.ask(running, "turn")
            assert said == "1 0 3 0" and [event["n"] for event in events] == [0, 1, 2]
        assert running.ask("turn") == "0 0 3 0"
        with at_once(running.pid, points("usdt:shop:*")) as one:
            said, events = one.ask(running, "turn")
            assert said == "1 1 6 3" and len(events) == 6
        assert running.ask("turn") == "0 0 6 3"
        assert running.end() == 0


def test_one_of_two_that_want_it_goes(shop: Path) -> None:
    specs = [*points("usdt:shop:sold"), *points("usdt:shop:so*")]
    with started(shop) as running, at_once(running.pid, specs) as one:
        assert counters(running.ask("turn")) == "1 0"
        one.target.remove([0])
        assert counters(running.ask("turn")) == "1 0"
        one.target.remove([1])
        assert counters(running.ask("turn")) == NOBODY


def test_what_the_program_counts_itself_stays(shop: Path) -> None:
    with started(shop) as running:
        assert counters(running.ask("raise")) == "1 0"
        with at_once(running.pid, points("usdt:shop:sold")):
            assert counters(running.ask("raise")) == "3 0"
            assert counters(running.ask("lower")) == "2 0"
        assert counters(running.ask("turn")) == "1 0"
        assert counters(running.ask("lower")) == NOBODY


def test_children_of_forks(shop: Path) -> None:
    """One that is made while it is raised has it raised, and is left as the process is; an older one is as it was."""
    with started(shop) as running:
        running.ask("fork")
        with at_once(running.pid, points("usdt:shop:sold")):
            assert counters(running.ask("turn")) == "1 0"
            assert counters(running.ask("child turn")) == NOBODY
            running.ask("fork")
            assert counters(running.ask("child turn")) == "1 0"
        assert counters(running.ask("turn")) == NOBODY
        assert counters(running.ask("child turn")) == NOBODY


def test_from_the_first_instruction(shop: Path) -> None:
    """And in a program that clew starts."""
    command = [*runs.CLEW, "trace", "-c", str(shop), "--probe", "usdt:shop:lost", "--format", "text"]
    done = subprocess.run(
        command, env=runs.environment(), input="turn\nturn\n", capture_output=True, text=True, timeout=60, check=True
    )
    assert "0 1 0 3\n0 1 0 6\n" in done.stdout
    assert sum("lost" in line and "ip" in line for line in (done.stdout + done.stderr).splitlines()) == 6


def test_lowered_where_clew_is_killed(shop: Path) -> None:
    """In the process, and in the child that was made meanwhile."""
    with started(shop) as running:
        command = [*runs.CLEW, "trace", "-p", str(running.pid), "--probe", "usdt:shop:*", "--format", "text"]
        with subprocess.Popen(command, env=runs.environment(), stdout=subprocess.DEVNULL) as tracer:
            runs.wait_until(lambda: counters(running.ask("turn")) == "1 1", seconds=20)
            running.ask("fork")
            assert counters(running.ask("child turn")) == "1 1"
            tracer.kill()
        runs.wait_until(lambda: counters(running.ask("turn")) == NOBODY, seconds=5)
        assert counters(running.ask("child turn")) == NOBODY
        assert running.end() == 0


def test_in_processes_that_are_followed(shop: Path, tmp_path: Path) -> None:
    """And in children of theirs, which have it raised since they were made."""
    with clew.spawn([shop], stdin=subprocess.PIPE, stdout=subprocess.PIPE, output=tmp_path / "shop.clew") as session:
        told, said = session.stdin, session.stdout
        assert told is not None and said is not None

        def ask(line: str) -> str:
            told.write(f"{line}\n".encode())
            told.flush()
            return said.readline().decode().strip()

        sold = session.probe("usdt:shop:sold", capture="n=$rdi")
        again = session.probe("usdt:shop:sold", name="again")
        session.resume()
        assert said.readline() == b"ready\n"
        assert ask("turn") == "1 0 3 0"
        ask("fork")
        assert counters(ask("child turn")) == "1 0"
        again.remove()
        assert counters(ask("turn")) == "1 0"
        sold.remove()
        assert counters(ask("turn")) == counters(ask("child turn")) == NOBODY
        told.close()
        assert session.wait(60) == 0
        assert sold.read()["n"].to_pylist()[:3] == [0, 1, 2]


def test_left_by_the_engine(shop: Path) -> None:
    with started(shop) as running:
        command = [*runs.CLEW, "trace", "-p", str(running.pid), "--probe", "usdt:shop:*", "--backend", "engine"]
        with subprocess.Popen(command, env=runs.environment(), stdout=subprocess.DEVNULL) as tracer:
            runs.wait_until(lambda: counters(running.ask("turn")) == "1 1", seconds=20)
            tracer.send_signal(signal.SIGINT)
            assert tracer.wait(60) == 0
        assert counters(running.ask("turn")) == NOBODY
        assert running.end() == 0
