"""Probes at any place of a program that is followed: events say what the program itself prints."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.sessions.calls import Call
from tests.e2e.probed_program import calls_program
from tests.programs.build import SOURCES, build_plain

PROBES = SOURCES / "probes"
TURNS = 5
CHOOSING = r"""
#include <dlfcn.h>
#include <stdio.h>

typedef char *(*Find)(const char *, const char *);

int main(void)
{
    puts("ready");
    fflush(stdout);
    getchar();
    Find find = (Find)dlsym(0, "strstr");
    printf("%s %s\n", find("one two", "two"), find("abc", "b"));
    return 0;
}
"""


def address_of(program: Path, name: str) -> int:
    lines = subprocess.run(["nm", program], capture_output=True, text=True, check=True).stdout.splitlines()
    return next(int(words[0], 16) for words in map(str.split, lines) if words[-1] == name)


def test_entries_and_returns_say_what_the_program_prints() -> None:
    program = calls_program()
    with clew.spawn([program], stdout=subprocess.PIPE) as session:
        probe = session.probe("add", capture=["rdi", "reg:rsi", "int:count:counter"], function=True)
        session.resume()
        assert session.wait(60) == 3
        assert session.stdout is not None
        results = [int(line.split()[0]) for line in session.stdout.read().splitlines()[:TURNS]]
        rows = probe.read().to_pylist()
        assert [row["event"] for row in rows] == ["add_entry", "add_exit"] * TURNS
        assert [row["sequence"] for row in rows] == [*range(2 * TURNS)]
        entries, exits = rows[::2], rows[1::2]
        assert [(row["rdi"], row["rsi"], row["count"]) for row in entries] == [(n, 7, 40 + n) for n in range(TURNS)]
        assert [row["retval"] for row in exits] == results
        assert all(row["duration"] >= 0 for row in exits)
        assert {(row["pid"], row["tid"], row["comm"]) for row in rows} == {
            (session.pid, session.pid, program.name.encode()[:15])
        }
        assert {place.address for place in probe.places} == {address_of(program, "add")}
        assert [(place.role, place.backend) for place in probe.places] == [("entry", "engine"), ("return", "engine")]
        assert probe.n_events == 2 * TURNS and probe.read().num_rows == 0


def test_each_instruction_can_be_probed() -> None:
    program = calls_program()
    listing = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", "--disassemble=add", program],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    heads = (line.partition(":")[0].strip() for line in listing.splitlines() if line.startswith("  "))
    addresses = [int(head, 16) for head in heads]
    assert len(addresses) > 3
    with clew.spawn([program], stdout=subprocess.DEVNULL) as session:
        probes = [session.probe(address, capture="rsi") for address in addresses]
        session.resume()
        session.wait(60)
        for address, probe in zip(addresses, probes, strict=True):
            table = probe.read()
            assert table["ip"].to_pylist() == [address] * TURNS
        assert probes[0].where == f"{addresses[0]:#x}"


def test_what_is_inside_of_an_instruction_is_refused() -> None:
    with clew.spawn([calls_program()], stdout=subprocess.DEVNULL) as session:
        with pytest.raises(clew.ClewError, match="inside of the instruction"):
            session.probe("main+1")
        with pytest.raises(clew.ClewError, match="not where a function begins"):
            session.probe("main+4", function=True)
        with pytest.raises(clew.ClewError, match="only functions return"):
            session.probe("add", returned="retval")
        with pytest.raises(clew.ClewError):
            session.probe("add", capture="rdi +")


def test_a_filter_chooses_calls_and_their_returns() -> None:
    with clew.spawn([calls_program()], stdout=subprocess.DEVNULL) as session:
        probe = session.probe("add", capture="rdi", filter="rdi % 2 == 1", function=True, returned=["retval", "rdx"])
        session.resume()
        session.wait(60)
        table = probe.read()
    assert [row["rdi"] for row in table.to_pylist() if row["event"] == "add_entry"] == [1, 3]
    assert [row["retval"] for row in table.to_pylist() if row["event"] == "add_exit"] == [1 * 3 + 7, 3 * 3 + 7]
    assert table.column_names[-2:] == ["retval", "rdx"]


def test_patterns_name_their_events_and_lines_are_places() -> None:
    with clew.spawn([calls_program()], stdout=subprocess.DEVNULL) as session:
        both = session.probe("[ad][de]*d", function=True)
        line = session.probe("probed_calls.c:12", capture="var:a")
        session.resume()
        session.wait(60)
        names = Counter(both.read()["event"].to_pylist())
        assert names == {"add_entry": TURNS, "add_exit": TURNS, "descend_entry": 7, "descend_exit": 7}
        assert line.read()["var:a"].to_pylist() == [*range(TURNS)]


def test_threads_wait_for_a_callback_in_the_midst_of_a_function() -> None:
    seen: list[tuple[object, int]] = []
    with clew.spawn([calls_program()], stdout=subprocess.PIPE) as session:

        def change(call: Call) -> None:
            seen.append((call["rsi"], call.registers["rdi"]))
            call.registers["rsi"] = 100

        probe = session.probe("probed_calls.c:12", capture=["rsi"], callback=change)
        with pytest.raises(clew.ClewError, match="a callback has no events"):
            session.probe("add", function=True, callback=change)  # type: ignore[call-overload]
        session.resume()
        assert session.wait(60) == 3
        assert session.stdout is not None
        results = [int(line.split()[0]) for line in session.stdout.read().splitlines()[:TURNS]]
    assert results == [n * 3 + 100 for n in range(TURNS)]
    assert seen == [(7, n) for n in range(TURNS)]
    assert (probe.n_calls, probe.n_places) == (TURNS, 1)


def test_what_a_callback_raises_is_raised_where_somebody_waits() -> None:
    def fail(call: Call) -> None:
        raise ValueError("mine")

    with clew.spawn([calls_program()], stdout=subprocess.DEVNULL) as session:
        session.probe("add", callback=fail)
        session.resume()
        with pytest.raises(ValueError, match="mine"):
            session.wait(60)


def test_functions_that_are_chosen_later_are_met() -> None:
    with clew.spawn(["ls", "/"], stdout=subprocess.DEVNULL) as session:
        probe = session.probe("libc.so.6!strlen", capture="str(rdi)", function=True, returned="retval")
        session.resume()
        assert session.wait(60) == 0
        rows = probe.read().to_pylist()
    entries = [row["str(rdi)"] for row in rows if row["event"].endswith("_entry")]
    exits = [row["retval"] for row in rows if row["event"].endswith("_exit")]
    # None of them is within another.
    assert [len(text) for text in entries] == exits and len(exits) > 5


def test_functions_that_nobody_has_chosen_yet_are_waited_for(tmp_path: Path) -> None:
    (tmp_path / "choosing.c").write_text(CHOOSING)
    subprocess.run(["gcc", "-O1", "-o", tmp_path / "choosing", tmp_path / "choosing.c"], check=True)
    with subprocess.Popen([tmp_path / "choosing"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        with clew.attach_session(process.pid) as session:
            probe = session.probe("libc.so.6!strstr", capture="str(arg2)", function=True, returned="str(retval)")
            assert not probe.missing and not probe.places
            assert any("strstr" in text for text in session.warnings)
            out, _ = process.communicate(b"\n", timeout=60)
            session.wait_for_all(60)
            rows = probe.read().to_pylist()
    assert out == b"two bc\n"
    # C leaves open which argument is first.
    assert {row["str(arg2)"] for row in rows if row["event"].endswith("_entry")} == {b"two", b"b"}
    assert {row["str(retval)"] for row in rows if row["event"].endswith("_exit")} == {b"two", b"bc"}
    assert len(rows) == 4


def test_children_have_their_parents_probes() -> None:
    program = build_plain(PROBES / "probed_children.c", "-O1", "-pthread")
    by_process: Counter[int] = Counter()
    with clew.spawn([program], stdout=subprocess.DEVNULL) as session:
        probe = session.probe("work", capture="rdi")
        session.resume()
        for table in probe:
            by_process.update(table["pid"].to_pylist())
        first = session.pid
    assert by_process.pop(first) > 0
    assert list(by_process.values()) == [10] * 50


def test_programs_that_are_executed_have_them_too() -> None:
    program = calls_program()
    with clew.spawn(["sh", "-c", f"{program}; exec {program}"], stdout=subprocess.DEVNULL) as session:
        probe = session.probe("add")
        assert probe.missing and not probe.places
        session.resume()
        session.wait(60)
        by_process = Counter(probe.read()["pid"].to_pylist())
        assert list(by_process.values()) == [TURNS, TURNS] and not probe.missing


def test_a_probe_that_is_removed_comes_again() -> None:
    with subprocess.Popen([calls_program(), "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        with clew.attach_session(process.pid) as session:
            gone, back = session.probe("add"), session.probe("add", capture="rdi")
            gone.remove()
            back.remove()
            back.enable()
            process.communicate(b"\n", timeout=60)
            session.wait_for_all(60)
            assert gone.read().num_rows == 0 and gone.read().column_names[0] == "event"
            assert back.read()["rdi"].to_pylist() == [*range(TURNS)]


def test_the_same_is_told_whether_a_program_is_followed_or_not() -> None:
    told = []
    for make in (clew.spawn, clew.probe_session):
        session: Any = make([calls_program()], stdout=subprocess.DEVNULL)
        with session:
            probes = [
                session.probe("add", capture=["rdi", "str(text, 8)", "string:said:text"], function=True),
                session.probe("descend", capture="var:n", filter="var:n > 2", function=True, name="down"),
                session.probe("probed_calls.c:12", capture=["regs", "comm"]),
                session.probe("[ad][de]*d", capture="tid == pid"),
                session.probe("main+1000000"),
            ]
            session.resume()
            assert session.wait(60) == 3
            told.append([(one.read(), bool(one.missing), [place.role for place in one.places]) for one in probes])
    # Of two probes at one instruction either may be first.
    of_session = ("time_ns", "sequence", "pid", "tid", "cpu", "duration", "regs", "parent_ip")
    for followed, native in zip(*told, strict=True):
        assert followed[1:] == native[1:]
        assert followed[0].schema == native[0].schema
        assert (
            followed[0]
            .drop_columns([name for name in of_session if name in followed[0].column_names])
            .equals(native[0].drop_columns([name for name in of_session if name in native[0].column_names]))
        )
