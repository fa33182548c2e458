"""Calls that threads were in when they ended without a word: a signal ended the process, or another thread did.

Runs in the controller, when the process is no more. The calls whose returns are captured lie in the shared memory while
they are open, with what they kept when they began; the records that the runtime makes of calls which are over without
having returned are made here of them (`dispatch/apart/left_calls.rs` does the same). Nothing that is read is trusted.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.address import Pid
from clew.binary.path_codec import read_time_stamp
from clew.capture.form import Form
from clew.capture.interpreter import Value, from_bits, interpret
from clew.capture.types import SIZES, is_float
from clew.process.capture_table import CaptureRow
from clew.process.shared_memory import SharedMemory
from clew.protocol._constants import (
    CALL_HEADS_OFFSET,
    CALL_TEXT_CELL_BYTES,
    CALL_TEXTS_OFFSET,
    CALL_WINDOW_BYTES,
    CAPTURE_LEFT,
    CAPTURE_RECORD_VALUES,
    OPEN_CALLS,
    CaptureContext,
    CaptureOperation,
    CaptureType,
)
from clew.protocol._generated import (
    CALLS_HEAD,
    CONTINUATION_PAYLOAD_BYTES,
    OPEN_CALL,
    OPEN_CALL_BYTES,
    RECORD_BYTES,
    RecordKind,
)
from clew.protocol.layout import pack_struct
from clew.recording.drain.counter_extents import iter_data_extents

__all__ = ["LeftCalls"]

Array = npt.NDArray[Any]

MAX_CALLS: Final = 1 << 16
"""Of a process: more are counted, and not told."""

_MASK: Final = (1 << 64) - 1
_TEXT: Final = struct.Struct("<HH")
_NO_FIELD: Final = 0xFFFF
_TOLD_OFFSET: Final = CALL_HEADS_OFFSET + CALLS_HEAD.itemsize


class LeftCalls:
    """Those of process `pid`, which began at `start_tsc`: what began before is its parent's, of which it has a copy."""

    def __init__(self, shared: SharedMemory, pid: Pid, start_tsc: int) -> None:
        self._shared, self._pid, self._start_tsc = shared, pid, start_tsc
        self._rows: dict[int, list[CaptureRow]] = {}
        """By the kind of a call: who wants to know of it."""
        for row in shared.find_left_captures():
            if not row.pc:
                self._rows.setdefault(row.call_kind, []).append(row)
        self._forms: dict[int, list[tuple[int, Form]]] = {}
        """Of the kinds that were met, what is taken."""
        self._n_left = MAX_CALLS
        self.n_lost = 0
        """Calls that were open and are not told: there was no place for them in the window, or there are too many."""

    def take(self, slot: int, tid: int) -> Array | None:
        """Records of the calls that the thread of a slot was in, of shape (n, RECORD_BYTES); None: there are none."""
        window = self._shared.offset + self._shared.layout.calls_offset + slot * CALL_WINDOW_BYTES
        calls = self._find_calls(window)
        self.n_lost += self._count_others(window)
        records = b"".join(
            self._record(number, form, _LeftCall(call, self._read_texts(window, call), int(self._pid), tid, form))
            for call in calls
            for number, form in self._forms_of(int(call["kind"]))
        )
        return np.frombuffer(records, np.uint8).reshape(-1, RECORD_BYTES).copy() if records else None

    def _forms_of(self, kind: int) -> list[tuple[int, Form]]:
        # There are hundreds, and at a process' end one or two are asked for.
        if kind not in self._rows:
            return []
        if kind not in self._forms:
            self._forms[kind] = [(row.number, Form.unpack(row.form)) for row in self._rows[kind]]
        return self._forms[kind]

    def _find_calls(self, window: int) -> list[np.void]:
        """The calls that are in the table, and were not told yet, the innermost first."""
        rows = np.concatenate([*self._read_table(window), np.zeros(0, _PLACED)])
        rows = rows[(rows["told"] != rows["call"]["tsc"]) & (rows["call"]["tsc"] >= self._start_tsc)]
        calls: Array = rows["call"][np.argsort(rows["call"]["tsc"])[::-1]]
        self.n_lost += max(len(calls) - self._n_left, 0)
        calls = calls[: self._n_left]
        self._n_left -= len(calls)
        return list(calls)

    def _read_table(self, window: int) -> Iterator[Array]:
        """The places that hold a call, each with what was told of it."""
        fd = self._shared.fd
        told = np.frombuffer(os.pread(fd, 8 * OPEN_CALLS, window + _TOLD_OFFSET), "<u8")
        for start, end in iter_data_extents(fd, window, window + OPEN_CALLS * OPEN_CALL_BYTES):
            calls = np.frombuffer(os.pread(fd, end - start, start), OPEN_CALL)
            first = (start - window) // OPEN_CALL_BYTES
            used = np.flatnonzero(calls["stack_pointer"])
            rows = np.zeros(len(used), _PLACED)
            rows["call"], rows["told"] = calls[used], told[first + used]
            yield rows

    def _count_others(self, window: int) -> int:
        """How many calls are open beside the table, as the target has it."""
        [head] = np.frombuffer(os.pread(self._shared.fd, CALLS_HEAD.itemsize, window + CALL_HEADS_OFFSET), CALLS_HEAD)
        return min(int(head["others"]), MAX_CALLS)

    def _read_texts(self, window: int, call: np.void) -> dict[int, bytes]:
        """The bytes that a call kept, by field."""
        number, found = int(call["texts"]), {}
        n_bytes = (number & 0xFFFF) * CALL_TEXT_CELL_BYTES
        start = CALL_TEXTS_OFFSET + (number >> 16 & 0xFFFF) * CALL_TEXT_CELL_BYTES
        if not n_bytes or start + n_bytes > CALL_WINDOW_BYTES:
            return {}
        packed, at = os.pread(self._shared.fd, n_bytes, window + start), 0
        while at + _TEXT.size <= len(packed):
            field, size = _TEXT.unpack_from(packed, at)
            at += _TEXT.size + size
            if field == _NO_FIELD or at > len(packed):
                break
            found[field] = packed[at - size : at]
        return found

    def _record(self, number: int, form: Form, call: _LeftCall) -> bytes:
        """A capture's record, and its continuations; nothing where the condition does not hold."""
        values = interpret(form, call)
        if values is None:
            return b""
        kinds = [form.instructions[field].result for field in form.fields]
        words = [_to_word(value, kind) for value, kind in zip(values, kinds, strict=True)]
        missing = sum(1 << index for index, value in enumerate(values) if value is None)
        first, others = words[:CAPTURE_RECORD_VALUES], words[CAPTURE_RECORD_VALUES:]
        texts = b"".join(value for value in values if isinstance(value, bytes))
        payload = struct.pack(f"<{len(others)}Q", *others) + texts
        parts = [
            payload[at : at + CONTINUATION_PAYLOAD_BYTES] for at in range(0, len(payload), CONTINUATION_PAYLOAD_BYTES)
        ]
        head = pack_struct(
            "CaptureRecord",
            kind=RecordKind.CAPTURE,
            continuations=len(parts),
            tid=call.tid,
            pc=int(call.row["function"]),
            tsc=read_time_stamp(),
            number=number | CAPTURE_LEFT,
            missing=missing,
            values=first + [0] * (CAPTURE_RECORD_VALUES - len(first)),
        )
        return head + b"".join(
            pack_struct(
                "ContinuationRecord",
                kind=RecordKind.CONTINUATION,
                index=index,
                payload=part.ljust(CONTINUATION_PAYLOAD_BYTES, b"\0"),
            )
            for index, part in enumerate(parts)
        )


