"""Call probes: a callback whenever a function is called, or returns, however that is."""

from __future__ import annotations

import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.sessions.calls import Call

TURNS = 20


def expected_calls(turns: int) -> list[tuple[int, int]]:
    """The arguments of `add`, in their order."""
    return [pair for n in range(turns) for pair in ((n, 1), (2, n), (n, 3))]


def test_calls_are_told_however_they_are_made(called: Path) -> None:
    seen: list[tuple[int, int]] = []
    with clew.spawn([called, str(TURNS)]) as session:

        @session.on_call("add", capture=["arg1", "(long)arg2 * 2"])
        def probe(call: Call) -> None:
            seen.append((call.arguments[0], call.arguments[1]))
            assert call["arg1"] == call.arguments[0] == call.registers["rdi"]
            assert call["(long)arg2 * 2"] == 2 * call.arguments[1]

        session.resume()
        session.wait(60)
        assert probe.n_calls == len(seen)
        trace = session.trace
        assert not trace.verify()
    assert seen == expected_calls(TURNS)


def test_returns_have_results_and_their_calls(called: Path) -> None:
    calls: dict[int, int] = {}
    results: dict[int, Any] = {}
    with clew.spawn([called, str(TURNS)]) as session:
        session.on_call("add", lambda call: calls.__setitem__(call.number, sum(call.arguments[i] for i in (0, 1))))
        probe = session.on_return("add", lambda call: results.__setitem__(call.number, call.result), capture="retval")
        assert probe.n_places == 1
        session.resume()
        session.wait(60)
        assert session.n_missed == 0
    assert len(calls) == 3 * TURNS
    assert results == calls


def test_recursion_returns_from_the_innermost_out(called: Path) -> None:
    seen: list[tuple[str, int]] = []
    with clew.spawn([called, "1"]) as session:
        session.on_call("descend", lambda call: seen.append(("call", call.arguments[0])))
        session.on_return("descend", lambda call: seen.append(("return", call.result)))
        session.resume()
        session.wait(60)
    assert seen == [("call", n) for n in (3, 2, 1, 0)] + [("return", n) for n in (0, 1, 2, 3)]


def test_a_call_that_is_left_does_not_return(called: Path) -> None:
    seen = []
    with clew.spawn([called, "1"]) as session:
        session.on_call("leave", lambda call: seen.append("call"))
        session.on_return("leave", lambda call: seen.append("return"))
        session.resume()
        session.wait(60)
    assert seen == ["call"]


def test_strings_floats_and_more_arguments_than_registers(called: Path) -> None:
    seen: dict[str, list[object]] = {"handle": [], "scale": [], "eight": []}
    with clew.spawn([called, "2"]) as session:
        fields = ["*(int*)arg1", "str(*(char**)(arg1 + 8))", "(unsigned char)arg2"]
        session.on_call("handle", lambda call: seen["handle"].append(tuple(call.captured.values())), capture=fields)
        session.on_call(
            "scale",
            lambda call: seen["scale"].append((call["farg1"], call["(int)arg1"], call["farg2"])),
            capture=["farg1", "(int)arg1", "farg2"],
        )
        session.on_call("sum_of_eight", lambda call: seen["eight"].append([call.arguments[i] for i in range(8)]))
        session.resume()
        session.wait(60)
    assert seen["handle"] == [(0, b"/even", 200), (1, b"/odd", 200)]
    assert seen["scale"] == [(1.5, 2, 0.0), (1.5, 2, 1.0)]
    assert seen["eight"] == [[1, 2, 3, 4, 5, 6, 7, n] for n in (0, 1)]


def test_a_condition_chooses(called: Path) -> None:
    seen: list[object] = []
    with clew.spawn([called, str(TURNS)]) as session:
        session.on_call(
            "handle",
            lambda call: seen.append(call["*(int*)arg1"]),
            capture=["*(int*)arg1"],
            condition='str(*(char**)(arg1 + 8)) == "/odd" && *(int*)arg1 > 10',
        )
        session.resume()
        session.wait(60)
    assert seen == [11, 13, 15, 17, 19]


def test_arguments_and_results_can_be_changed(called: Path, capfd: pytest.CaptureFixture[str]) -> None:
    native = int(subprocess.run([called, "1"], capture_output=True, text=True).stdout)
    with clew.spawn([called, "1"]) as session:

        def change(call: Call) -> None:
            call.arguments[0] = call.arguments[0] + 1000
            with pytest.raises(clew.ClewError):
                call.registers["rip"] = 0

        session.on_call("add", change)
        session.on_call("sum_of_eight", lambda call: call.arguments.__setitem__(7, 50))
        session.on_return("handle", lambda call: setattr(call, "result", call.result + 7))
        session.resume()
        session.wait(60)
        assert not session.trace.verify()
    assert int(capfd.readouterr().out) == native + 3 * 1000 + 50 + 7


