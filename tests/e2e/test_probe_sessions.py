"""Sessions of probes in the background, by the verbs of LTTng: events say what the program itself prints."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from clew.binary.elf import open_elf
from tests.e2e import runs
from tests.e2e.probe_sessions import Sessions, events_of, printed_by_babeltrace, told_program, turns_program
from tests.e2e.probed_program import calls_program
from tests.e2e.process_code import dirty_code, maps_text
from tests.e2e.test_probes import threads_program

# Each instruction on one line, however long it is.
OBJDUMP = ("objdump", "-d", "--insn-width=16", "--disassemble=turn")


def values_of(name: str, lines: list[str]) -> list[int]:
    return [int(found[1], 0) for line in lines if (found := re.search(rf"\b{name} = (-?(?:0x)?[0-9A-F]+)", line))]


def test_events_of_a_process_that_runs_by_the_verbs_of_lttng(sessions: Sessions, tmp_path: Path) -> None:
    with told_program() as program:
        pid = str(program.pid)
        maps = maps_text(program.pid)
        sessions.run("enable-event", "turning", "-u", "--pid", pid, "--function", "turn")
        contexts = ("-t", "reg:rdi", "-t", "regs", "-t", "int:behind:$rsp", "-t", "backtrace")
        sessions.run("add-context", "-u", "-e", "turning", *contexts)
        assert program.turn(1) == 8
        assert maps_text(program.pid) == maps
        started = sessions.run("start", "-o", "trace")
        assert started.stdout.decode().strip() == str(tmp_path / "trace")
        results = [program.turn(n) for n in (2, 3, 30)]
        event = sessions.event("turning")
        assert event["backends"] == {"jump": 2}
        assert (event["kind"], event["where"], event["pid"]) == ("function", "turn", program.pid)
        assert event["contexts"] == ["reg:rdi", "regs", "int:behind:$rsp", "backtrace"]
        sessions.run("stop")
        assert program.turn(4) == 29
        assert maps_text(program.pid) == maps
        assert not dirty_code(program.pid)
        # It goes on in the same trace.
        assert sessions.run("start").stdout == started.stdout
        results.append(program.turn(5))
        sessions.run("destroy")
        assert program.turn(6) == 43
        assert maps_text(program.pid) == maps
        assert not dirty_code(program.pid)
    lines = printed_by_babeltrace(tmp_path / "trace")
    assert len(lines) == 8
    assert values_of("retval", lines) == results == [15, 22, 211, 36]
    assert values_of("rdi", [line for line in lines if "turning_entry" in line]) == [2, 3, 30, 5]


def test_addresses_and_distances_of_a_process(sessions: Sessions, tmp_path: Path) -> None:
    program = turns_program()
    names = subprocess.run(["nm", program], capture_output=True, check=True, text=True).stdout
    address = next(int(line.split()[0], 16) for line in names.splitlines() if line.endswith(" turn"))
    instructions = subprocess.run([*OBJDUMP, program], capture_output=True, check=True)
    second = [int(line.split(b":")[0], 16) for line in instructions.stdout.splitlines() if b":\t" in line][1]
    forms = ("{:#x}", "{}", "0{:o}")
    with told_program() as told:
        place = ("--pid", str(told.pid), "--probe")
        for n, form in enumerate(forms):
            sessions.run("enable-event", f"at{n}", "-u", *place, form.format(address))
            behind = f"turn+{form.format(second - address)}"
            sessions.run("enable-event", f"behind{n}", "-u", *place, behind, "-t", "reg:rdi")
        sessions.run("start", "--format", "json", "-o", "out.json")
        told.turn(5)
        sessions.run("destroy")
    places = {one["event"]: int(one["fields"]["ip"], 16) for one in events_of(tmp_path / "out.json")}
    assert places == {f"at{n}": address for n in range(3)} | {f"behind{n}": second for n in range(3)}
    values = [one["fields"]["rdi"] for one in events_of(tmp_path / "out.json") if "behind" in one["event"]]
    assert [int(value, 16) for value in values] == [5] * 3


def test_events_of_a_stripped_program_by_its_file(sessions: Sessions, tmp_path: Path) -> None:
    """`ls` has no symbols and lies anywhere: addresses are those of its file, functions of libraries have names."""
    ls = shutil.which("ls")
    assert ls is not None
    with open_elf(Path(ls).resolve()) as elf:
        entry = elf.entry
    for name, where in {"hexadecimal": hex(entry), "decimal": str(entry), "octal": f"0{entry:o}"}.items():
        sessions.run("enable-event", name, "-u", "--path", ls, "--probe", where)
    sessions.run("enable-event", "opened", "--path", ls, "--function", "libc.so.6!opendir")
    sessions.run("add-context", "-u", "-e", "opened", "-t", "string:folder:$rdi")
    started = sessions.run("start", "--format", "json", "-o", "out.json")
    assert b"probe run" in started.stderr
    folders = [tmp_path / "one", tmp_path / "other"]
    for folder in folders:
        folder.mkdir()
    native = runs.run(["ls", *folders], environ=sessions.environment)
    done = sessions.run("probe", "run", "--", "ls", *folders)
    assert done.stdout == native.stdout
    # What is no `ls` has none of them.
    sessions.run("probe", "run", "--", calls_program(), status=3)
    # All that has happened is counted.
    assert sessions.event("opened")["events"] == 4
    sessions.run("destroy")
    events = events_of(tmp_path / "out.json")
    assert Counter(one["event"] for one in events) == {
        "hexadecimal": 1,
        "decimal": 1,
        "octal": 1,
        "opened_entry": 2,
        "opened_exit": 2,
    }
    assert len({one["fields"]["ip"] for one in events if "opened" not in one["event"]}) == 1
    told = [one["fields"]["folder"] for one in events if one["event"] == "opened_entry"]
    assert told == [str(folder) for folder in folders]


def test_a_command_runs_as_it_does_alone(sessions: Sessions, tmp_path: Path) -> None:
    """Its streams, its status, a signal that ends it; and its probes are there from the first instruction on."""
    program = calls_program()
    sessions.run("enable-event", "start", "--path", program, "--probe", "_start")
    sessions.run("enable-event", "add", "--path", program, "--function", "add")
    sessions.run("start", "--format", "json", "-o", "out.json")
    native = runs.run([program, "waits"], stdin=b"\n")
    assert sessions.run("probe", "run", program, "waits", status=3, stdin=b"\n").stdout == native.stdout
    script = f"{program}; exec {program}"
    assert sessions.run("probe", "run", "sh", "-c", script, status=3).stdout.count(b"\n") == 12
    sessions.run("probe", "run", "sh", "-c", "kill -USR1 $$", status=128 + 10)
    masks = ["grep", "Sig[BI]", "/proc/self/status"]
    assert sessions.run("probe", "run", *masks).stdout == runs.run(masks).stdout
    assert b"no such file" in sessions.run("probe", "run", "./missing", status=2).stderr
    sessions.run("stop")
    # One that is not started has nothing in it.
    sessions.run("probe", "run", program, status=3)
    sessions.run("destroy")
    counted = Counter(one["event"] for one in events_of(tmp_path / "out.json"))
    assert counted == {"start": 3, "add_entry": 15, "add_exit": 15}


def _hear_signals() -> None:
    """Tests that a shell runs in the background ignore these, and what they start with them."""
    for number in (signal.SIGINT, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)


@pytest.mark.long
def test_signals_reach_a_command(sessions: Sessions) -> None:
    """Those of a terminal, which all get, and those that are sent to clew alone."""
    sessions.run("enable-event", "a", "--path", turns_program(), "--probe", "turn")
    sessions.run("start", "-o", "trace")
    for number, is_for_all in ((2, True), (3, True), (15, True), (15, False), (1, False)):
        words = runs.clew_command("probe", "run", "sleep", "60")
        with subprocess.Popen(
            words, env=sessions.environment, start_new_session=True, preexec_fn=_hear_signals
        ) as command:
            runs.wait_until(lambda: any("sleep" in one["executable"] for one in sessions.listed()["processes"]))
            (os.killpg if is_for_all else os.kill)(command.pid, number)
            assert command.wait(60) == 128 + number
        runs.wait_until(lambda: not sessions.listed()["processes"])


def test_events_come_and_go(sessions: Sessions, tmp_path: Path) -> None:
    with told_program() as program:
        pid = str(program.pid)
        sessions.run("enable-event", "a", "--pid", pid, "--probe", "turn", "-t", "rdi")
        sessions.run("start", "--format", "json", "-o", "out.json")
        program.turn(1)
        sessions.run("enable-event", "b", "--pid", pid, "--probe", "other", "-t", "rdi", "--filter", "rdi > 2")
        program.turn(2)
        sessions.run("disable-event", "a")
        program.turn(3)
        assert sessions.event("a")["is_enabled"] is False
        sessions.run("enable-event", "a", "--pid", pid, "--probe", "turn")
        sessions.run("add-context", "-e", "b", "-t", "seven=rdi + 7")
        program.turn(4)
        assert (sessions.event("a")["events"], sessions.event("b")["events"]) == (3, 2)
        refused = sessions.run("enable-event", "a", "--pid", pid, "--probe", "other", status=1)
        assert b"of turn; remove it first" in refused.stderr
        refused = sessions.run("enable-event", "c", "--pid", pid, "--probe", "turn+1", status=2)
        assert b"in the middle of the instruction" in refused.stderr
        assert b"no such event" in sessions.run("disable-event", "c", status=1).stderr
        sessions.run("add-context", "-t", "no such(", status=2)
        sessions.run("probe", "remove", "a")
        program.turn(5)
        sessions.run("destroy")
        assert b"there is no session" in sessions.run("stop", status=1).stderr
    found = [
        (one["event"], one["fields"]["rdi"], one["fields"].get("seven")) for one in events_of(tmp_path / "out.json")
    ]
    assert found == [
        ("a", 1, None),
        ("a", 2, None),
        ("b", 3, None),
        ("a", 4, None),
        ("b", 4, 11),
        ("b", 5, 12),
    ]


@pytest.mark.long
def test_a_session_starts_and_stops_while_threads_run(sessions: Sessions, tmp_path: Path) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen([threads_program(), "4"], stdin=pipe, stdout=pipe, text=True) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == "ready\n"
        maps, place = maps_text(program.pid), ("--pid", str(program.pid))
        sessions.run("enable-event", "a", *place, "--function", "leaf", "--filter", "rdi % 5000 == 0")
        sessions.run("enable-event", "b", *place, "--probe", "leaf", "--filter", "rdi % 5000 == 1")
        for turn in range(5):
            sessions.run("start", *(() if turn else ("-o", "trace")))
            if turn % 2:
                sessions.run("disable-event", "b")
                sessions.run("enable-event", "b")
            sessions.run("stop")
            assert not dirty_code(program.pid)
            assert maps_text(program.pid) == maps
        listed = sessions.listed()
        assert (listed["lost"], listed["remarks"]) == (0, [])
        sessions.run("destroy")
        assert program.communicate("\n", timeout=60)[0] == "0\n"
    lines = printed_by_babeltrace(tmp_path / "trace")
    assert len(lines) == sum(one["events"] for one in listed["events"]) > 0


@pytest.mark.long
def test_sessions_are_made_once_and_told_apart(sessions: Sessions) -> None:
    """Several commands at once make one session, and none of their events is lost."""
    with told_program() as program:
        place = ("--pid", str(program.pid), "--probe", "turn")
        commands = [
            runs.start(
                [*runs.CLEW, "enable-event", f"e{n}", *place],
                environ=sessions.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for n in range(4)
        ]
        told = [command.communicate(timeout=60) for command in commands]
        assert [command.wait() for command in commands] == [0] * 4, told
        assert sum(b"is made" in errors for _, errors in told) == 1
        sessions.run("enable-event", "mine", "--session", "second", *place)
        names = {
            one["session"]: {event["name"] for event in one["events"]}
            for one in map(json.loads, sessions.run("list", "--json").stdout.splitlines())
        }
        assert names == {"default": {"e0", "e1", "e2", "e3"}, "second": {"mine"}}
        # A process may have probes of several.
        sessions.run("start", "-o", "one")
        sessions.run("start", "second", "-o", "other")
        assert program.turn(1) == 8
        assert sessions.event("mine", "second")["events"] == sessions.event("e0")["events"] == 1
        sessions.run("stop")
        assert program.turn(2) == 15
        assert sessions.event("mine", "second")["events"] == 2
        assert sessions.event("e0")["events"] == 1
        sessions.run("stop", "second")
        assert not dirty_code(program.pid)


def test_what_can_be_no_event_makes_no_session(sessions: Sessions) -> None:
    with told_program() as program:
        place = ("--pid", str(program.pid), "--probe")
        sessions.run("enable-event", "a", *place, "turn", "-t", "str(", status=2)
        sessions.run("enable-event", "a", "--probe", "turn", status=2)
        sessions.run("enable-event", "a", *place, "turn", "--path", "/bin/ls", status=2)
        sessions.run("enable-event", "a", status=1)
        sessions.run("enable-event", "a", "--path", turns_program(), "--probe", "nowhere", status=2)
        sessions.run("enable-event", "a", "--session", "../x", *place, "turn", status=2)
        assert b"there is no session" in sessions.run("list").stderr
