"""The same events come by every technique; a jump can be required."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

import clew
from clew.sessions.probes.hit_costs import find_costs
from tests.e2e.probed_program import calls_program, run_clew
from tests.programs.build import SOURCES, build_plain

LINE = "probed_calls.c:12"
OPTIONS = ["--function", "add", "--function", "descend", "--probe", LINE, "-t", "rdi", "-t", "str(text)", "-t", "cpu"]
TIGHT = r"""
#include <stdio.h>

__asm__(".text\n"
        ".globl tight\n"
        ".type tight, @function\n"
        "tight: cmp $1, %rdi\n"
        "je 3f\n"
        "mov $0, %eax\n"
        "1: add $1, %eax\n"
        "dec %rdi\n"
        "je 2f\n"
        "jmp 1b\n"
        "2: ret\n"
        "3: mov $0, %eax\n"
        "ret\n"
        ".size tight, . - tight\n");

long tight(long n);

int main(int n_words, char **words)
{
    (void)words;
    if (n_words > 1) {
        puts("ready");
        fflush(stdout);
        getchar();
    }
    printf("%ld\n", tight(1) + tight(2) + tight(3));
    return 0;
}
"""
OWN = ("ip", "parent_ip", "duration", "cpu")
"""What differs from run to run, or is of the machine."""


def run_probe(*words: str | Path, status: int = 3) -> subprocess.CompletedProcess[str]:
    return run_clew("probe", *words, status=status)


def events_by(backend: str, path: Path, *options: str) -> list[dict[str, Any]]:
    out = path / f"{backend}.json"
    run_probe("trace", *options, "--backend", backend, "--format", "json", "-o", out, "--", calls_program())
    return [json.loads(line) for line in out.read_text().splitlines()]


def told(events: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    return [
        (one["event"], one["sequence"], {name: value for name, value in one["fields"].items() if name not in OWN})
        for one in events
    ]


@pytest.fixture(scope="module")
def usual(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return events_by("auto", tmp_path_factory.mktemp("auto"), *OPTIONS)


@pytest.mark.parametrize("backend", ["jump", "trap", "engine"])
def test_the_same_events_come_by_every_technique(backend: str, usual: list[dict[str, Any]], tmp_path: Path) -> None:
    events = events_by(backend, tmp_path, *OPTIONS)
    assert told(events) == told(usual) and len(events) == 5 * 3 + 7 * 2
    # It is not linked to where it likes.
    assert [one["fields"]["ip"] for one in events] == [one["fields"]["ip"] for one in usual]


def test_all_places_trap_that_are_told_to() -> None:
    with clew.probe_session([calls_program()], stdout=subprocess.DEVNULL, backend="trap") as session:
        probes = [session.probe("add", function=True), session.probe(LINE)]
        assert {place.backend for probe in probes for place in probe.places} == {"trap"}
        session.resume()
        assert session.wait(60) == 3
        assert [probe.n_events for probe in probes] == [10, 5]


def test_sums_and_trees_are_those_of_the_engine_too() -> None:
    words = ["--backend", "engine", "--json", "--"]
    counted = run_probe("count", "--probe", "add", "--by", "rdi % 2", "--filter", "rdi < 4", *words, calls_program())
    rows = [json.loads(line) for line in counted.stdout.splitlines() if line.startswith("{")]
    assert sorted((row["rdi % 2"], row["count"]) for row in rows) == [(0, 2), (1, 2)]
    took = run_probe("latency", "--function", "descend", "--filter", "rdi % 2 == 1", *words, calls_program())
    [row] = [json.loads(line) for line in took.stdout.splitlines() if line.startswith("{")]
    assert row["count"] == 3 and 0 < row["min"] <= row["max"]
    tree = run_probe("tree", "--function", "descend", *words, calls_program())
    paths = [json.loads(line) for line in tree.stdout.splitlines() if line.startswith("{")]
    assert [one["depth"] for one in paths] == [*range(7)]


def test_the_engine_refuses_before_anything_runs() -> None:
    refused = run_probe("trace", "--backend", "engine", "--probe", "main+1", "--", calls_program(), status=2)
    assert "it is inside of the instruction" in refused.stderr and refused.stdout == ""
    nowhere = run_probe("trace", "--backend", "engine", "--probe", "no_such_function", "--", calls_program())
    assert "no_such_function" in nowhere.stderr


def test_the_engine_leaves_a_running_process(tmp_path: Path) -> None:
    program = build_plain(SOURCES / "probes/probed_threads.c", "-O2", "-pthread")
    with subprocess.Popen([program, "2"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        before = Path(f"/proc/{process.pid}/maps").read_text()
        words = ["--probe", "leaf", "--by", "tid", "-p", str(process.pid), "--duration", "0.3", "--json"]
        done = run_probe("count", "--backend", "engine", *words, status=0)
        rows = [json.loads(line) for line in done.stdout.splitlines()]
        tids = {int(tid) for tid in os.listdir(f"/proc/{process.pid}/task")} - {process.pid}
        # A busy machine may keep one from running for as long.
        assert rows and {row["tid"] for row in rows} <= tids and all(row["count"] > 0 for row in rows)
        assert Path(f"/proc/{process.pid}/maps").read_text() == before
        out, _ = process.communicate(b"\n", timeout=60)
        assert (out, process.returncode) == (b"0\n", 0)


@pytest.fixture(scope="module")
def tight(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program whose function `tight` has a return that no jump has room at."""
    source = tmp_path_factory.mktemp("tight") / "tight.c"
    source.write_text(TIGHT)
    program = source.with_suffix("")
    subprocess.run(["gcc", "-O1", "-no-pie", "-o", program, source], check=True)
    return program