def test_the_backtrace_of_a_call(called: Path) -> None:
    traces = []
    with clew.spawn([called, "1"]) as session:
        session.on_call("descend", lambda call: traces.append([frame.function for frame in call.backtrace()]))
        session.resume()
        session.wait(60)
    for depth, functions in enumerate(traces):
        assert functions[: depth + 3] == ["descend"] * (depth + 1) + ["turn", "run"]
        assert functions[-1] == "_start"


def test_many_threads_each_with_its_calls(called: Path) -> None:
    n_threads, turns = 6, 15
    seen: Counter[tuple[int, int]] = Counter()
    threads: set[int] = set()

    def note(call: Call) -> None:
        seen[(call.arguments[0], call.arguments[1])] += 1
        threads.add(call.tid)
        assert call.thread.name == "called" and call.thread.tid == call.tid

    with clew.spawn([called, str(turns), str(n_threads)]) as session:
        session.on_call("add", note)
        results = Counter[int]()
        session.on_return("add", lambda call: results.update([call.result]))
        session.resume()
        session.wait(60)
        assert session.n_overdue == 0
    assert seen == Counter({pair: n * n_threads for pair, n in Counter(expected_calls(turns)).items()})
    assert results == Counter(a + b for a, b in expected_calls(turns) for _ in range(n_threads))
    assert len(threads) == n_threads


def test_functions_of_libraries_are_met_when_they_are_loaded(called: Path) -> None:
    seen: list[object] = []
    with clew.spawn([called, "2"]) as session:
        probe = session.on_call("libc.so.6!strlen", lambda call: seen.append(call["str(arg1)"]), capture="str(arg1)")
        assert probe.n_places == 0
        session.on_call("nowhere_at_all", lambda call: seen.append("never"))
        session.resume()
        session.wait(60)
        assert "never" not in seen


def test_a_probe_is_removed_and_another_is_added_while_it_runs(called: Path) -> None:
    with clew.spawn([called, "100000000"]) as session:
        counted = Counter[str]()
        first = session.on_call("add", lambda call: counted.update(["add"]))
        session.resume()
        while counted["add"] < 5:
            time.sleep(0.01)
        first.remove()
        before = counted["add"]
        session.on_call("scale", lambda call: counted.update(["scale"]))
        while counted["scale"] < 5:
            time.sleep(0.01)
        assert counted["add"] == before


def test_what_a_callback_raises_is_raised_where_somebody_waits(called: Path) -> None:
    native = subprocess.run([called, "5"], capture_output=True)
    with clew.spawn([called, "5"]) as session:
        calls = []

        def fail(call: Call) -> None:
            calls.append(call)
            raise ValueError("not today")

        session.on_call("add", fail)
        session.resume()
        with pytest.raises(ValueError, match="not today"):
            session.wait(60)
        assert session.wait(60) == native.returncode
        assert len(calls) == 1


def test_a_callback_that_takes_too_long_holds_nothing_up(called: Path) -> None:
    with clew.spawn([called, "1"]) as session:
        session.on_call("scale", lambda call: time.sleep(2.5))
        session.resume()
        session.wait(60)
    assert session.n_overdue == 1


def test_children_have_the_probes_of_their_parent(tmp_path: Path) -> None:
    source = tmp_path / "parent.c"
    source.write_text(
        "#include <sys/wait.h>\n#include <unistd.h>\n"
        '__attribute__((noinline)) int work(int n) { __asm__ volatile(""); return n + 1; }\n'
        "int main(void) { int status; work(1); if (fork() == 0) _exit(work(2)); wait(&status); work(3);\n"
        "    return WEXITSTATUS(status); }\n"
    )
    program = tmp_path / "parent"
    subprocess.run(["gcc", "-O1", "-o", program, source], check=True)
    seen: list[tuple[int, int]] = []
    with clew.spawn([program]) as session:
        session.on_call("work", lambda call: seen.append((call.pid, call.arguments[0])))
        session.on_return("work", lambda call: setattr(call, "result", call.result * 10))
        session.resume()
        assert session.wait(60) == 30
    assert [argument for _, argument in seen] == [1, 2, 3]
    assert seen[0][0] == seen[2][0] == session.pid != seen[1][0]


def test_programs_that_are_executed_have_the_probes(called: Path) -> None:
    seen = []
    with clew.spawn(["sh", "-c", f"exec {called} 1"]) as session:
        session.on_call("called!scale", lambda call: seen.append(call["farg1"]), capture="farg1")
        session.resume()
        session.wait(60)
    assert seen == [1.5]


def test_where_whole_blocks_are_tagged_there_are_no_probes(called: Path) -> None:
    with clew.spawn([called, "1"], mode="region") as session:
        with pytest.raises(clew.ClewError, match="no call probes there"):
            session.on_call("add", lambda call: None)
        session.resume()
        session.wait(60)
