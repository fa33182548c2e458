"""Calls that are summed up while a program runs are what its trace says in the end, and where it is stopped."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

import clew
from tests.programs.build import build_one, find

_PROGRAMS = ("threads_mutex", "thread_churn", "fork_threads", "fork_wait", "exec_chain", "library_load", "exceptions")
_MODES = ("counts", "full", "coverage")
_IN_ALL_MODES = ("fork_threads", "exceptions")


def calls_of(trace: clew.Trace) -> Counter[str]:
    """Calls by `IMAGE!FUNCTION`, as the trace has them."""
    calls: Counter[str] = Counter()
    for row in trace.report(by="function", n=1 << 30):
        calls[f"{Path(row['image'] or '?').name}!{row['function']}"] += row["calls"]
    return +calls


@pytest.mark.parametrize(
    ("name", "mode"),
    [
        pytest.param(name, mode, marks=() if mode == "counts" or name in _IN_ALL_MODES else pytest.mark.long)
        for name in _PROGRAMS
        for mode in _MODES
    ],
)
def test_they_are_those_of_the_trace(name: str, mode: str) -> None:
    program = find(name)
    build_one(program)
    told: Counter[str] = Counter()
    with clew.spawn(
        [program.path], mode=mode, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as session:
        session.resume()
        for _ in range(3):
            told.update(session.call_summary())
            time.sleep(0.01)
        session.wait(60)
        told.update(session.call_summary())
        expected = calls_of(session.trace)
    assert told == expected
    assert len(expected) > 50


@pytest.mark.parametrize("mode", ["counts", "full"])
def test_they_are_exact_where_threads_are_stopped(called: Path, mode: str) -> None:
    told: Counter[str] = Counter()
    with clew.spawn([called, "1000000000", "3"], mode=mode, stdout=subprocess.DEVNULL) as session:
        for _ in range(3):
            session.resume()
            time.sleep(0.1)
            session.pause()
            told.update(session.call_summary())
            with_snapshot = calls_of(session.snapshot())
            # Who was stopped in front of a function that nobody has executed yet has called it, and a trace has no
            # block of it.
            about_to = Counter(str(thread.backtrace()[0]) for thread in session.threads)
            assert not with_snapshot - told
            assert told - with_snapshot <= about_to
            assert not (told - with_snapshot).keys() & with_snapshot.keys()
    assert told["called!add"] > 1000


def test_the_order_may_be_recorded_for_a_while(called: Path) -> None:
    told: Counter[str] = Counter()
    with clew.spawn([called, "3000", "2"], stdout=subprocess.DEVNULL) as session:
        told.update(session.call_summary())
        stream = session.follow(events={"call"})
        session.resume()
        for _ in stream:
            told.update(session.call_summary())
        session.wait(60)
        told.update(session.call_summary())
        assert told == calls_of(session.trace)


@pytest.mark.parametrize("mode", ["counts", "full"])
def test_what_is_excluded_is_left_out(called: Path, mode: str) -> None:
    with clew.spawn([called, "30"], mode=mode, exclude=["libc.so.6"], stdout=subprocess.DEVNULL) as session:
        told = Counter(session.call_summary())
        session.resume()
        session.wait(60)
        told.update(session.call_summary())
        assert told == calls_of(session.trace)
    assert told["called!add"] == 90
