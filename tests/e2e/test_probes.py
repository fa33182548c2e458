"""Probes in programs that execute their own code: events say what the program itself prints, and nothing is left."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import runs
from tests.e2e.probe_sessions import told_program, turns_program
from tests.e2e.probed_program import calls_program
from tests.e2e.process_code import dirty_code, maps_text, read_code_of
from tests.programs.build import SOURCES, build_plain

PROBES = SOURCES / "probes"
Event = dict[str, Any]


def threads_program() -> Path:
    return build_plain(PROBES / "probed_threads.c", "-O2", "-pthread")


def trace(*words: str | Path, timeout: float = 120) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*runs.CLEW, "trace", *words], env=runs.environment(), capture_output=True, check=False, timeout=timeout
    )


def events_of(path: Path) -> list[Event]:
    """The events of a file of JSON lines; none may be lost."""
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert not [one for one in events if "lost" in one]
    return events


def run_told(tmp_path: Path, command: list[str | Path], *options: str) -> tuple[list[Event], bytes]:
    """The events of a command, and what it wrote; its status and that are what they are natively."""
    native = subprocess.run(command, env=runs.environment(), capture_output=True, check=False)
    out = tmp_path / "events.json"
    done = trace(*options, "--format", "json", "-o", out, "--", *command)
    assert (done.returncode, done.stdout) == (native.returncode, native.stdout), done.stderr
    return events_of(out), done.stdout


def test_entries_and_returns_are_what_the_program_prints(tmp_path: Path) -> None:
    events, printed = run_told(tmp_path, [calls_program()], "--function", "add", "-t", "rdi", "-t", "reg:rsi")
    assert [one["event"] for one in events] == ["add_entry", "add_exit"] * 5
    results = [int(line.split()[0]) for line in printed.splitlines()[:5]]
    entries, exits = [one["fields"] for one in events[::2]], [one["fields"] for one in events[1::2]]
    assert [one["rdi"] for one in entries] == [0, 1, 2, 3, 4]
    assert {one["rsi"] for one in entries} == {"0x7"}
    assert [one["retval"] for one in exits] == results
    assert [one["sequence"] for one in events] == [*range(10)]
    assert sorted(one["time_ns"] for one in events) == [one["time_ns"] for one in events]
    assert all(one["duration"] >= 0 for one in exits)


def test_calls_of_a_recursion_are_paired(tmp_path: Path) -> None:
    events, _ = run_told(tmp_path, [calls_program()], "--function", "descend", "-t", "rdi")
    open_calls: list[int] = []
    results = {}
    for one in events:
        if one["event"] == "descend_entry":
            open_calls.append(one["fields"]["rdi"])
        else:
            results[open_calls.pop()] = one["fields"]["retval"]
    assert not open_calls
    assert results == {n: n * (n + 1) // 2 for n in range(7)}


@pytest.mark.parametrize("form", ["{:#x}", "{}", "0{:o}"])
def test_addresses_are_hexadecimal_decimal_and_octal(form: str, tmp_path: Path) -> None:
    program = calls_program()
    names = subprocess.run(["nm", program], capture_output=True, check=True, text=True).stdout
    address = next(int(line.split()[0], 16) for line in names.splitlines() if line.endswith(" add"))
    events, _ = run_told(tmp_path, [program], "--probe", form.format(address))
    assert [int(one["fields"]["ip"], 16) for one in events] == [address] * 5


def test_contexts_are_what_the_rfc_names(tmp_path: Path) -> None:
    """Typed memory and strings by symbols, all registers, a backtrace."""
    contexts = ["regs", "reg:rdi", "int:count:counter", "string:words:*(char **)text", "s32:bad:8", "backtrace:4"]
    options = [word for one in contexts for word in ("-t", one)]
    events, printed = run_told(tmp_path, [calls_program()], "--probe", "add", *options)
    fields = [one["fields"] for one in events]
    counted = [int(line.split()[1]) for line in printed.splitlines()[:5]]
    assert [one["count"] for one in fields] == counted
    assert {one["words"] for one in fields} == {'a "quoted" text'}
    assert {one["bad"] for one in fields} == {None}
    for number, one in enumerate(fields):
        assert int(one["regs"]["rdi"], 16) == int(one["rdi"], 16) == number
        assert one["regs"]["rip"] == one["ip"] == one["backtrace"][0]
        assert len(one["backtrace"]) >= 3


def test_a_filter_chooses(tmp_path: Path) -> None:
    events, _ = run_told(tmp_path, [calls_program()], "--probe", "add", "-t", "rdi", "--filter", "rdi % 2 == 1")
    assert [one["fields"]["rdi"] for one in events] == [1, 3]


def test_libraries_get_probes_before_they_are_initialised(tmp_path: Path) -> None:
    events, _ = run_told(tmp_path, ["ls", "/"], "--function", "libc.so.6!str*")
    kinds = Counter(one["kind"] for one in events)
    assert kinds["entry"] == kinds["return"] > 100
    assert len({one["fields"]["ip"] for one in events}) > 5


def test_children_have_their_parents_probes(tmp_path: Path) -> None:
    program = build_plain(PROBES / "probed_children.c", "-O1", "-pthread")
    events, _ = run_told(tmp_path, [program], "--function", "work", "-t", "rdi", "-t", "str(0)")
    by_process: dict[int, Counter[str]] = defaultdict(Counter)
    for one in events:
        by_process[one["pid"]][one["kind"]] += 1
    first = min(by_process)
    assert by_process.pop(first)["entry"] > 0
    assert len(by_process) == 50
    assert all(kinds == {"entry": 10, "return": 10} for kinds in by_process.values())


def test_threads_that_are_gone_leave_their_room_to_others(tmp_path: Path) -> None:
    program = build_plain(PROBES / "probed_short_threads.c", "-O1", "-pthread")
    out = tmp_path / "events.json"
    done = trace("--probe", "work", "--format", "json", "-o", out, "--", program)
    assert (done.returncode, done.stderr) == (0, b"")
    told = [json.loads(line) for line in out.read_text().splitlines()]
    n_lost = sum(one["lost"] for one in told if "lost" in one)
    # A thousand threads may come faster than anybody reads; there is room for 512 at a time.
    assert len([one for one in told if "event" in one]) + n_lost == 1000
    assert n_lost < 488


def test_programs_that_are_executed_have_them_too(tmp_path: Path) -> None:
    program = calls_program()
    events, _ = run_told(tmp_path, ["sh", "-c", f"{program}; ls / | cat; exec {program}"], "--function", "add")
    by_process = Counter(one["pid"] for one in events)
    assert sorted(by_process.values()) == [10, 10]


@pytest.mark.parametrize("turn", range(3))
def test_nothing_is_left_of_probes_in_a_running_process(turn: int, tmp_path: Path) -> None:
    out = tmp_path / "events.json"
    with subprocess.Popen(
        [threads_program(), "3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        folder = Path(f"/proc/{process.pid}")
        lists = [folder / "fd", folder / "task"]
        before = maps_text(process.pid), [sorted(one.name for one in path.iterdir()) for path in lists]
        options = ["--function", "leaf", "--duration", "0.2", "--format", "json", "-o", str(out)]
        done = trace("-p", str(process.pid), *options)
        assert (done.returncode, done.stderr) == (0, b"")
        assert (maps_text(process.pid), [sorted(one.name for one in path.iterdir()) for path in lists]) == before
        assert not dirty_code(process.pid)
        children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
        assert not children.exists() or not children.read_text()
        assert process.communicate("\n", timeout=60)[0] == "0\n"
    names = Counter(one.get("event") for one in map(json.loads, out.read_text().splitlines()))
    assert names["leaf_entry"] > 100
    assert names["leaf_exit"] > 100


def test_probes_are_gone_soon_after_clew_was_killed() -> None:
    program = threads_program()
    with subprocess.Popen([program, "3"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        before = read_code_of(process.pid, program)
        command = [*runs.CLEW, "trace", "-p", str(process.pid), "--function", "leaf"]
        with subprocess.Popen(command, env=runs.environment(), stdout=subprocess.DEVNULL) as clew:
            runs.wait_until(lambda: read_code_of(process.pid, program) != before)
            clew.kill()
        runs.wait_until(lambda: read_code_of(process.pid, program) == before, seconds=5)
        assert process.communicate("\n", timeout=60)[0] == "0\n"


def test_a_child_that_outlives_the_command_has_no_probes_left(tmp_path: Path) -> None:
    command = runs.clew_command("trace", "-o", tmp_path / "ctf", "--probe", "turn", "--", turns_program())
    with told_program(*command) as program:
        assert program.turn(1) == 8
        child = int(program.ask("leave"))
        runs.wait_until(lambda: not dirty_code(child))
        assert program.turn(2) == 15
        assert not [line for line in maps_text(child).splitlines() if "clew" in line]


def test_events_are_a_trace_of_lttng_s_form(tmp_path: Path) -> None:
    if shutil.which("babeltrace2") is None:
        pytest.skip("babeltrace2 is not installed")
    folder = tmp_path / "ctf"
    done = trace("--function", "add", "-t", "rdi", "-o", folder, "-c", str(calls_program()))
    assert done.returncode == 3, done.stderr
    printed = subprocess.run(["babeltrace2", folder], capture_output=True, check=True, text=True).stdout.splitlines()
    assert len(printed) == 10
    assert [int(found[1]) for line in printed if (found := re.search(r"\brdi = (\d+)", line))] == [0, 1, 2, 3, 4]
    results = [int(line.split()[0]) for line in done.stdout.splitlines()[:5]]
    assert [int(found[1]) for line in printed if (found := re.search(r"\bretval = (\d+)", line))] == results


def test_a_place_that_is_nowhere_is_told() -> None:
    done = trace("--function", "no_such_function", "--", str(calls_program()))
    assert done.returncode == 3
    assert b"no_such_function" in done.stderr


def test_what_is_no_instruction_is_told() -> None:
    done = trace("--probe", "add+1", "--", str(calls_program()))
    assert done.returncode == 3
    assert b"instruction" in done.stderr


def probe(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*runs.CLEW, "probe", *words], env=runs.environment(), capture_output=True, check=False, text=True, timeout=120
    )


def test_events_of_a_pattern_are_called_as_its_functions(tmp_path: Path) -> None:
    events, _ = run_told(tmp_path, [calls_program()], "--function", "[ad]*d")
    assert Counter(one["event"] for one in events) == dict.fromkeys(("add_entry", "add_exit"), 5) | dict.fromkeys(
        ("descend_entry", "descend_exit"), 7
    )


def test_calls_are_a_tree() -> None:
    done = probe("tree", "--function", "add", "--function", "descend", "--json", "--", str(calls_program()))
    assert done.returncode == 3, done.stderr
    paths = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    assert [(one["depth"], one["function"], one["count"]) for one in paths if one["function"] == "descend"] == [
        (depth, "descend", 1) for depth in range(7)
    ]
    [add] = [one for one in paths if one["function"] == "add"]
    assert (add["depth"], add["count"], add["n_left"]) == (0, 5, 0)
    outer = [one["total_ns"] for one in paths if one["function"] == "descend"]
    assert outer == sorted(outer, reverse=True)
    assert all(one["self_ns"] <= one["total_ns"] for one in paths)


def test_places_are_listed_with_what_can_be_taken_there() -> None:
    done = probe("list", "--vars", "add", calls_program())
    assert done.returncode == 0, done.stderr
    first, *variables = done.stdout.splitlines()
    assert " add " in first
    assert "jump" in first
    assert [line.split()[0] for line in variables] == ["var:a", "var:b", "retval"]


def test_a_place_that_is_nowhere_is_not_listed() -> None:
    done = probe("list", "no_such_function", calls_program())
    assert (done.returncode, done.stdout) == (1, "")
    assert "no_such_function" in done.stderr


def rows_of(done: subprocess.CompletedProcess[str]) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]


def test_values_are_added_up_in_the_target() -> None:
    program = str(calls_program())
    counted = probe("count", "--probe", "add", "--probe", "descend", "--json", "--", program)
    assert counted.returncode == 3, counted.stderr
    assert rows_of(counted) == [{"place": "add", "count": 5}, {"place": "descend", "count": 7}]
    [row] = rows_of(
        probe("hist", "--probe", "descend", "--value", "rdi", "--filter", "rdi > 2", "--json", "--", program)
    )
    assert {name: row[name] for name in ("count", "sum", "min", "max")} == {"count": 4, "sum": 18, "min": 3, "max": 6}
    by_key = rows_of(probe("count", "--probe", "descend", "--by", "rdi % 2", "--json", "--", program))
    assert {row["rdi % 2"]: row["count"] for row in by_key} == {0: 4, 1: 3}


def test_latencies_are_those_of_each_call() -> None:
    """Of a recursion, too: the outer call takes longer than the one within."""
    [row] = rows_of(probe("latency", "--function", "descend", "--json", "--", str(calls_program())))
    assert row["count"] == 7
    assert 0 <= row["min"] < row["max"] <= row["sum"] < 10**9


def test_children_and_executed_programs_are_counted_together() -> None:
    program = calls_program()
    done = probe("count", "--probe", "add", "--json", "--", "sh", "-c", f"{program}; {program}; exec {program}")
    assert rows_of(done) == [{"place": "add", "count": 15}]
