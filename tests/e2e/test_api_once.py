"""Every call of a recording is in its table once: by what was counted of the blocks that make them, by what a session
tells of the same run, and by what the viewer's server says."""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import clew
from clew.api.reading import load_built_in
from clew.protocol.codec import FlowKind
from clew.server.app import make_app
from clew.server.served_trace import ServedTrace
from clew.sessions.api_calls import ApiLog
from clew.sessions.call_tables import CallTables
from tests.e2e import runs
from tests.programs.build import SOURCES, build_plain
from tests.unit.server.asking import LOOPBACK, TOKEN, ask_well

PYTHON = [sys.executable, "-S", "-E"]


def words_of(name: str) -> list[str]:
    """The command line of a program."""
    if name == "threads":
        return [str(build_plain(SOURCES / "threads_mutex.c", "-O1", "-pthread"))]
    if name == "structures":
        return [str(build_plain(SOURCES / "api" / "structures.c", "-O1", "-w"))]
    if name == "handlers":
        return [str(build_plain(SOURCES / "api" / "handlers.c", "-O1"))]
    return {
        "shell": ["sh", "-c", "ls / | sort | cat; cat /no/such/file; cd /; pwd"],
        "sockets": [*PYTHON, str(SOURCES / "api" / "sockets.py")],
    }[name]


def executions(trace: clew.Trace) -> dict[tuple[int, int], Counter[int]]:
    """By process and thread, how often each block was executed that ends with a system call."""
    makers = {row["block_id"] for row in trace.blocks.to_pylist() if row["exit_kind"] == "syscall"}
    found: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    for row in trace.counts.to_pylist():
        if row["block_id"] in makers:
            found[row["process_id"], row["tid"]][row["block_id"]] += row["executions"]
    return found


@pytest.mark.parametrize("name", ["shell", "sockets", "threads", "structures", "handlers"])
def test_calls_are_as_many_as_were_counted(name: str, tmp_path: Path) -> None:
    """By thread and by block, and so says `verify`; who does not come back from a call may have made one that nobody
    tells of."""
    folder = tmp_path / "it.clew"
    command = [*runs.CLEW, "api", "--trace", str(folder), "-o", str(tmp_path / "told"), "--", *words_of(name)]
    subprocess.run(command, env=runs.environment(), capture_output=True, check=False, timeout=120)
    trace = clew.Trace(folder)
    assert not trace.verify()
    calls = trace.read("calls").to_pylist()
    assert len({row["call_id"] for row in calls}) == len(calls)
    assert len(calls) == len((tmp_path / "told").read_text().splitlines())
    made: dict[tuple[int, int], Counter[int]] = defaultdict(Counter)
    for row in calls:
        made[row["process_id"], row["tid"]][row["block_id"]] += 1
    counted = executions(trace)
    assert set(made) <= set(counted)
    for thread, by_block in counted.items():
        # A program that another one takes the place of; and a signal's end.
        left_open = by_block - made[thread]
        assert not made[thread] - by_block, thread
        assert left_open.total() <= 1, (thread, left_open)
    page = tmp_path / "page"
    page.mkdir()
    (page / "index.html").write_text("the page")
    app = make_app([ServedTrace(folder, 0)], TOKEN, LOOPBACK, page)
    for row in trace.processes.to_pylist():
        own = Counter(call["name"] for call in calls if call["process_id"] == row["process_id"])
        summary = ask_well(app, f"/api/traces/0/processes/{row['process_id']}/calls/summary").json()
        assert {one["name"]: one["calls"] for one in summary["names"]} == own
        assert summary["calls"] == own.total()


def test_one_call_too_many_is_found(tmp_path: Path) -> None:
    """In a recording with positions, where it is one more than ran, and where one is missing."""
    folder = tmp_path / "it.clew"
    command = [*runs.CLEW, "api", "--trace", str(folder), "--mode", "full", "-o", str(tmp_path / "told")]
    command += ["--", *words_of("threads")]
    subprocess.run(command, env=runs.environment(), capture_output=True, check=True, timeout=120)
    trace = clew.Trace(folder)
    assert not trace.verify()
    calls = trace.read("calls")
    made = list(zip(calls["tid"].to_pylist(), calls["block_id"].to_pylist(), strict=True))
    n_made = Counter(made)
    positions = calls["position"].to_pylist()
    row = next(row for row, by in enumerate(made) if positions[row] is not None and n_made[by] > 1)
    more = calls.slice(row, 1).set_column(0, calls.schema.field(0), pa.array([calls.num_rows + 1000]))
    for changed in (pa.concat_tables([calls.slice(0, row + 1), more, calls.slice(row + 1)]), drop_row(calls, row)):
        found = verify_with(trace, changed)
        assert any(finding.startswith("a block makes as many calls as it ran") for finding in found), found


def drop_row(table: pa.Table, row: int) -> pa.Table:
    """A table without one row, and what was within that call without it."""
    left = pa.concat_tables([table.slice(0, row), table.slice(row + 1)])
    place = left.schema.get_field_index("parent_call_id")
    gone = pc.equal(left["parent_call_id"], table["call_id"][row])
    return left.set_column(place, left.schema.field(place), pc.if_else(gone, None, left["parent_call_id"]))


def verify_with(trace: clew.Trace, calls: pa.Table) -> set[str]:
    """What does not hold of a trace with other calls, and no references to them."""
    part = next((trace.directory / "calls").glob("*.parquet"))
    kept = part.read_bytes()
    try:
        pq.write_table(calls, part)
        manifest = trace.directory / "manifest.json"
        told = json.loads(manifest.read_text())
        told["tables"]["calls"]["rows"] = calls.num_rows
        manifest.write_text(json.dumps(told))
        return {finding.invariant for finding in clew.Trace(trace.directory).verify()}
    finally:
        part.write_bytes(kept)


@pytest.mark.parametrize("name", ["sockets", "threads", "handlers"])
def test_calls_are_those_that_a_session_tells(name: str, tmp_path: Path) -> None:
    """Events of the same run, which come another way: for each thread the same numbers in the same order."""
    descriptions = load_built_in()
    with clew.spawn(words_of(name), output=tmp_path / "it.clew", stdout=subprocess.DEVNULL) as session:
        tables = CallTables(descriptions, session.pid)
        log = ApiLog(session, descriptions, keeps=True)
        session.follow(events={"syscall", "signal"})
        session.resume()
        events = np.concatenate(list(session.events()))
        assert session.wait(60) == 0
        log.read()
        session.detach()
        tables.write(session.trace, log.batches)
        trace = session.trace
    assert session.events().n_damaged == 0
    # A call begins when its thread first comes to it. A signal that comes right then is dealt with before it is made:
    # what its handler calls begins later, but is told, and ends, earlier.
    calls = sorted(trace.read("calls").to_pylist(), key=lambda row: row["time_ns"] + (row["duration_ns"] or 0))
    for tid in sorted({row["tid"] for row in calls}):
        ours = [row["number"] for row in calls if row["tid"] == tid]
        told = events[events["thread"] == tid]
        # A signal that comes at a call comes before it is made.
        is_unmade = (told["address"][:-1] == told["address"][1:]) & (told["kind"][1:] == FlowKind.SIGNAL)
        is_call = (told["kind"] == FlowKind.SYSCALL) & ~np.append(is_unmade, False)
        assert ours == told[is_call]["target"].tolist()
