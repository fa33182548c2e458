"""What is captured when calls return, while no thread stops: held against what programs say themselves."""

from __future__ import annotations

import subprocess
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.errors import CaptureError, UsageError
from clew.sessions.call_logs import CallLog
from clew.sessions.calls import Call
from tests.programs.build import SOURCES, build_plain

FUNCTIONS = ("deep", "maybe", "around", "inner", "hop", "parting")
OPTIONS = ("-O2", "-fno-inline", "-fno-ipa-cp", "-fno-ipa-sra")
TURNS = 60


@pytest.fixture(scope="module")
def returning() -> Path:
    return build_plain(SOURCES / "sessions/returning.c", *OPTIONS)


def told(path: Path) -> dict[str, list[tuple[int, int]]]:
    """Argument and result of each call that returned, by function, in their order."""
    calls: dict[str, list[tuple[int, int]]] = {name: [] for name in FUNCTIONS}
    for line in path.read_text().splitlines():
        name, argument, result = line.split()
        calls[name].append((int(argument), int(result)))
    return calls


def pairs(rows: list[dict[str, Any]]) -> list[tuple[int, int]]:
    return [(row["(long)entry(arg1)"], row["retval"]) for row in rows]


@pytest.mark.parametrize("mode", ["coverage", "counts", "full"])
def test_every_return_is_recorded_with_what_the_call_began_with(tmp_path: Path, returning: Path, mode: str) -> None:
    with clew.spawn([returning, tmp_path / "told", str(TURNS)], mode=mode) as session:
        capture = ["(long)entry(arg1)", "retval", "duration"]
        logs = {name: session.log_returns(name, capture=capture) for name in FUNCTIONS}
        starts = {name: session.find(name) for name in FUNCTIONS}
        session.resume()
        assert session.wait(120) == 0
        found = {name: log.read().to_pylist() for name, log in logs.items()}
        assert session.statistics["calls_forgotten"] == 0
        assert not session.trace.verify()
    expected = told(tmp_path / "told")
    for name in FUNCTIONS:
        # The child's lines come before the parent's next ones; its rows are its own.
        own = [row for row in found[name] if row["pid"] == session.pid]
        others = [row for row in found[name] if row["pid"] != session.pid]
        assert Counter(pairs(own + others)) == Counter(expected[name]), name
        if name != "deep":
            assert pairs(own) == [one for one in expected[name] if one not in pairs(others)], name
        assert {row["pc"] for row in found[name]} == {starts[name]}
        assert all(row["duration"] < 10**11 for row in found[name])
    deepest = [row["duration"] for row in found["deep"] if row["pid"] == session.pid and row["retval"] >= 4_000_000]
    assert deepest == sorted(deepest), "who called returns later, and took longer"
    assert len(deepest) > 100


def test_what_is_captured_is_what_a_thread_that_stops_shows(returning: Path, tmp_path: Path) -> None:
    capture = [
        "retval",
        "entry(arg1) * 2",
        "entry(str(arg1))",
        "str(retval)",
        "*(char*)entry(arg1)",
        "entry(rip)",
        "tid",
    ]
    seen: list[dict[str, Any]] = []
    with clew.spawn([returning, tmp_path / "told", "3"]) as session:
        logs = [session.log_returns(name, capture=capture) for name in ("name_of", "outer", "parting")]
        for name in ("name_of", "outer", "parting"):
            session.on_return(name, lambda call: seen.append(call.captured | {"pid": call.pid}), capture=capture)
        session.resume()
        session.wait(60)
        rows = [row for log in logs for row in log.read().to_pylist()]
    assert len(rows) == 1 + 4 + 2
    found = [{key: row[key] for key in (*capture, "pid")} for row in rows]
    key = repr
    assert sorted(found, key=key) == sorted(seen, key=key)
    assert [row["entry(str(arg1))"] for row in found if row["str(retval)"] == b"/path"] == [b"/some/path"]


