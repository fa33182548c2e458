"""Logs of calls: recorded where they are made, by the engine, while no thread stops."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

import clew
from clew.errors import CaptureError, ControlError
from tests.fuzz import captures as random_captures
from tests.programs.build import SOURCES, build_plain
from tests.sessions.test_call_probes import TURNS, expected_calls


def test_calls_are_recorded_however_they_are_made(called: Path) -> None:
    with clew.spawn([called, str(TURNS)]) as session:
        log = session.log_calls("add", capture=["arg1", "(int)arg2 * 2"])
        assert log.read().num_rows == 0
        session.resume()
        session.wait(60)
        table = log.read()
        assert table.schema == log.schema
        rows = table.to_pylist()
        assert log.read().num_rows == 0, "what was read is let go of"
        assert not session.trace.verify()
    assert [(row["arg1"], row["(int)arg2 * 2"] // 2) for row in rows] == expected_calls(TURNS)
    assert {(row["pid"], row["tid"]) for row in rows} == {(session.pid, session.pid)}
    assert len({row["pc"] for row in rows}) == 1
    times = [row["time_ns"] for row in rows]
    assert times == sorted(times)


@pytest.mark.parametrize("mode", ["coverage", "counts", "full"])
def test_threads_each_have_their_calls_in_their_order(called: Path, mode: str) -> None:
    n_threads, turns = 6, 400
    with clew.spawn([called, str(turns), str(n_threads)], mode=mode) as session:
        log = session.log_calls("add", capture=["arg1", "arg2"])
        session.resume()
        session.wait(60)
        rows = log.read().to_pylist()
        assert not session.trace.verify()
    by_thread: dict[int, list[tuple[int, int]]] = {}
    for row in rows:
        by_thread.setdefault(row["tid"], []).append((row["arg1"], row["arg2"]))
    assert list(by_thread.values()) == [expected_calls(turns)] * n_threads


def test_a_condition_chooses_without_stopping_anybody(called: Path) -> None:
    with clew.spawn([called, str(TURNS)]) as session:
        some = session.log_calls("add", capture=["arg1"], condition="arg2 == 3 && arg1 > 4")
        texts = session.log_calls(
            "handle", capture=["str(*(char**)(arg1 + 8))"], condition='str(*(char**)(arg1 + 8)) == "/odd"'
        )
        bad = session.log_calls("add", condition="*(int*)0 == 0")
        session.resume()
        session.wait(60)
        assert some.read()["arg1"].to_pylist() == list(range(5, TURNS))
        assert texts.read().column(4).to_pylist() == [b"/odd"] * (TURNS // 2)
        assert bad.read().num_rows == 0, "a condition that can't be had does not hold"


def test_strings_floats_and_what_is_missing(called: Path) -> None:
    with clew.spawn([called, "2"]) as session:
        handled = session.log_calls(
            "handle", capture=["*(int*)arg1", "str(*(char**)(arg1 + 8))", "*(long*)8", "(unsigned char)arg2"]
        )
        scaled = session.log_calls("scale", capture=["xmm0", "(float)xmm1", "comm", "pid", "tid"])
        session.resume()
        session.wait(60)
        rows = handled.read().to_pylist()
        assert [list(row.values())[4:] for row in rows] == [[0, b"/even", None, 200], [1, b"/odd", None, 200]]
        rows = scaled.read().to_pylist()
        assert {(row["pid"], row["tid"]) for row in rows} == {(session.pid, session.pid)}
        name = Path(called).name.encode()[:15]
        assert [list(row.values())[4:] for row in rows] == [[1.5, float(n), name] for n in range(2)]


def test_no_call_is_recorded_twice_where_signals_come() -> None:
    program = build_plain(SOURCES / "sessions/interrupted.c", "-O1", "-fno-inline", "-fno-ipa-cp")
    n_calls = 300_000
    with clew.spawn([program, str(n_calls)]) as session:
        log = session.log_calls("counted", capture=["arg1", "arg2"])
        session.resume()
        assert session.wait(120) == 0
        table = log.read()
        assert not session.trace.verify()
    calls = list(zip(table["arg1"].to_pylist(), table["arg2"].to_pylist(), strict=True))
    assert [number for number, depth in calls if depth == 0] == list(range(n_calls))
    handled = [number for number, depth in calls if depth == 1]
    assert handled == list(range(len(handled))) and handled


def test_no_call_is_told_twice_where_signals_come() -> None:
    program = build_plain(SOURCES / "sessions/interrupted.c", "-O1", "-fno-inline", "-fno-ipa-cp")
    seen: list[int] = []
    with clew.spawn([program, "300"]) as session:
        session.on_call("counted", lambda call: seen.append(call.arguments[0]), condition="arg2 == 0")
        session.resume()
        assert session.wait(120) == 0
    assert seen == list(range(300))


def test_many_functions_at_once_and_none_any_more(called: Path) -> None:
    with clew.spawn([called, "200"]) as session:
        start = session.find("add")
        logs = [session.log_calls(start + offset, capture=["rip"]) for offset in (0, 0, 0)]
        more = [
            session.log_calls(f"libc.so.6!{name}") for name in ("strlen", "puts", "malloc", "free", "memcpy", "write")
        ]
        logs[1].remove()
        session.resume()
        session.wait(60)
        counts = [log.read().num_rows for log in logs]
        assert counts == [600, 0, 600]
        assert len(more) == 6


def test_children_and_executed_programs_are_recorded_too(tmp_path: Path, called: Path) -> None:
    with clew.spawn(["/bin/sh", "-c", f"{called} 3; {called} 2; :"]) as session:
        log = session.log_calls("add", capture=["arg1", "arg2"])
        session.resume()
        session.wait(60)
        rows = log.read().to_pylist()
    by_process: dict[int, list[tuple[int, int]]] = {}
    for row in rows:
        by_process.setdefault(row["pid"], []).append((row["arg1"], row["arg2"]))
    assert list(by_process.values()) == [expected_calls(3), expected_calls(2)]
    assert session.pid not in by_process


def test_a_log_and_a_callback_at_one_place_see_the_same(called: Path) -> None:
    seen = Counter[int]()
    with clew.spawn([called, "50"]) as session:
        log = session.log_calls("add", capture=["arg1"])
        session.on_call("add", lambda call: seen.update([call.arguments[0]]), capture=["arg1"], condition="arg2 == 1")
        session.resume()
        session.wait(60)
        assert Counter(log.read()["arg1"].to_pylist()) == Counter(pair[0] for pair in expected_calls(50))
    assert seen == Counter(pair[0] for pair in expected_calls(50) if pair[1] == 1)


def test_what_there_is_no_room_for_is_refused(called: Path) -> None:
    with clew.spawn([called, "2"]) as session:
        with pytest.raises(CaptureError):
            session.log_calls("add", capture=[" + ".join(["arg1"] + [str(n) for n in range(100)] * 2)])
        logs = [session.log_calls("add", capture=["arg1"]) for _ in range(15)]
        with pytest.raises(ControlError, match="no room for one more capture at this place"):
            session.log_calls("add", capture=["arg1"])
        session.resume()
        session.wait(60)
        assert {log.read().num_rows for log in logs} == {6}


@pytest.mark.parametrize("seed", [0, 1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
def test_random_captures_are_worth_what_the_interpreter_says(tmp_path: Path, seed: int) -> None:
    assert not random_captures.run_batch(random_captures.build(), tmp_path, seed)


@pytest.mark.parametrize(
    ("mode", "n_calls"), [("counts", 400), ("full", 80), pytest.param("full", 400, marks=pytest.mark.long)]
)
def test_hot_code_counts_the_same_where_threads_stop_in_it(
    mode: str, n_calls: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What was left at a capture was counted by its leader; what is come back to counts otherwise.
    monkeypatch.setenv("CLEW_RELAYOUT", "20")
    program = build_plain(SOURCES / "sessions/hot_calls.c", "-O1", "-fno-inline")
    before = executions_of_hot(program, n_calls)
    with clew.spawn([program, str(n_calls)], mode=mode) as session:
        start = session.find("hot")
        probes = [session.on_call(start + offset, lambda call: None) for offset in before]
        session.resume()
        assert session.wait(120) == 0
        assert not session.trace.verify()
        assert [probe.n_calls for probe in probes] == list(before.values())
        after = {
            int(row["symbol_offset"]): row["executions"]
            for row in session.trace.report(by="block", n=1 << 30)
            if row["symbol"] == "hot"
        }
    assert after == before


def executions_of_hot(program: Path, n_calls: int) -> dict[int, int]:
    """How often each block of `hot` runs, by its offset in it."""
    with clew.spawn([program, str(n_calls)]) as session:
        session.resume()
        session.wait(60)
        rows = session.trace.report(by="block", n=1 << 30)
    return {int(row["symbol_offset"]): row["executions"] for row in rows if row["symbol"] == "hot"}


def test_a_program_that_steps_through_itself_sees_its_own_registers(tmp_path: Path) -> None:
    program = build_plain(SOURCES / "sessions/stepped_calls.c", "-O1", "-fno-stack-protector")
    subprocess.run([program, tmp_path / "native"], check=True)
    with clew.spawn([program, tmp_path / "followed"]) as session:
        log = session.log_calls("stepped_function", capture=["arg1", "rcx", 'str(rsp) == "no"', "1.5 * farg1", "rip"])
        some = session.log_calls("stepped_function", capture=["arg1", "comm"], condition="arg1 % 2 == 1")
        session.resume()
        assert session.wait(60) == 0
        assert log.read()["arg1"].to_pylist() == list(range(20))
        assert some.read()["arg1"].to_pylist() == list(range(1, 20, 2))
        assert not session.trace.verify()
    assert (tmp_path / "followed").read_text() == (tmp_path / "native").read_text()


def test_calls_of_a_process_that_runs_already(called: Path) -> None:
    program = build_plain(SOURCES / "sessions/hot_calls.c", "-O1", "-fno-inline")
    with subprocess.Popen([program, str(1 << 40)]) as process:
        try:
            with clew.attach_session(process.pid) as session:
                log = session.log_calls("hot", capture=["arg1"], condition="arg1 % 1000 == 0")
                numbers: list[int] = []
                deadline = time.monotonic() + 60
                while len(numbers) < 1000 and time.monotonic() < deadline:
                    numbers += log.read()["arg1"].to_pylist()
                session.detach()
            assert len(numbers) >= 1000
            assert numbers == list(range(numbers[0], numbers[0] + 1000 * len(numbers), 1000))
            assert process.poll() is None
        finally:
            process.kill()
