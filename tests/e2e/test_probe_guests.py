"""What sessions can do in a process that another one has: from Python, in the background, with triggers, in what it
forks, executes and loads.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

import clew
from clew.sessions.probes.native_session import NativeSession
from tests.e2e import runs
from tests.e2e.probe_sessions import Sessions, Told, events_of, told_program, turns_program
from tests.e2e.probe_tracing import BOTH, WARM, Tracing, is_left, tracing, turn_all, wait_for
from tests.e2e.probed_program import started
from tests.e2e.process_code import dirty_code, read_code, read_code_of
from tests.e2e.test_probe_toggling import halt
from tests.programs.build import SOURCES, build_plain


@pytest.fixture
def here(sessions: Sessions, monkeypatch: pytest.MonkeyPatch) -> Sessions:
    """The same place for sessions of this very process."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(sessions.state))
    return sessions


def values(session: NativeSession, probe: clew.Probe) -> list[int]:
    return [int(value) for value in probe.read().column("arg1").to_pylist() if value is not None]


def test_two_sessions_of_python_and_a_command(here: Sessions) -> None:
    told: list[int] = []
    with told_program() as program:
        with clew.probe_session(program.pid) as first, tracing(here, "command", program, *BOTH) as command:
            one = first.probe("turn", capture="arg1", filter=f"arg1 < {WARM}")
            with clew.probe_session(program.pid) as second:
                other = second.probe("turn", capture=["arg1", "arg1 * 2"], filter="arg1 % 2 == 0")
                total = second.aggregate("turn", value="arg1")
                called = second.probe("turn", capture="arg1", callback=lambda event: told.append(event["arg1"]))
                assert {place.role for place in other.places} == {"point"}
                turn_all(program, range(100))
                assert values(first, one) == list(range(100))
                assert values(second, other) == list(range(0, 100, 2))
                assert total.read().to_pylist()[0]["sum"] == sum(range(100))
                other.remove()
                turn_all(program, range(100, 200))
                assert not values(second, other)
                other.enable()
                called.remove()
                # The session that has the process goes first.
                first.detach()
                turn_all(program, range(200, 300))
                assert values(first, one) == list(range(100, 200))
                assert values(second, other) == list(range(200, 300, 2))
                assert total.read().to_pylist()[0]["sum"] == sum(range(300))
                assert second.state == "running"
                assert not second.warnings
            assert told == list(range(200))
            assert not command.end()
            assert command.arguments() == list(range(300))
        runs.wait_until(lambda: is_left(here, program))


KINDS = (0, 5, 10, 16, 21, 31)
"""Of functions of each shape in probed_counted.c some."""


def count_kinds(session: NativeSession) -> list[clew.ProbeSum]:
    """Has functions of these kinds counted where they begin, and where they return."""
    return [session.aggregate(f"f_{kind}_*", at=at) for at in ("call", "return") for kind in KINDS]


def counts(sums: list[clew.ProbeSum]) -> list[int]:
    return [sum(one.read()["count"].to_pylist()) for one in sums]


def test_counts_are_exact_while_other_sessions_come_and_go(here: Sessions) -> None:
    """At the same functions, which threads execute all the while, whose results are right; and while the process goes
    from the session that has it to one of its own.
    """
    program = build_plain(SOURCES / "probes" / "probed_counted.c", "-O2", "-rdynamic", "-pthread")
    with started(program, "4") as running:
        code = read_code(running.pid)

        def of_kinds(calls: list[int]) -> list[int]:
            return [calls[kind] for kind in KINDS] * 2

        with clew.probe_session(running.pid) as first:
            own = count_kinds(first)
            with clew.probe_session(running.pid) as second:
                others = count_kinds(second)
                running.tell()
                for _ in range(2):
                    with clew.probe_session(running.pid) as third:
                        assert count_kinds(third)[0].places
                once = halt(running)
                assert counts(own) == counts(others) == of_kinds(once)
                running.tell()
                first.close()
                with clew.probe_session(running.pid) as third:
                    assert count_kinds(third)[0].places
                    twice = halt(running)
                    assert counts(others) == of_kinds(twice)
                    since = count_kinds(third)
                    running.tell()
                    third_calls = [now - before for now, before in zip(halt(running), twice, strict=True)]
                    assert counts(since) == of_kinds(third_calls)
        runs.wait_until(lambda: read_code(running.pid) == code)
        runs.wait_until(lambda: not dirty_code(running.pid))
        assert running.end() == 0


def test_sessions_in_the_background(sessions: Sessions) -> None:
    """Each starts, stops and changes what it has by itself, in whatever order."""
    out = sessions.folder
    with told_program() as program:
        code = read_code_of(program.pid, turns_program())
        place = ("--pid", str(program.pid), "--function", "turn")
        for name in ("one", "two"):
            sessions.run("enable-event", "call", "--session", name, *place, "-t", "arg1")
            sessions.run("start", name, "--format", "json", "-o", f"{name}.json")
        turn_all(program, range(50))
        sessions.run("enable-event", "more", "--session", "two", "--pid", str(program.pid), "--probe", "other")
        turn_all(program, range(50, 100))
        assert [sessions.event("call", name)["events"] for name in ("one", "two")] == [200, 200]
        assert sessions.event("more", "two")["events"] == 50
        sessions.run("stop", "one")
        turn_all(program, range(100, 150))
        # The second one has it no more than the first one has.
        sessions.run("start", "one")
        turn_all(program, range(150, 200))
        assert [sessions.event("call", name)["events"] for name in ("one", "two")] == [300, 400]
        sessions.run("destroy", "two")
        turn_all(program, range(200, 250))
        sessions.run("destroy", "one")
        runs.wait_until(lambda: is_left(sessions, program))
        assert read_code_of(program.pid, turns_program()) == code
    calls = {name: events_of(out / f"{name}.json") for name in ("one", "two")}
    args = {name: [int(one["fields"]["arg1"]) for one in calls[name] if one["event"] == "call_entry"] for name in calls}
    assert args == {"one": [*range(100), *range(150, 250)], "two": [*range(200)]}