def test_what_would_trap_is_told_or_refused(tight: Path) -> None:
    done = run_probe("trace", "--backend", "jump", "--function", "tight", "--", tight, status=0)
    [said] = done.stderr.splitlines()
    assert said.startswith("clew: tight: tight!tight: 0x") and "traps: " in said and "is branched to" in said
    assert len(done.stdout.splitlines()) == 7, "what it prints, and three calls"
    for backend in ("auto", "jump"):
        words = ["--backend", backend, "--require", "jump", "--function", "tight"]
        refused = run_probe("trace", *words, "--", tight, status=2)
        assert "it would trap: 0x" in refused.stderr and "is branched to" in refused.stderr
        assert refused.stdout == "", "the program has not run"
    # In front of its first instruction is room.
    counted = run_probe("count", "--require", "jump", "--probe", "tight", "--json", "--", tight, status=0)
    assert json.loads(counted.stdout.splitlines()[-1]) == {"place": "tight", "count": 3}


def test_a_process_is_as_it_was_where_a_required_jump_is_refused(tight: Path) -> None:
    with subprocess.Popen([tight, "wait"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None and process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        before = Path(f"/proc/{process.pid}/maps").read_text()
        refused = run_probe("trace", "--require", "jump", "--function", "tight", "-p", str(process.pid), status=2)
        assert "it would trap" in refused.stderr
        assert Path(f"/proc/{process.pid}/maps").read_text() == before
        with clew.probe_session(process.pid, require="jump") as session:
            with pytest.raises(clew.ClewError, match="it would trap"):
                session.probe("tight", function=True)
            probe = session.probe("tight", capture="rdi")
            assert [place.backend for place in probe.places] == ["jump"]
            process.stdin.close()
            session.wait(60)
            assert probe.read()["rdi"].to_pylist() == [1, 2, 3]


def test_what_hits_cost_is_measured_and_known_from_then_on(
    tight: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What commands have of the environment in tests.
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))

    def listed(*options: str) -> list[str]:
        return run_probe("list", *options, "tight", tight, status=0).stdout.split()

    assert "ns" not in listed()
    before = listed("--measure")
    assert before[-1] == "ns" and listed() == before
    costs = find_costs()
    assert costs is not None and 0 < costs.jump < costs.trap
    assert float(before[-2].replace(",", "")) == costs.jump
    with clew.probe_session([tight], stdout=subprocess.DEVNULL) as session:
        places = session.probe("tight", function=True).places
        assert {place.backend: place.cost_ns for place in places} == {"jump": costs.jump, "trap": costs.trap}
    [kept] = tmp_path.rglob("*.json")
    kept.write_text(kept.read_text().replace('"boot": "', '"boot": "another'))
    assert find_costs() is None
    kept.write_text("[1]")
    assert find_costs() is None


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--backend", "nothing"], "it is one of auto, jump, trap"),
        (["--require", "trap"], "only a jump can be required"),
        (["--require", "jump", "--backend", "trap"], "can't be required of backend trap"),
    ],
)
def test_what_can_not_be_chosen_is_told(words: list[str], why: str) -> None:
    assert why in run_probe("trace", *words, "--probe", "main", "--", "true", status=2).stderr