def test_callbacks_are_called_for_every_return(returning: Path, tmp_path: Path) -> None:
    names = ("maybe", "around", "inner", "outer", "hop", "parting")
    seen: dict[str, list[tuple[int, int]]] = {name: [] for name in names}
    with clew.spawn([returning, tmp_path / "told", "12"]) as session:

        def note(name: str, call: Call) -> None:
            argument, result = call["(long)entry(arg1)"], call["retval"]
            assert isinstance(argument, int) and isinstance(result, int)
            assert int(call["duration"] or 0) > 0
            seen[name].append((argument, result))

        for name in names:
            session.on_return(name, partial(note, name), capture=["(long)entry(arg1)", "retval", "duration"])
        session.resume()
        assert session.wait(60) == 0
        assert session.n_missed == 0
    expected = told(tmp_path / "told")
    for name in names:
        if name != "outer":
            assert Counter(seen[name]) == Counter(expected[name]), name
    assert len(seen["outer"]) == 12 + 4
    assert all(result == 10 * argument + 7 for argument, result in seen["outer"])


def test_two_that_return_at_once_are_both_recorded(returning: Path, tmp_path: Path) -> None:
    with clew.spawn([returning, tmp_path / "told", "30"]) as session:
        # By one log, and by two, with conditions, bytes and calls that are recorded when they begin.
        both = session.log_returns("inner", capture=["retval"])
        outer = session.log_returns("outer", capture=["entry(arg1)", "retval"], condition="entry(arg1) % 2 == 0")
        names = session.log_returns("outer", capture=["entry(comm)", "retval"])
        begun = session.log_calls("outer", capture=["arg1"])
        session.resume()
        session.wait(60)
        n_inner = both.read().num_rows
        even = outer.read()["entry(arg1)"].to_pylist()
        texts = names.read()
        assert session.statistics["calls_forgotten"] == 0
        started = begun.read()["arg1"].to_pylist()
    assert even == [number for number in started if number % 2 == 0]
    assert texts["retval"].to_pylist() == [10 * number + 7 for number in started]
    assert set(texts["entry(comm)"].to_pylist()) == {b"returning"}
    assert n_inner == len(told(tmp_path / "told")["inner"])


def test_returns_are_added_up(returning: Path, tmp_path: Path) -> None:
    with clew.spawn([returning, tmp_path / "told", str(TURNS)]) as session:
        results = session.aggregate("deep", at="return", by=["entry(arg1) % 4"], value="retval")
        times = session.aggregate("maybe", at="return", value="duration", histogram=True)
        texts = session.aggregate("name_of", at="return", by=["entry(str(arg1))", "str(retval)"], value="entry(arg2)")
        session.resume()
        session.wait(60)
        rows = {row["entry(arg1) % 4"]: row for row in results.read().to_pylist()}
        [time] = times.read().to_pylist()
        [text] = texts.read().to_pylist()
    expected = told(tmp_path / "told")
    for rest in range(4):
        values = [result for argument, result in expected["deep"] if argument % 4 == rest]
        assert (rows[rest]["count"], rows[rest]["sum"]) == (len(values), sum(values))
        assert (rows[rest]["min"], rows[rest]["max"]) == (min(values), max(values))
    assert time["count"] == len(expected["maybe"]) and 0 < time["min"] <= time["p50"] <= time["max"] < 10**10
    assert list(text.values())[:4] == [b"/some/path", b"/path", 1, 5]


def test_no_return_is_lost_or_told_twice_where_signals_come() -> None:
    program = build_plain(SOURCES / "sessions/interrupted.c", "-O1", "-fno-inline", "-fno-ipa-cp")
    n_calls = 300_000
    with clew.spawn([program, str(n_calls)]) as session:
        log = session.log_returns("counted", capture=["entry(arg1)", "retval", "entry(arg2)"])
        session.resume()
        assert session.wait(120) == 0
        table = log.read()
        assert not session.trace.verify()
    columns = [table[name].to_pylist() for name in ("entry(arg1)", "retval", "entry(arg2)")]
    calls = list(zip(*columns, strict=True))
    assert [number for number, _, depth in calls if depth == 0] == list(range(n_calls))
    handled = [number for number, _, depth in calls if depth == 1]
    assert handled == list(range(len(handled))) and handled
    assert all(result == number + depth for number, result, depth in calls)


