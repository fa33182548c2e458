"""Events of probes: which expressions make up the fields of one, and its tables out of what was captured.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clew.capture.machine import Machine
from clew.export.probes.event_types import EventKind, EventType, Field, Shape
from clew.protocol._constants import CaptureType
from clew.protocol._generated import CAPTURE_RECORD
from clew.sessions.capture_fields import read_fields
from clew.sessions.capture_sink import Captured
from clew.sessions.live_clock import LiveClock
from clew.sessions.memory import Images
from clew.sessions.probes.backtraces import UnwindRow, read_backtraces
from clew.sessions.probes.specs import ContextField
from clew.sessions.wanted import Wanted

__all__ = ["EventForm"]

Array = npt.NDArray[Any]

_ENDINGS: Final = {EventKind.POINT: "", EventKind.ENTRY: "_entry", EventKind.RETURN: "_exit"}
_STACK_BYTES: Final = 512
_N_PIECES: Final = 4
"""Of the stack, which is read in pieces: each is there as a whole, or not at all."""


class EventForm:
    """Events of one type. `fields` are taken at `kind`'s places where `condition` holds. Raises CaptureError."""

    def __init__(
        self,
        name: str,
        fields: Sequence[ContextField],
        condition: str | None,
        machine: Machine,
        images: Images,
        *,
        kind: EventKind = EventKind.POINT,
        entry_condition: str | None = None,
    ) -> None:
        """`entry_condition` chooses, when they begin, the calls whose returns are told."""
        self.name, self._fields, self._kind = name, fields, kind
        self._registers, self._stack_pointer = list(machine.registers), machine.stack_pointer
        self._unwinds = machine.unwinds
        texts = {"cpu": 0}
        # What two fields have in common is taken once.
        self._columns = [[texts.setdefault(text, len(texts)) for text in self._expressions(one)] for one in fields]
        has_returned = kind == EventKind.RETURN
        better = {texts[one.text]: one.better for one in fields if one.better}
        self.wanted = Wanted(
            list(texts),
            condition,
            machine,
            images,
            has_returned=has_returned,
            keeps_types=True,
            better=better,
            entry_condition=entry_condition,
        )
        self._types: dict[str, EventType] = {}

    def _expressions(self, one: ContextField) -> list[str]:
        registers = [f"${name}" for name in self._registers]
        if one.is_registers:
            return registers
        if one.backtrace and self._unwinds:
            return [f"backtrace({one.backtrace})"]
        if one.backtrace:
            starts = [f"${self._stack_pointer} + {_STACK_BYTES * n}" for n in range(_N_PIECES)]
            return [*registers, *(f"bytes({start}, {_STACK_BYTES})" for start in starts)]
        return [one.text]

    def type_of(self, name: str) -> EventType:
        """What the tables of events at a place of that name are of. Raises CaptureError where that is not known before
        a place of it is."""
        if name not in self._types:
            kinds = self.wanted.kinds()
            fields = [Field("ip", Shape.POINTER, is_present=True)]
            fields += [self._field(one, kinds[own[0]]) for one, own in zip(self._fields, self._columns, strict=True)]
            function = "" if self._kind == EventKind.POINT else name
            self._types[name] = EventType(name + _ENDINGS[self._kind], tuple(fields), (), self._kind, function)
        return self._types[name]

    def _field(self, one: ContextField, kind: CaptureType) -> Field:
        if one.is_registers:
            return Field(one.name, Shape.REGISTERS, tuple(self._registers))
        if one.backtrace:
            return Field(one.name, Shape.BACKTRACE)
        return Field(one.name, Shape.POINTER if one.is_address else kind)

    def tables(
        self,
        captured: Captured,
        clock: LiveClock,
        sequences: Array,
        comms: dict[int, bytes],
        unwind: UnwindRow,
        names: Mapping[int, str],
    ) -> list[tuple[EventType, pa.Table]]:
        """The events of some records, each with its number in its thread's order. `names` are what the places are
        called, where one probe is at several."""
        rows = self._table(captured, clock, sequences, comms, unwind)
        pcs = captured.heads.view(CAPTURE_RECORD)[:, 0]["pc"]
        by_name: dict[str, list[int]] = {}
        for pc in np.unique(pcs).tolist():
            by_name.setdefault(names.get(pc, self.name), []).append(pc)
        if len(by_name) == 1:
            [name] = by_name
            return [(self.type_of(name), rows)]
        own = {name: pa.array(np.isin(pcs, np.array(some, np.uint64))) for name, some in by_name.items()}
        return [(self.type_of(name), rows.filter(mask)) for name, mask in own.items()]

    def _table(
        self, captured: Captured, clock: LiveClock, sequences: Array, comms: dict[int, bytes], unwind: UnwindRow
    ) -> pa.Table:
        heads = captured.heads.view(CAPTURE_RECORD)[:, 0]
        tids = heads["tid"].tolist()
        place = [
            clock.to_time(heads["tsc"]),
            pa.array(sequences),
            pa.array(np.full(len(heads), captured.pid, np.uint32)),
            pa.array(heads["tid"]),
            pa.array([comms.get(tid, b"") for tid in tids], pa.binary()),
        ]
        columns = read_fields(captured, self.wanted.kinds())
        return self.make_table(place, pa.array(heads["pc"]), columns, captured.pid, unwind)

    def make_table(
        self, place: Sequence[pa.Array], pcs: pa.Array, columns: Sequence[pa.Array], pid: int, unwind: UnwindRow
    ) -> pa.Table:
        """Events of process `pid`: `place` are the first columns of PLACE, up to the name, and `columns` the values of
        `wanted`, of which the first is the processor."""
        own = [
            self._column(one, [columns[index] for index in indices], pid, unwind)
            for one, indices in zip(self._fields, self._columns, strict=True)
        ]
        arrays = [*place, columns[0].cast(pa.int32()), pcs, *own]
        return pa.Table.from_arrays(arrays, schema=self.type_of(self.name).schema)

    def _column(self, one: ContextField, columns: list[pa.Array], pid: int, unwind: UnwindRow) -> pa.Array:
        if one.is_registers:
            words = [column.cast(pa.uint64()) for column in columns]
            fields = [pa.field(name, pa.uint64(), nullable=False) for name in self._registers]
            return pa.StructArray.from_arrays(words, fields=fields)
        if not one.backtrace:
            return columns[0].cast(pa.uint64()) if one.is_address else columns[0]
        names = self._registers
        if self._unwinds:
            # The flags lead to no caller.
            return read_backtraces(columns[0], one.backtrace, names[:-1], pid, unwind)
        n = len(names)
        rows = zip(*(column.to_pylist() for column in columns), strict=True)
        frames = []
        for row in rows:
            stack = b""
            for piece in row[n:]:
                if piece is None or len(piece) < _STACK_BYTES:
                    stack += piece or b""
                    break
                stack += piece
            registers = dict(zip(names, (value & (1 << 64) - 1 for value in row[:n]), strict=True))
            pieces = [(registers[self._stack_pointer], stack)]
            frames.append(unwind(pid, registers, pieces, True)[: one.backtrace])
        return pa.array(frames, pa.list_(pa.uint64()))