_PLACED: Final = np.dtype([("call", OPEN_CALL), ("told", "<u8")])


def _to_word(value: Value, kind: CaptureType) -> int:
    """As records have it; of bytes how many there are."""
    if isinstance(value, bytes):
        return len(value)
    if value is None:
        return 0
    if is_float(kind):
        return int.from_bytes(struct.pack("<f" if SIZES[kind] == 4 else "<d", value), "little")
    return int(value) & _MASK


class _LeftCall:
    """What is known of a call that is over: what it kept, and when and where it began."""

    def __init__(self, row: np.void, texts: dict[int, bytes], pid: int, tid: int, form: Form) -> None:
        self.row, self.tid = row, tid
        self._texts, self._pid = texts, pid
        self._kept = {
            one.immediate & 0xFFFFFFFF: one for one in form.instructions if one.operation == CaptureOperation.KEPT
        }

    def register(self, number: int) -> None:
        """Its registers are gone."""

    def vector(self, number: int) -> None:
        """As above."""

    def context(self, what: CaptureContext) -> Value:
        """The same as the runtime knows."""
        known = {
            CaptureContext.TID: self.tid,
            CaptureContext.PID: self._pid,
            CaptureContext.BEGAN: int(self.row["tsc"]),
            CaptureContext.FRAME: int(self.row["stack_pointer"]),
        }
        return known.get(what)

    def kept(self, field: int) -> Value:
        """What it kept when it began."""
        one = self._kept[field]
        if int(self.row["missing"]) >> field & 1:
            return None
        if one.kind != CaptureType.TEXT:
            return from_bits(int(self.row["values"][field]), one.kind)
        text = self._texts.get(field)
        return None if text is None else text[: one.immediate >> 32]

    def descriptor_path(self, descriptor: int) -> None:
        """The descriptor is gone."""

    def read(self, address: int, size_bytes: int) -> bytes:
        """Its memory is gone."""
        return b""