@pytest.mark.parametrize("mode", ["counts", "full"])
def test_threads_each_have_their_returns_in_their_order(called: Path, mode: str) -> None:
    n_threads, turns = 6, 300
    with clew.spawn([called, str(turns), str(n_threads)], mode=mode) as session:
        log = session.log_returns("add", capture=["entry(arg1)", "entry(arg2)", "retval"])
        texts = session.log_returns("handle", capture=["entry(str(*(char**)(arg1 + 8)))"])
        session.resume()
        session.wait(60)
        rows = log.read().to_pylist()
        names = texts.read()
        assert not session.trace.verify()
    by_thread: dict[int, list[tuple[int, int]]] = {}
    for row in rows:
        first, second = row["entry(arg1)"], row["entry(arg2)"]
        assert row["retval"] == first + second
        by_thread.setdefault(row["tid"], []).append((first, second))
    expected = [pair for n in range(turns) for pair in ((n, 1), (2, n), (n, 3))]
    assert list(by_thread.values()) == [expected] * n_threads
    assert Counter(names.column(4).to_pylist()) == {b"/even": turns * n_threads // 2, b"/odd": turns * n_threads // 2}


def test_a_log_that_is_removed_or_begins_later_has_its_part(returning: Path, tmp_path: Path) -> None:
    with clew.spawn([returning, tmp_path / "told", "20"]) as session:
        first = session.log_returns("inner", capture=["retval"])
        later: list[CallLog] = []
        n_seen = 0

        @session.on_call("inner")
        def change(call: Call) -> None:
            nonlocal n_seen
            n_seen += 1
            if n_seen == 5:
                later.append(session.log_returns("inner", capture=["retval"]))
            if n_seen == 10:
                first.remove()

        session.resume()
        session.wait(60)
        results = [result for _, result in told(tmp_path / "told")["inner"]]
        assert first.read()["retval"].to_pylist() == results[:9]
        # The fifth call began before there was the log; so it is not known where it returns to.
        assert later[0].read()["retval"].to_pylist() in (results[4:], results[5:])


def test_what_can_not_be_asked_for_says_so(called: Path) -> None:
    with clew.spawn([called, "2"]) as session:
        with pytest.raises(CaptureError, match="when a call began that has returned"):
            session.log_calls("add", capture=["entry(arg1)"])
        with pytest.raises(CaptureError, match="only when a call has returned"):
            session.log_calls("add", condition="duration > 5")
        with pytest.raises(CaptureError, match="26 values are kept at most"):
            session.log_returns("add", capture=[f"entry(arg1 + {number})" for number in range(27)])
        with pytest.raises(CaptureError, match="entry takes 1 argument"):
            session.log_returns("add", capture=["entry(arg1, arg2)"])
        with pytest.raises(UsageError, match="a call, or a return"):
            session.aggregate("add", at="exit")  # type: ignore[arg-type]
        session.resume()
        session.wait(60)


def test_the_program_does_the_same(returning: Path, tmp_path: Path) -> None:
    subprocess.run([returning, tmp_path / "native", "10"], check=True)
    with clew.spawn([returning, tmp_path / "followed", "10"]) as session:
        for name in (*FUNCTIONS, "outer", "name_of", "tell", "libc.so.6!fork", "libc.so.6!swapcontext"):
            session.log_returns(name, capture=["retval", "entry(str(arg1))", "duration"])
        session.resume()
        assert session.wait(60) == 0
    assert (tmp_path / "followed").read_text() == (tmp_path / "native").read_text()
