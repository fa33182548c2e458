"""Several sessions of probes in one process: each is told all that is its, whoever of them came, and ends, first."""

from __future__ import annotations

import subprocess
import time
from contextlib import ExitStack

import pytest

from tests.e2e import runs
from tests.e2e.probe_sessions import Sessions, told_program, turns_program
from tests.e2e.probe_tracing import BOTH, WARM, Tracing, has_joined, is_left, rows_of, tracing, turn_all, wait_for
from tests.e2e.process_code import read_code_of


@pytest.mark.parametrize("ends_first", ["first", "second"])
def test_two_on_one_function_are_told_all_calls(ends_first: str, sessions: Sessions) -> None:
    with told_program() as program:
        code = read_code_of(program.pid, turns_program())
        with (
            tracing(sessions, "first", program, *BOTH) as first,
            tracing(sessions, "second", program, *BOTH, "-t", "reg:rsp") as second,
        ):
            turn_all(program, range(500))
            one, other = (first, second) if ends_first == "first" else (second, first)
            started = time.monotonic()
            assert not one.end()
            assert time.monotonic() - started < 10
            turn_all(program, range(500, 800))
            assert not other.end()
        assert one.arguments() == list(range(500))
        assert other.arguments() == list(range(800))
        for each in (one, other):
            calls, returns = each.arguments(), each.events("turn_exit")
            results = [int(event["fields"]["retval"]) for event in returns]
            assert [one for one in results if one < WARM] == [7 * n + 1 for n in calls]
        assert "rsp" in second.events()[0]["fields"]
        assert "rsp" not in first.events()[0]["fields"]
        # The process that had them for the last one ends with that.
        runs.wait_until(lambda: is_left(sessions, program))
        assert read_code_of(program.pid, turns_program()) == code


def test_filters_and_captures_at_one_place_are_each_one_s_own(sessions: Sessions) -> None:
    with told_program() as program:
        odd = ("--function", "turn", "-t", "arg1", "--filter", "arg1 % 2 == 1")
        with (
            tracing(sessions, "all", program, *BOTH) as every,
            tracing(sessions, "odd", program, *odd) as some,
            tracing(sessions, "point", program, "--probe", "turn", "-t", "arg1", "-t", "regs", event="turn") as point,
        ):
            turn_all(program, range(300))
            for one in (some, every, point):
                assert not one.end()
        assert every.arguments() == point.arguments("turn") == list(range(300))
        assert some.arguments() == list(range(1, 300, 2))
        assert "regs" in point.events("turn")[0]["fields"]
        runs.wait_until(lambda: is_left(sessions, program))


@pytest.mark.parametrize("is_killed", [False, True])
def test_sums_beside_events(is_killed: bool, sessions: Sessions) -> None:
    """What each adds up is its own, and stays what it was where the session goes that had the process."""
    with told_program() as program:
        code = read_code_of(program.pid, turns_program())
        first = Tracing(sessions, "first", program.pid, *BOTH)
        wait_for(first, program, "turn_entry")
        commands = [
            ["count", "--probe", "turn", "--by", "arg1 % 3", "--filter", f"arg1 < {WARM}"],
            ["hist", "--probe", "other", "--value", "arg1", "--filter", f"arg1 < {WARM}"],
            ["latency", "--function", "turn", "--filter", f"arg1 < {WARM}"],
        ]
        pid = str(program.pid)
        adding = [
            runs.start(
                [*runs.CLEW, "probe", *command, "--json", "-p", pid],
                environ=sessions.environment,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for command in commands
        ]
        # Each has it once all have: they are told apart by nothing that could be seen from here.
        runs.wait_until(lambda: all(has_joined(one.pid, program.pid) for one in adding), seconds=60)
        with tracing(sessions, "last", program, *BOTH):
            turn_all(program, range(300))
            if is_killed:
                first.process.kill()
                first.process.wait()
                runs.wait_until(lambda: read_code_of(program.pid, turns_program()) == code, seconds=5)
                runs.wait_until(lambda: read_code_of(program.pid, turns_program()) != code, seconds=20)
            else:
                first.end()
                turn_all(program, range(300, 600))
            counts, values, times = (rows_of(one) for one in adding)
        n = 300 if is_killed else 600
        assert {row["arg1 % 3"]: row["count"] for row in counts} == {0: n // 3, 1: n // 3, 2: n // 3}
        assert [(row["count"], row["sum"], row["max"]) for row in values] == [(n, n * (n - 1) // 2, n - 1)]
        assert [row["count"] for row in times] == [n]


@pytest.mark.parametrize("n_others", [1, pytest.param(2, marks=pytest.mark.long)])
def test_the_others_go_on_where_the_one_that_has_the_process_is_killed(n_others: int, sessions: Sessions) -> None:
    """Soon after; how long there was nothing is told. All is there that came before, and that comes then."""
    with told_program() as program:
        code = read_code_of(program.pid, turns_program())
        with tracing(sessions, "first", program, *BOTH) as first:
            others = [Tracing(sessions, f"other{n}", program.pid, *BOTH) for n in range(n_others)]
            try:
                for one in others:
                    wait_for(one, program, "turn_entry")
                turn_all(program, range(100))
                started = time.monotonic()
                first.process.kill()
                first.process.wait()
                # The code leads to probes still, for a second or so: what comes of them is in memory.
                turn_all(program, range(100, 200))
                runs.wait_until(lambda: read_code_of(program.pid, turns_program()) == code, seconds=5)
                for one in others:
                    wait_for(one, program, "turn_entry")
                assert time.monotonic() - started < 10
                turn_all(program, range(200, 300))
                for one in others:
                    assert "nothing was told for" in one.end()
                    assert one.arguments() == list(range(300))
            finally:
                for one in others:
                    one.process.kill()
                    one.process.communicate()
        # What the killed one had mapped stays, of which nothing is executed.
        runs.wait_until(lambda: read_code_of(program.pid, turns_program()) == code)
        assert program.turn(3) == 22


def test_a_session_after_one_that_was_killed_is_told_everything(sessions: Sessions) -> None:
    with told_program() as program:
        code = read_code_of(program.pid, turns_program())
        with tracing(sessions, "first", program, *BOTH) as first:
            first.process.kill()
            first.process.wait()
        runs.wait_until(lambda: read_code_of(program.pid, turns_program()) == code, seconds=5)
        with tracing(sessions, "second", program, *BOTH) as second:
            turn_all(program, range(100))
            assert not second.end()
        assert second.arguments() == list(range(100))


@pytest.mark.parametrize("recorder_first", [False, True])
def test_a_flight_recorder_beside_two_others(recorder_first: bool, sessions: Sessions) -> None:
    newest = ("--function", "turn", "-t", "arg1", "--snapshot", "4k")
    with told_program() as program:
        before = [] if recorder_first else [tracing(sessions, "first", program, *BOTH)]
        with ExitStack() as stack:
            others = [stack.enter_context(one) for one in before]
            recorder = Tracing(sessions, "recorder", program.pid, *newest)
            stack.callback(recorder.process.kill)
            runs.wait_until(lambda: has_joined(recorder.process.pid, program.pid), seconds=60)
            while len(others) < 2:
                others.append(stack.enter_context(tracing(sessions, f"other{len(others)}", program, *BOTH)))
            turn_all(program, range(1000))
            for one in others:
                assert not one.end()
                assert one.arguments() == list(range(1000))
            turn_all(program, range(1000, 1100))
            recorder.end()
        found = recorder.arguments()
        assert 10 <= len(found) < 200
        assert found == list(range(1100 - len(found), 1100))
        runs.wait_until(lambda: is_left(sessions, program))
