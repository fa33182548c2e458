"""System calls, recorded as they begin and as they return: held against what programs say themselves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import clew
from clew.errors import CaptureError, UsageError
from tests.programs.build import SOURCES, build_plain

NAMES = ("openat", "read", "close", "getcwd", "mmap", "getppid", "nanosleep", "sched_yield", "dup")


@pytest.fixture(scope="module")
def calling() -> Path:
    return build_plain(SOURCES / "sessions/system_calls.c", "-O1", "-pthread")


def told(path: Path) -> dict[int, list[tuple[str, int, int]]]:
    """Name, first argument and result of the calls of each thread, in their order."""
    calls: dict[int, list[tuple[str, int, int]]] = {0: [], 1: [], 2: []}
    for line in path.read_text().splitlines():
        who, name, argument, result = line.split()
        calls[int(who)].append((name, int(argument), int(result)))
    return calls


def is_part(part: list[Any], whole: list[Any]) -> bool:
    """Whether all of it is there in that order; the C library makes calls of its own between."""
    rest = iter(whole)
    return all(one in rest for one in part)


@pytest.mark.parametrize("mode", ["coverage", "counts", "full"])
def test_every_call_is_recorded_with_its_result(calling: Path, tmp_path: Path, mode: str) -> None:
    with clew.spawn([calling, tmp_path / "told"], mode=mode) as session:
        capture = ["(long)entry(arg1)", "retval", "duration"]
        logs = {name: session.log_returns(f"syscall:{name}", capture=capture) for name in NAMES}
        session.resume()
        assert session.wait(120) == 0
        rows = [row | {"name": name} for name, log in logs.items() for row in log.read().to_pylist()]
        assert not session.trace.verify()
    rows.sort(key=lambda row: int(row["time_ns"]))
    by_thread: dict[tuple[int, int], list[tuple[str, int, int]]] = {}
    for row in rows:
        found = row["name"], row["(long)entry(arg1)"], row["retval"]
        by_thread.setdefault((row["pid"], row["tid"]), []).append(found)
    expected = told(tmp_path / "told")
    first = by_thread[session.pid, session.pid]
    others = [calls for (pid, tid), calls in by_thread.items() if tid != session.pid]
    assert len(others) == 2
    for who, calls in ((1, others[0]), (2, others[1])):
        assert [one for one in calls if one in set(expected[who])] == expected[who]
    for name in NAMES:
        # A call that a signal ended returns before the handler's own.
        assert is_part([one for one in expected[0] if one[0] == name], [one for one in first if one[0] == name]), name
    n_own = {name: sum(one[0] == name for one in expected[0]) for name in NAMES}
    # What returned at once is there once, also where a signal interrupted it and it was made again.
    assert sum(one[0] == "nanosleep" for one in first) == n_own["nanosleep"] == 8
    assert sum(one[0] == "getppid" for one in first) == n_own["getppid"] == 8
    assert {row["duration"] > 2_000_000 for row in rows if row["name"] == "nanosleep"} == {True}


def test_what_they_read_and_write_is_taken(calling: Path, tmp_path: Path) -> None:
    with clew.spawn([calling, tmp_path / "told"]) as session:
        opened = session.log_returns("syscall:openat", capture=["entry(str(arg2))", "entry(arg3)", "retval"])
        read = session.log_returns("syscall:read", capture=["bytes(entry(arg2), retval)"], condition="retval > 0")
        failed = session.aggregate("syscall:close", at="return", by=["retval"], condition="retval < 0")
        begun = session.log_calls(
            "syscall:openat", capture=["str(arg2)", "comm"], condition='str(arg2) == "/no/such/file"'
        )
        left = session.log_calls("syscall:exit_group", capture=["arg1", "rip"])
        session.resume()
        assert session.wait(120) == 0
        paths = opened.read().to_pylist()
        texts = read.read().column(4).to_pylist()
        assert begun.read()["str(arg2)"].to_pylist() == [b"/no/such/file"] * 200
        assert left.read().num_rows == 2
        counts = {row["retval"]: row["count"] for row in failed.read().to_pylist()}
    comm = [row for row in paths if row["entry(str(arg2))"] == b"/proc/self/comm"]
    assert len(comm) == 200 and {row["entry(arg3)"] for row in comm} == {0o2000000}
    assert texts.count(b"system_calls\n") == 200
    assert counts == {-9: 3200}


def test_what_is_no_system_call_or_stops_is_refused(calling: Path, tmp_path: Path) -> None:
    with clew.spawn([calling, tmp_path / "told"]) as session:
        with pytest.raises(UsageError, match="no system call is called so"):
            session.log_calls("syscall:opennat")
        with pytest.raises(UsageError, match="no system call is called so"):
            session.log_calls("syscall:512")
        with pytest.raises(UsageError, match="no thread stops in a system call"):
            session.on_call("syscall:openat", lambda call: None)
        with pytest.raises(CaptureError):
            session.log_calls("syscall:openat", capture=["entry(arg1)"])
        session.kill()
