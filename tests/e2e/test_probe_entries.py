"""What was known when a call began is told where it returns, and adds up by that: what it names may be gone by then."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.probed_program import PROBES, run_clew
from tests.programs.build import build_plain

FIELDS = ("n=entry(arg1)", "count=entry(var:box->count)", "name=entry(str(var:box->name))", "again=entry(arg1) + 1")


@pytest.fixture
def program() -> Path:
    return build_plain(PROBES / "probed_entries.c", "-O1", "-g")


def returned(said: str) -> list[tuple[int, int, str, int]]:
    """What the program says of its calls."""
    rows = [line.split() for line in said.splitlines()]
    return [(int(n), int(count), name, int(result)) for n, count, name, result in rows]


@pytest.mark.parametrize("chosen", ["", "arg1 > 2"])
@pytest.mark.parametrize("backend", ["jump", "trap", "engine"])
def test_what_was_known_at_the_entry(program: Path, tmp_path: Path, backend: str, chosen: str) -> None:
    words = [word for field in (*FIELDS, "result=(i64)retval") for word in ("-r", field)]
    words += ["--filter", chosen] if chosen else []
    events = tmp_path / "events.json"
    output = ("--format", "json", "-o", events, "--backend", backend)
    done = run_clew("trace", "-c", str(program), "--function", "work", *words, *output, status=0)
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    fields = [one["fields"] for one in lines if one["event"] == "work_exit"]
    expected = [one for one in returned(done.stdout) if not chosen or one[0] > 2]
    assert [(one["n"], one["count"], one["name"], one["result"]) for one in fields] == expected
    assert [one["again"] for one in fields] == [one[0] + 1 for one in expected]


@pytest.mark.parametrize("chosen", ["", "arg1 > 1", "arg1"])
def test_calls_that_are_open_when_the_engine_begins(program: Path, tmp_path: Path, chosen: str) -> None:
    """They keep what they had, but for texts; also where a filter is kept beside it, or is one of the fields."""
    words = [word for field in FIELDS for word in ("-r", field)]
    words += ["--filter", chosen] if chosen else []
    events = tmp_path / "events.json"
    record = ("--on", "work_entry:arg1 == 2", "record", "--record-output", tmp_path / "recorded.clew")
    output = ("--format", "json", "-o", events)
    done = run_clew("trace", "-c", str(program), "--function", "work", *words, *record, *output, status=0)
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    fields = [one["fields"] for one in lines if one["event"] == "work_exit"]
    least = {"": 0, "arg1": 1, "arg1 > 1": 2}[chosen]
    expected = [one for one in returned(done.stdout) if one[0] >= least]
    assert [(one["n"], one["count"], one["again"]) for one in fields] == [(n, i, n + 1) for n, i, *_ in expected]
    # The first call with 2 is the one that was open.
    was_open = next(index for index, one in enumerate(expected) if one[0] == 2)
    names = [one["name"] for one in fields]
    assert names.pop(was_open) is None
    assert names == [one[2] for index, one in enumerate(expected) if index != was_open]


def test_durations_by_what_was_known_at_the_entry(program: Path) -> None:
    done = run_clew("probe", "latency", "--function", "work", "--by", "entry(arg1)", "--json", "-c", program, status=0)
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    said = [line for line in done.stdout.splitlines() if not line.startswith("{")]
    assert {one["entry(arg1)"]: one["count"] for one in rows} == Counter(one[0] for one in returned("\n".join(said)))
