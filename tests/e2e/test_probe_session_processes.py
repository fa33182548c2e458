"""Processes of sessions of probes in the background: forks' children, those that end, such as are given and taken; and
the end of the controller itself."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path

from tests.e2e import runs
from tests.e2e.probe_sessions import Sessions, events_of, printed_by_babeltrace, told_program, turns_program
from tests.e2e.process_code import dirty_code, read_code_of


def test_children_of_forks_have_what_comes_later(sessions: Sessions, tmp_path: Path) -> None:
    with told_program() as program:
        sessions.run("enable-event", "a", "--pid", str(program.pid), "--probe", "turn", "-t", "rdi")
        sessions.run("start", "--format", "json", "-o", "out.json")
        child = int(program.ask("fork 3"))
        program.ask("child")
        sessions.run("enable-event", "b", "--pid", str(program.pid), "--probe", "other")
        program.ask("child")
        listed = sessions.listed()
        assert {one["pid"] for one in listed["processes"]} == {program.pid, child}
        assert [text for text in listed["remarks"] if "nothing was told" in text]
        sessions.run("disable-event", "a")
        program.ask("child")
        sessions.run("stop")
        assert not dirty_code(child)
        assert not dirty_code(program.pid)
        program.ask("child")
        sessions.run("probe", "detach", str(program.pid))
        sessions.run("start")
        program.ask("child")
        program.turn(1)
        sessions.run("destroy")
        program.ask("child")
        assert not dirty_code(child)
    by_process = Counter((one["pid"], one["event"]) for one in events_of(tmp_path / "out.json"))
    assert by_process == {(child, "a"): 6, (child, "b"): 9}


def test_a_child_outlives_its_parent(sessions: Sessions, tmp_path: Path) -> None:
    with told_program() as program:
        sessions.run("enable-event", "a", "--pid", str(program.pid), "--probe", "turn", "-t", "rdi")
        sessions.run("start", "--format", "json", "-o", "out.json")
        child = int(program.ask("leave"))
        program.turn(1)
        runs.wait_until(lambda: [one["pid"] for one in sessions.listed()["processes"]] == [child])
        program.turn(2)
        sessions.run("destroy")
        assert not dirty_code(child)
        program.turn(3)
    told = [one["fields"]["rdi"] for one in events_of(tmp_path / "out.json")]
    assert told == [1, 2]


def test_a_child_stays_when_its_parent_executes_a_program(sessions: Sessions, tmp_path: Path) -> None:
    with told_program() as program:
        sessions.run("enable-event", "a", "--pid", str(program.pid), "--probe", "turn", "-t", "rdi")
        sessions.run("start", "--format", "json", "-o", "out.json")
        child = int(program.ask("fork 2"))
        program.ask("child")
        assert program.ask(f"exec {turns_program()}") == "ready"
        program.turn(7)
        sessions.run("stop")
        told = Counter((one["pid"], one["fields"]["rdi"]) for one in events_of(tmp_path / "out.json"))
        assert told == {(child, 1000): 1, (child, 1001): 1, (program.pid, 7): 1}
        assert not dirty_code(child)
        assert not dirty_code(program.pid)


def test_a_session_stays_when_its_processes_have_ended(sessions: Sessions, tmp_path: Path) -> None:
    with told_program() as program:
        sessions.run("enable-event", "a", "--pid", str(program.pid), "--probe", "turn")
        sessions.run("start", "-o", "trace")
        program.turn(1)
    runs.wait_until(lambda: not sessions.listed()["processes"])
    assert sessions.listed()["is_active"]
    assert sessions.event("a")["events"] == 1
    refused = sessions.run("enable-event", "b", "--pid", str(program.pid), "--probe", "turn", status=1)
    assert b"no such process" in refused.stderr
    sessions.run("destroy")
    assert len(printed_by_babeltrace(tmp_path / "trace")) == 1


def test_processes_are_given_and_taken(sessions: Sessions, tmp_path: Path) -> None:
    """Those of a file that the session was given, and no other; libraries get their probes when they are loaded."""
    library = tmp_path / "libextra.so"
    source = tmp_path / "extra.c"
    source.write_text("static int done; __attribute__((constructor)) void extra_begin(void) { done = 1; }\n")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", library, source], check=True)
    sessions.run("enable-event", "a", "--path", turns_program(), "--probe", "turn", "-t", "rdi")
    sessions.run("enable-event", "extra", "--path", library, "--probe", "extra_begin")
    sessions.run("start", "--format", "json", "-o", "out.json")
    with told_program() as program, told_program() as other:
        sessions.run("probe", "attach", str(program.pid))
        program.turn(1)
        other.turn(2)
        assert "is not loaded" in sessions.event("extra")["missing"]
        assert program.ask(f"load {library}") == "loaded"
        assert other.ask(f"load {library}") == "loaded"
        refused = sessions.run("probe", "detach", str(other.pid), status=1)
        assert b"is not in session" in refused.stderr
        sessions.run("probe", "detach", str(program.pid))
        program.turn(3)
        assert not dirty_code(program.pid)
        sessions.run("destroy")
        pids = {one["pid"] for one in events_of(tmp_path / "out.json")}
        assert pids == {program.pid}
    assert [one["event"] for one in events_of(tmp_path / "out.json")] == ["a", "extra"]


def test_a_controller_that_is_killed_leaves_nothing(sessions: Sessions) -> None:
    """In the process, and in a child that it has forked, which calls the function all the while."""
    with told_program() as program:
        pid, file = str(program.pid), turns_program()
        code = read_code_of(program.pid, file)
        sessions.run("enable-event", "a", "--pid", pid, "--function", "turn")
        sessions.run("enable-event", "in", "--pid", pid, "--probe", "check_turn")
        sessions.run("start", "-o", "trace")
        child = int(program.ask("fork 0"))
        assert code not in (read_code_of(program.pid, file), read_code_of(child, file))
        os.kill(sessions.listed()["controller_pid"], 9)
        runs.wait_until(
            lambda: read_code_of(program.pid, file) == read_code_of(child, file) == code,
            seconds=5,
        )
        assert program.turn(2) == 15
        for _ in range(3):
            assert program.ask("child") == "done"
        # The socket that is left is nobody's: it is told once, and there is room for another session of that name.
        assert b"ended without being destroyed" in sessions.run("list").stderr
        made = sessions.run("enable-event", "b", "--pid", pid, "--probe", "other")
        assert b"session default is made" in made.stderr
        sessions.run("destroy")
        runs.wait_until(lambda: not list((sessions.state / "clew" / "probes").iterdir()))
