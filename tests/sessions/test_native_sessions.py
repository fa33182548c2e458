"""Probes in a program that runs its own code, from Python: events say what it prints, and it is as it was after."""

from __future__ import annotations

import subprocess
import threading
from collections import Counter
from pathlib import Path

import pytest

import clew
from clew.sessions.probes.probe_session import ProbeSession
from tests.e2e.probed_program import calls_program
from tests.e2e.process_code import maps_text
from tests.programs.build import SOURCES, build_plain

PROBES = SOURCES / "probes"
TURNS = 5


def test_entries_and_returns_say_what_the_program_prints() -> None:
    program = calls_program()
    with clew.probe_session([program], stdout=subprocess.PIPE) as session:
        assert repr(session) == f"<session of process {session.pid}, which runs its own code, stopped>"
        probe = session.probe("add", capture=["rdi", "reg:rsi", "int:count:counter"], function=True)
        assert {place.backend for place in probe.places} == {"jump"} and probe.places[0].role == "entry"
        session.resume()
        assert session.wait(60) == 3 == session.exit_code
        assert session.state == "ended" and session.stdout is not None
        results = [int(line.split()[0]) for line in session.stdout.read().splitlines()[:TURNS]]
    # It can be read when all is over, too.
    rows = probe.read().to_pylist()
    assert [row["event"] for row in rows] == ["add_entry", "add_exit"] * TURNS
    assert [row["sequence"] for row in rows] == [*range(2 * TURNS)]
    assert [(row["rdi"], row["rsi"], row["count"]) for row in rows[::2]] == [(n, 7, 40 + n) for n in range(TURNS)]
    assert [row["retval"] for row in rows[1::2]] == results
    assert probe.n_events == 2 * TURNS and probe.read().num_rows == 0 and session.n_lost == 0


