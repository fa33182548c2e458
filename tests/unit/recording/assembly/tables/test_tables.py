"""What becomes of a process's facts: events, threads and their ends, times, texts."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.address import Tid
from clew.protocol._generated import EndKind, EventKind, ReleaseReason
from clew.recording.assembly.tables import event_rows
from clew.recording.assembly.tables.tables import clean_text
from clew.recording.assembly.trace import assemble
from clew.recording.raw.process import RawProcess
from clew.store.trace import Trace
from tests.unit.recording.made_up_records import event, session_info
from tests.unit.recording.simulate import PID, make_runtime


@pytest.fixture
def process() -> RawProcess:
    return make_runtime(3, max_threads=1, with_signals=False, max_steps=50).raw_process()


def assemble_process(process: RawProcess, directory: Path) -> Trace:
    assemble([process], directory, session_info())
    return Trace(directory)


def add_events(process: RawProcess, *events: bytes) -> RawProcess:
    rows = np.frombuffer(b"".join(events), np.uint8).reshape(-1, 64)
    return dataclasses.replace(process, records=np.concatenate([process.records, rows]))


def test_events(process: RawProcess, tmp_path: Path) -> None:
    start = make_runtime(3, max_threads=1, with_signals=False, max_steps=50).program.entry
    trace = assemble_process(
        add_events(
            process,
            event(EventKind.FAULT, PID, tsc=1300, app_pc=start, a=11, b=2**64 - 6, c=0x10),
            event(EventKind.FORK, PID, tsc=1200, a=99),
            event(EventKind.RELEASED, 2**32 - 1, tsc=1400, a=ReleaseReason.OTHER_CODE, app_pc=5),
            event(EventKind.RELEASED, PID, tsc=2**64 - 1, a=77),
        ),
        tmp_path,
    )
    rows = trace.events.to_pylist()
    assert [row["kind"] for row in rows] == ["fork", "fault", "released", "released"]
    details = [json.loads(row["details"]) for row in rows]
    assert details[0] == {"child_pid": 99, "is_followed": False}
    assert details[1] == {"app_pc": hex(start), "signal": 11, "code": -6, "address": "0x10"}
    assert details[2] == {"app_pc": "0x5", "reason": "other_code"}
    assert details[3] == {"reason": 77}
    assert trace.blocks["app_pc"][rows[1]["block_id"]].as_py() == start
    assert rows[2]["block_id"] is None
    assert all(process.start_ns <= row["time_ns"] <= process.end_ns for row in rows)
    assert rows[0]["time_ns"] < rows[1]["time_ns"]


@pytest.mark.parametrize(
    ("end_kind", "fields", "end"),
    [
        (EndKind.EXIT, {}, "exit"),
        (EndKind.EXIT_GROUP, {}, "exit"),
        (EndKind.RELEASED, {}, "detached"),
        (EndKind.EXECVE, {}, "detached"),
        (EndKind.UNKNOWN, {}, "killed"),
        (EndKind.UNKNOWN, {"exit_code": None, "signal": 9}, "killed"),
        (EndKind.UNKNOWN, {"exit_code": None}, "lost"),
        (12345, {"exit_code": None}, "lost"),
    ],
)
def test_ends_of_threads(process: RawProcess, tmp_path: Path, end_kind: int, fields: dict[str, Any], end: str) -> None:
    threads = [dataclasses.replace(thread, end_kind=end_kind) for thread in process.threads]
    trace = assemble_process(dataclasses.replace(process, threads=threads, **fields), tmp_path)
    assert set(trace.threads["end"].to_pylist()) == {end}


@pytest.mark.parametrize(
    ("events", "end_tsc", "went_on"),
    [
        ([event(EventKind.EXECVE, PID, tsc=1300)], 0, True),
        ([event(EventKind.EXECVE, PID, tsc=1200, a=1), event(EventKind.EXECVE, PID, tsc=1300)], 0, True),
        # Nothing is known of the call.
        ([], 0, True),
        # It is followed, so the session knows: it was killed on the way.
        ([event(EventKind.EXECVE, PID, tsc=1300, a=1)], 0, False),
        # A child that vfork made, and that its parent saw to an end; or did not, as it was killed.
        ([event(EventKind.EXECVE, PID, tsc=1300)], 1400, False),
        ([event(EventKind.EXECVE, PID, tsc=1300), event(EventKind.FORK, 5, tsc=1300, a=PID, b=1)], 0, False),
    ],
)
def test_how_an_unfollowed_program_ended_is_not_told(
    process: RawProcess, tmp_path: Path, events: list[bytes], end_tsc: int, went_on: bool
) -> None:
    threads = [dataclasses.replace(process.threads[0], end_kind=EndKind.EXECVE, end_tsc=end_tsc)]
    executed = dataclasses.replace(process, threads=threads, exit_code=7)
    trace = assemble_process(add_events(executed, *events) if events else executed, tmp_path)
    (row,) = trace.processes.to_pylist()
    assert (row["exit_code"], row["signal"]) == (None if went_on else 7, None)
    assert (row["end_ns"] < process.end_ns) == (went_on and bool(events))
    (end,) = trace.manifest.processes
    assert end == {"pid": PID, "code": None, "went_on_unfollowed": True} if went_on else {"pid": PID, "code": 7}
    assert trace.threads["end"].to_pylist() == ["detached"]


def test_threads_that_had_one_number_are_added_up(process: RawProcess, tmp_path: Path) -> None:
    before = assemble_process(process, tmp_path)
    twice = dataclasses.replace(process, threads=[*process.threads, *process.threads])
    (tmp_path / "twice").mkdir()
    trace = assemble_process(twice, tmp_path / "twice")
    assert trace.threads.num_rows == 2 * before.threads.num_rows
    assert trace.counts.num_rows == before.counts.num_rows
    assert trace.counts["executions"].to_pylist() == [2 * n for n in before.counts["executions"].to_pylist()]


def test_texts_that_are_none(process: RawProcess, tmp_path: Path) -> None:
    evil = b"/tmp/\xff\x1b[2J".decode("utf-8", "surrogateescape")
    threads = [dataclasses.replace(process.threads[0], name=evil, tid=Tid(2**32 - 1))]
    evil_process = dataclasses.replace(
        process, executable=evil, command=[evil], threads=threads, warnings=[evil], signal=None
    )
    trace = assemble_process(evil_process, tmp_path)
    assert trace.processes["executable"][0].as_py() == clean_text(evil) == "/tmp/\\xff\x1b[2J"
    assert trace.threads["tid"][0].as_py() == 2**31 - 1
    assert trace.manifest.warnings[0] == clean_text(evil)


def test_clock_without_a_second_reading(process: RawProcess, tmp_path: Path) -> None:
    status = process.status.copy()
    status["last_tsc"] = status["start_tsc"]
    trace = assemble_process(dataclasses.replace(process, status=status), tmp_path)
    assert set(trace.blocks["first_ns"].to_pylist()) == {process.start_ns}


@pytest.mark.parametrize("mixer", [None, 0], ids=["mixed", "all mixed alike"])
@given(rows=st.lists(st.tuples(*[st.sampled_from([0, 1, 7, (1 << 64) - 1])] * 3), max_size=40))
@settings(deadline=None, max_examples=60)
def test_rows_that_are_alike_are_told_once(mixer: int | None, rows: list[tuple[int, int, int]]) -> None:
    """Each row is one like it, however numbers mix; and where different ones mix differently each is there once."""
    columns = [np.array([row[index] for row in rows], np.uint64) for index in range(3)]
    with pytest.MonkeyPatch.context() as patch:
        if mixer is not None:
            patch.setattr(event_rows, "_MIXER", np.uint64(mixer))
        told, alike = event_rows._find_alike(*columns)
    assert len(alike) == len(rows)
    for column in columns:
        assert column[told][alike].tolist() == column.tolist()
    if mixer is None:
        assert len(told) == len(set(rows))
