"""Calls are recorded and added up right where that is awkward: signals, refused clocks, checked alignment."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

import clew
from tests.programs.build import SOURCES, build_plain

_FIELDS = [f"arg{number}" for number in range(1, 7)]


@pytest.fixture(scope="module")
def awkward() -> Path:
    """The program of tests/programs/sessions/awkward.c."""
    return build_plain(SOURCES / "sessions/awkward.c", "-O1")


@pytest.mark.parametrize("mode", ["coverage", "counts", "full"])
def test_what_one_instruction_is_counts_once_where_signals_come(awkward: Path, mode: str) -> None:
    n_calls = 2_000_000
    with clew.spawn([awkward, "ret", str(n_calls)], mode=mode) as session:
        one = session.aggregate("once", value="arg1")
        session.resume()
        assert session.wait(120) == 0
        (row,) = one.read().to_pylist()
        assert (row["count"], row["sum"]) == (n_calls, sum(range(n_calls)))
        assert not session.trace.verify()


@pytest.mark.parametrize("capture", [_FIELDS, ["arg1", "comm"]])
def test_such_a_function_is_recorded_once(awkward: Path, capture: list[str]) -> None:
    n_calls = 200_000
    with clew.spawn([awkward, "ret", str(n_calls)]) as session:
        log = session.log_calls("once", capture=capture)
        session.resume()
        assert session.wait(120) == 0
        assert log.read()["arg1"].to_pylist() == list(range(n_calls))


@pytest.mark.parametrize("how", ["clock", "aligned"])
@pytest.mark.parametrize("capture", [["arg1"], _FIELDS, [*_FIELDS, "cpu"], [*_FIELDS, "comm"]])
def test_what_the_processor_refuses_is_done_otherwise(awkward: Path, how: str, capture: list[str]) -> None:
    # Alone: what is done about several at one place is done by the dispatcher.
    with clew.spawn([awkward, how, "1000"]) as session:
        log = session.log_calls("once", capture=capture)
        session.resume()
        assert session.wait(60) == 0
        rows = log.read().to_pylist()
        names = [name for name in _FIELDS if name in capture]
        assert [[row[name] for name in names] for row in rows] == [
            [n, 1, 2, 3, 4, 5][: len(names)] for n in range(1000)
        ]


@pytest.mark.parametrize("how", ["clock", "aligned"])
def test_it_is_added_up_all_the_same(awkward: Path, how: str) -> None:
    with clew.spawn([awkward, how, "1000"]) as session:
        one = session.aggregate("once", by=["arg2"], value="arg1", histogram=True)
        session.resume()
        assert session.wait(60) == 0
        assert one.read()["sum"].to_pylist() == [sum(range(1000))]


def test_times_are_told_while_it_runs(awkward: Path) -> None:
    with clew.spawn([awkward, "slow", "100000"]) as session:
        log = session.log_calls("once", capture=["arg1"])
        start = time.time_ns()
        session.resume()
        n_rows = 0
        for _ in range(4):
            time.sleep(0.2)
            times = log.read()["time_ns"].to_pylist()
            n_rows += len(times)
            assert times == sorted(times)
            assert start - 50_000_000 < times[0] and times[-1] < time.time_ns() + 50_000_000
        assert n_rows > 4
        session.kill()