def test_callbacks_are_called_in_the_order_of_time() -> None:
    seen: list[clew.ProbeEvent] = []
    threads: set[threading.Thread] = set()

    def note(event: clew.ProbeEvent) -> None:
        threads.add(threading.current_thread())
        seen.append(event)

    with clew.probe_session([calls_program()], stdout=subprocess.DEVNULL) as session:
        add = session.probe("add", capture="rdi", callback=note)
        session.probe("descend", capture="rdi", function=True, callback=note)
        session.resume()
        session.wait(60)
        # All of them, once that has come back.
        assert [(one.name, one["rdi"]) for one in seen[:TURNS]] == [("add", n) for n in range(TURNS)]
        assert [one.kind for one in seen[TURNS:]] == ["entry"] * 7 + ["return"] * 7
        assert [one["retval"] for one in seen[-7:]] == [n * (n + 1) // 2 for n in range(7)]
        assert [one.time_ns for one in seen] == sorted(one.time_ns for one in seen)
        assert {one.ip for one in seen[:TURNS]} == {add.places[0].address}
        assert add.n_events == TURNS and add.read().num_rows == 0
    assert len(threads) == 1 and threading.current_thread() not in threads


@pytest.mark.parametrize("how", ["wait", "events", "leave"])
def test_what_a_callback_raises_comes_to_who_waits(how: str) -> None:
    calls = []

    def fail(event: clew.ProbeEvent) -> None:
        calls.append(event)
        raise ValueError("mine")

    with (
        pytest.raises(ValueError, match="mine"),
        clew.probe_session([calls_program()], stdout=subprocess.PIPE) as session,
    ):
        session.probe("add", callback=fail)
        session.resume()
        # The program knows nothing of it.
        assert session.stdout is not None and len(session.stdout.read().splitlines()) == TURNS + 1
        if how == "wait":
            session.wait(60)
        elif how == "events":
            list(session.events())
    assert len(calls) == 1


def test_a_running_process_is_left_as_it_was() -> None:
    program = build_plain(PROBES / "probed_threads.c", "-O2", "-pthread")
    with subprocess.Popen([program, "2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        before = maps_text(process.pid)
        with clew.probe_session(process.pid) as session:
            assert session.state == "running"
            probe = session.probe("leaf", capture="rdi", filter="rdi % 1000 == 0")
            with pytest.raises(TimeoutError):
                session.wait(0.01)
            batches = session.events()
            [(kind, table), *_] = next(batches).tables
            assert (kind.name, {n % 1000 for n in table.column("rdi").to_pylist()}) == ("leaf", {0})
            probe.remove()
            rest = probe.read()
            n_events = probe.n_events
            assert probe.n_events == n_events and not probe.places
            probe.enable()
            assert len(probe.places) == 1
            while probe.n_events == n_events:
                pass
            assert maps_text(process.pid) != before
            session.detach()
            assert session.state == "detached" and maps_text(process.pid) == before
            with pytest.raises(clew.ClewError, match="ended"):
                session.probe("leaf")
            with pytest.raises(clew.ClewError, match="goes on without it"):
                session.wait()
        assert rest.column_names[0] == "event" and session.exit_code is None
        out, _ = process.communicate(b"\n", timeout=60)
        assert (out, process.returncode) == (b"0\n", 0)


def test_sums_are_added_up_by_the_program() -> None:
    with clew.probe_session([calls_program()], stdout=subprocess.DEVNULL) as session:
        calls = session.aggregate("add", by="rdi % 2", value="rdi")
        latency = session.aggregate("descend", at="return", value="duration", histogram=True)
        nowhere = session.aggregate("no_such_function")
        session.resume()
        session.wait(60)
        sums = {row["rdi % 2"]: (row["count"], row["sum"]) for row in calls.read().to_pylist()}
        assert sums == {0: (3, 6), 1: (2, 4)}
        [row] = latency.read().to_pylist()
        # A call may take less than a tick of the clock.
        assert row["count"] == 7 and 0 <= row["min"] <= row["p50"] <= row["max"]
        assert nowhere.read().num_rows == 0 and "no_such_function" in nowhere.missing
        assert not nowhere.places and len(calls.places) == 1


def test_a_program_that_was_not_let_go_is_killed() -> None:
    with clew.probe_session([calls_program()]) as session:
        pid = session.pid
        session.probe("add")
    assert session.exit_code == -9
    assert not Path(f"/proc/{pid}").exists()


def test_children_and_executed_programs_have_the_probes() -> None:
    program = calls_program()
    with clew.probe_session(["sh", "-c", f"{program}; exec {program}"], stdout=subprocess.DEVNULL) as session:
        probe = session.probe("add")
        assert probe.missing
        session.resume()
        tables = [*probe]
        by_process = Counter(pid for table in tables for pid in table["pid"].to_pylist())
    assert list(by_process.values()) == [TURNS, TURNS]


def test_mistakes_are_told() -> None:
    with pytest.raises(clew.ClewError, match="no such process"):
        clew.probe_session(2**22 - 1)
    with pytest.raises(clew.ClewError, match="runs already"):
        clew.probe_session(1, cwd="/")
    with pytest.raises(clew.ClewError, match="no-such-program"):
        clew.probe_session(["no-such-program"], stdout=subprocess.PIPE)
    with clew.probe_session([calls_program()], stdout=subprocess.DEVNULL) as session:
        with pytest.raises(clew.ClewError, match="in the middle of"):
            session.probe("main+1")
        with pytest.raises(clew.ClewError):
            session.probe("add", capture="rdi +")
        with pytest.raises(clew.ClewError, match="a call, or a return"):
            session.aggregate("add", at="never")  # type: ignore[arg-type]
        session.resume()
        assert session.wait(60) == 3


def test_what_goes_wrong_in_the_session_s_own_thread_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(session: ProbeSession) -> None:
        raise MemoryError("of clew's own")

    with subprocess.Popen([calls_program(), "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        before = maps_text(process.pid)
        with clew.probe_session(process.pid) as session:
            session.probe("add")
            monkeypatch.setattr(ProbeSession, "read_events", fail)
            with pytest.raises(MemoryError):
                session.wait(60)
            with pytest.raises(clew.ClewError, match="ended"):
                session.probe("descend")
        # Whatever it was: nothing is left.
        assert session.state == "detached" and maps_text(process.pid) == before
        process.communicate(b"\n", timeout=60)
        assert process.returncode == 3
