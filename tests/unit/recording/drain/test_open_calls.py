"""Calls that were open when a process ended without a word: told with what they kept, whatever else lies there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from clew.address import Pid
from clew.capture.form import Form, Instruction
from clew.process.capture_table import CaptureRow
from clew.process.linux import punch_hole
from clew.process.shared_layout import SharedLayout
from clew.process.shared_memory import HeaderSettings, SharedFile, SharedMemory
from clew.protocol._constants import (
    CALL_HEADS_OFFSET,
    CALL_TEXTS_OFFSET,
    CALL_WINDOW_BYTES,
    CAPTURE_LEFT,
    OPEN_CALL_BYTES,
    CaptureAction,
    CaptureContext,
    CaptureOperation,
    CaptureType,
    Mode,
)
from clew.protocol._generated import CALLS_HEAD_BYTES, CAPTURE_RECORD, OPEN_CALL
from clew.protocol.layout import pack_struct
from clew.recording.drain.open_calls import MAX_CALLS, LeftCalls
from clew.sessions.capture_fields import read_values
from clew.sessions.capture_sink import CaptureSink

LAYOUT = SharedLayout(max_threads=2, ring_bytes=1024, counter_bytes=1 << 20)
SLOT, TID, START, NUMBER, KIND = 1, 77, 1000, 5, 3
WINDOW = LAYOUT.calls_offset + SLOT * CALL_WINDOW_BYTES
_Op, _Type = CaptureOperation, CaptureType
FORM = Form(
    [
        Instruction(_Op.KEPT, _Type.U64, immediate=0),
        Instruction(_Op.KEPT, _Type.TEXT, immediate=100 << 32 | 1),
        Instruction(_Op.KEPT, _Type.I32, immediate=2),
        Instruction(_Op.REGISTER, _Type.U64, immediate=0),
        Instruction(_Op.CONTEXT, _Type.U64, immediate=CaptureContext.BEGAN),
        Instruction(_Op.CONTEXT, _Type.U64, immediate=CaptureContext.FRAME),
        Instruction(_Op.CONTEXT, _Type.U32, immediate=CaptureContext.PID),
    ],
    [0, 1, 2, 3, 4, 5, 6],
)
KINDS = [one.kind for one in FORM.instructions]


@pytest.fixture(scope="module")
def shared() -> Iterator[SharedMemory]:
    made = SharedMemory(SharedFile.create(LAYOUT), HeaderSettings(mode=Mode.COUNTS))
    made.append_capture(CaptureRow(0, NUMBER, CaptureAction.RECORD, FORM.pack(), None, KIND, tells_left=True))
    made.append_capture(CaptureRow(0, 6, CaptureAction.RECORD, FORM.pack(), None, KIND + 1))
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _empty(shared: SharedMemory) -> None:
    punch_hole(shared.fd, WINDOW, CALL_WINDOW_BYTES)


def put(shared: SharedMemory, place: int, **fields: Any) -> None:
    call: dict[str, Any] = {
        "stack_pointer": 0x7000,
        "function": 0x400,
        "tsc": START + place,
        "kind": KIND,
        "values": [0] * 26,
    } | fields
    os.pwrite(shared.fd, pack_struct("OpenCall", **call), WINDOW + place * OPEN_CALL_BYTES)


def put_text(shared: SharedMemory, cell: int, field: int, text: bytes) -> None:
    packed = field.to_bytes(2, "little") + len(text).to_bytes(2, "little") + text + b"\xff\xff"
    os.pwrite(shared.fd, packed, WINDOW + CALL_TEXTS_OFFSET + cell * 64)


def take(shared: SharedMemory) -> tuple[LeftCalls, list[tuple[Any, ...]]]:
    """What is told, as whoever asked for it has it."""
    left = LeftCalls(shared, Pid(99), START)
    records = left.take(SLOT, TID)
    if records is None:
        return left, []
    sink = CaptureSink()
    sink.watch(NUMBER)
    sink.keep(99, records)
    assert not sink.n_damaged
    rows: list[tuple[Any, ...]] = []
    for captured in sink.take(NUMBER):
        heads = captured.heads.view(CAPTURE_RECORD)[:, 0]
        assert (heads["tid"] == TID).all() and (heads["number"] == NUMBER | CAPTURE_LEFT).all()
        rows += zip(*read_values(captured, KINDS), strict=True)
    return left, rows


def test_calls_are_told_with_what_they_kept(shared: SharedMemory) -> None:
    put_text(shared, 2, 1, b"a text")
    put(shared, 4, values=[5, 6, 2**64 - 7] + [0] * 23, texts=1 << 32 | 2 << 16 | 1)
    put(shared, 2000, missing=0b101, stack_pointer=0x8000)
    left, rows = take(shared)
    assert sorted(rows, key=lambda row: row[4]) == [
        (5, b"a text", -7, None, START + 4, 0x7000, 99),
        (None, None, None, None, START + 2000, 0x8000, 99),
    ]
    assert left.n_lost == 0


def test_what_was_told_or_is_the_parents_is_not(shared: SharedMemory) -> None:
    put(shared, 1)
    put(shared, 2)
    put(shared, 3, tsc=START - 1)
    put(shared, 5, kind=KIND + 1)
    put(shared, 6, stack_pointer=0)
    os.pwrite(shared.fd, (START + 1).to_bytes(8, "little"), WINDOW + CALL_HEADS_OFFSET + CALLS_HEAD_BYTES + 8)
    # Told of another call, which was in that place before.
    os.pwrite(shared.fd, (START + 9).to_bytes(8, "little"), WINDOW + CALL_HEADS_OFFSET + CALLS_HEAD_BYTES + 16)
    assert [row[4] for row in take(shared)[1]] == [START + 2]


def test_what_found_no_place_is_counted(shared: SharedMemory) -> None:
    os.pwrite(shared.fd, (12).to_bytes(8, "little"), WINDOW + CALL_HEADS_OFFSET)
    assert take(shared)[0].n_lost == 12
    os.pwrite(shared.fd, b"\xff" * 8, WINDOW + CALL_HEADS_OFFSET)
    assert take(shared)[0].n_lost == MAX_CALLS


@settings(max_examples=50, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    calls=st.lists(st.tuples(st.integers(0, 2047), st.binary(min_size=48, max_size=256)), max_size=20),
    texts=st.binary(max_size=300),
    cell=st.integers(0, 3775),
)
def test_whatever_is_there_whole_records_are_made(
    shared: SharedMemory, calls: list[tuple[int, bytes]], texts: bytes, cell: int
) -> None:
    for place, content in calls:
        row = np.frombuffer(content.ljust(OPEN_CALL_BYTES, b"\1"), OPEN_CALL).copy()
        row["kind"] = KIND
        os.pwrite(shared.fd, row.tobytes(), WINDOW + place * OPEN_CALL_BYTES)
    os.pwrite(shared.fd, texts, WINDOW + CALL_TEXTS_OFFSET + cell * 64)
    _, rows = take(shared)
    assert len(rows) <= 2048