def test_a_session_changes_what_it_has_where_a_guest_is_and_children(sessions: Sessions) -> None:
    """Each child gets probes of its own then, and the guest's as well; it is told for how long it was told nothing."""
    with told_program() as program:
        pid = str(program.pid)
        sessions.run("enable-event", "call", "--pid", pid, "--function", "turn", "-t", "arg1")
        sessions.run("start", "--format", "json", "-o", "own.json")
        with tracing(sessions, "guest", program, *BOTH) as guest:
            child = int(program.ask("fork 5"))
            assert program.ask("child") == "done"
            turn_all(program, range(10))
            sessions.run("enable-event", "more", "--pid", pid, "--probe", "other")
            turn_all(program, range(10, 20))
            assert program.ask("child") == "done"
            assert guest.end().count("while forks' children got their own probes") == 2
        sessions.run("destroy")
        runs.wait_until(lambda: is_left(sessions, program) and not dirty_code(child))
        assert program.ask("child") == "done"
    of_child = list(range(1000, 1005))
    assert guest.arguments() == [*of_child, *range(20), *of_child]
    events = events_of(sessions.folder / "own.json")
    assert len([one for one in events if one["event"] == "call_entry" and one["pid"] == child]) == 10
    assert len([one for one in events if one["event"] == "more" and one["pid"] == child]) == 5


def test_triggers_of_a_guest(sessions: Sessions) -> None:
    """A thread waits for the session whose trigger it comes to, whoever has the process."""
    with told_program() as program, tracing(sessions, "first", program, *BOTH) as first:
        between = ("--on", "turn_entry:arg1==10", "start", "--on", "turn_entry:arg1==20", "stop")
        starting = Tracing(sessions, "between", program.pid, *BOTH, *between)
        pausing = Tracing(sessions, "pausing", program.pid, *BOTH, "--on", "turn_entry:arg1==30", "pause")
        wait_for(pausing, program, "turn_entry")
        runs.wait_until(lambda: wants(starting, program))
        turn_all(program, range(30))
        program.tell("turn 30")
        state = Path(f"/proc/{program.pid}/stat")
        runs.wait_until(lambda: state.read_text().rpartition(")")[2].split()[0] == "T")
        os.kill(program.pid, 18)
        assert program.answer() == "211 29"
        for one in (first, starting, pausing):
            assert not one.end()
        for one in (first, pausing):
            assert one.arguments()[-31:] == list(range(31))
        started = [one for one in starting.arguments() if one not in (10, 20)]
        assert started == list(range(11, 20))


def wants(starting: Tracing, program: Told) -> bool:
    """Whether a session is there whose events begin with a call with 10: they are ended again."""
    program.turn(10)
    time.sleep(0.05)
    program.turn(20)
    return bool(starting.events())


def test_children_and_executed_programs_of_a_guest(sessions: Sessions) -> None:
    """They have the probes of both, as a library has that is loaded later; also where the one that has them ends."""
    library, source = sessions.folder / "libextra.so", sessions.folder / "extra.c"
    source.write_text("static int done; __attribute__((constructor)) void extra_begin(void) { done = 1; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    with told_program() as program:
        where = (*BOTH, "--probe", "extra_begin")
        with (
            tracing(sessions, "first", program, *where) as first,
            tracing(sessions, "second", program, *where) as second,
        ):
            child = int(program.ask("fork 20"))
            for _ in range(3):
                assert program.ask("child") == "done"
            assert program.ask(f"load {library}") == "loaded"
            assert program.ask(f"exec {turns_program()}") == "ready"
            turn_all(program, range(40))
            assert not first.end()
            turn_all(program, range(40, 80))
            assert program.ask(f"exec {turns_program()}") == "ready"
            turn_all(program, range(80, 100))
            assert not second.end()
        for one, n in ((first, 40), (second, 100)):
            own = [int(event["fields"]["arg1"]) for event in one.events() if event["pid"] == program.pid]
            assert [arg for arg in own if arg < WARM] == list(range(n))
            assert len([event for event in one.events() if event["pid"] == child]) == 60
            assert len(one.events("extra_begin")) == 1
        runs.wait_until(lambda: is_left(sessions, program))


def test_a_command_s_end_is_the_end_of_all(sessions: Sessions) -> None:
    """What is probed by the one that runs it ends by itself: the other one is told all up to that, and ends as well."""
    out = sessions.folder / "own.json"
    words: list[str | Path] = [*runs.CLEW, "trace", "--format", "json", "-o", out, *BOTH, "--", turns_program()]
    with told_program("env", f"XDG_RUNTIME_DIR={sessions.state}", *words) as command:
        runs.wait_until(lambda: bool(children_of(command.pid)))
        guest = Tracing(sessions, "guest", children_of(command.pid)[0], *BOTH)
        try:
            wait_for(guest, command, "turn_entry")
            turn_all(command, range(500))
            command.end()
            guest.process.communicate(timeout=60)
        finally:
            guest.process.kill()
        assert guest.arguments() == list(range(500))
        assert guest.process.returncode == 0
    assert [int(one["fields"]["arg1"]) for one in events_of(out) if one["event"] == "turn_entry"][-500:] == [
        *range(500)
    ]
    assert not list((sessions.state / "clew").glob("*.probes"))


def children_of(pid: int) -> list[int]:
    """The children of a process' first thread."""
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
