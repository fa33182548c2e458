"""Signals and faults that stay in the journal come out as they would have among the records."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.protocol._generated import EVENT_RECORD, EventKind
from clew.recording.assembly.trace import assemble
from clew.recording.journal.frames import Frame, FrameKind
from clew.recording.raw import event_chunks
from clew.recording.raw.event_chunks import EventChunks, are_many, without_events
from clew.recording.raw.process import RawProcess
from clew.recording.raw.records import iter_records
from clew.store.trace import Trace
from tests.unit.recording.made_up_records import event, session_info
from tests.unit.recording.simulate import PID, make_runtime


def frame(*records: bytes) -> Frame:
    return Frame(FrameKind.RECORDS, 0, 0, 0, 0, 0, memoryview(b"".join(records)))


def signals(*stamps: int, tid: int = PID) -> list[bytes]:
    return [event(EventKind.SIGNAL, tid, tsc=tsc, a=tsc % 3) for tsc in stamps]


@given(st.lists(st.lists(st.lists(st.integers(0, 50), max_size=6), max_size=4), max_size=4), st.integers(1, 4))
def test_by_time(stamps: list[list[list[int]]], piece: int) -> None:
    streams = [[frame(*signals(*sorted(of_frame))) for of_frame in frames] for frames in stamps]
    others = np.frombuffer(event(EventKind.FORK, PID, tsc=25), EVENT_RECORD)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_chunks, "_PIECE_RECORDS", piece)
        parts = list(EventChunks(streams).iter_with(others))
    found = [int(tsc) for part in parts for tsc in part["tsc"]]
    assert sorted(found) == sorted([25, *(tsc for frames in stamps for one in frames for tsc in one)])
    of_threads = [[tsc for one in frames for tsc in one] for frames in stamps]
    if all(times == sorted(times) for times in of_threads):
        assert found == sorted(found)


def test_what_is_left() -> None:
    kept = [event(EventKind.FORK, PID, tsc=1), event(EventKind.THREAD_START, PID, tsc=2)]
    mixed = frame(kept[0], *signals(3, 4), kept[1], event(EventKind.FAULT, PID, tsc=5))
    assert b"".join(part.tobytes() for part in without_events(iter_records([mixed]))) == b"".join(kept)
    assert [len(part) for part in EventChunks([[mixed]]).iter_with(np.zeros(0, EVENT_RECORD))] == [3]


def test_many() -> None:
    n_fitting = event_chunks.MANY_BYTES // 64
    full = Frame(FrameKind.RECORDS, 0, 0, 0, 0, 0, memoryview(bytes(64 * n_fitting)))
    assert not are_many([[full]])
    assert are_many([[full], [frame(*signals(1))]])


def test_trace_is_the_same(tmp_path: Path) -> None:
    made_up = make_runtime(3, max_steps=300).raw_process()
    told = [
        *signals(1200, 1500, 1100),
        event(EventKind.FAULT, PID, tsc=1400, c=8),
        event(EventKind.FORK, PID, tsc=1300),
    ]
    all_records = b"".join([made_up.records.tobytes(), *told])
    whole = dataclasses.replace(made_up, records=np.frombuffer(all_records, np.uint8).reshape(-1, 64))
    source = frame(all_records)
    rest = np.concatenate(list(without_events(iter_records([source]))))
    assert len(rest) < len(whole.records)
    chunked = dataclasses.replace(made_up, records=rest, event_chunks=EventChunks([[source]]))

    def rows(process: RawProcess, name: str) -> dict[str, object]:
        folder = tmp_path / name
        folder.mkdir()
        assemble([process], folder, session_info())
        trace = Trace(folder)
        return {table: trace.read(table).to_pylist() for table in ("events", "blocks", "edges", "counts", "threads")}

    assert rows(chunked, "chunked") == rows(whole, "whole")
