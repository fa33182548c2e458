"""Events as tables: one of all events, and one of the values of each type, as files of Parquet.

Runs in the controller. `events.parquet` has a row an event: where and when it was, its type, and its values as JSON.
`events/NAME.parquet` has a row for each event of one type, with a typed column for each value: `event_id` joins both.
`addresses.parquet` says what addresses of places and of callers are called.
What is in memory does not grow with events; a row group is written when it is full. Types may be as many as functions:
MAX_TYPES have a file, all others are in `events.parquet` alone.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from clew.export.probes.address_names import AddressNames, NameAddress
from clew.export.probes.event_types import PLACE, EventBatch, EventType
from clew.export.probes.json_lines import named_values
from clew.export.probes.names import Names, make_file_name
from clew.export.probes.value_text import plain_text

__all__ = ["EVENTS_SCHEMA", "EventTables"]

_WORD: Final = pa.dictionary(pa.int32(), pa.string())
EVENTS_SCHEMA: Final = pa.schema(
    [
        pa.field("event_id", pa.int64(), nullable=False),
        pa.field("process_id", pa.int32()),
        pa.field("pid", pa.int32(), nullable=False),
        pa.field("tid", pa.int32(), nullable=False),
        pa.field("time_ns", pa.int64(), nullable=False),
        pa.field("sequence", pa.uint64(), nullable=False),
        pa.field("cpu", pa.int32()),
        pa.field("comm", pa.string(), nullable=False),
        pa.field("name", _WORD, nullable=False),
        pa.field("kind", _WORD, nullable=False),
        pa.field("function", _WORD),
        pa.field("lost", pa.int64()),
        pa.field("values", pa.string(), nullable=False),
    ]
)
"""Of the table of all events. `event_id`: unique, rising within a thread. `process_id`: of the trace's table
`processes`; null outside of one. `values`: a JSON object of contexts and fields. Rows of kind "lost" are losses: `lost`
events of the thread, behind those in front of it."""
MAX_TYPES: Final = 256
_ROW_GROUP: Final = 1 << 16
_MAX_WAITING_BYTES: Final = 64 << 20
"""Of all files together: more is written, row groups being full or not."""


class EventTables:
    """Writes into a folder, which is there. `process_ids` are the trace's numbers of processes, by pid, which may be
    added to while events come."""

    def __init__(
        self, folder: Path, process_ids: dict[int, int] | None = None, name_of: NameAddress | None = None
    ) -> None:
        """`name_of` names addresses; without it none are named. Raises OSError."""
        self._folder = folder
        self._addresses = None if name_of is None else AddressNames(name_of)
        self._process_ids = {} if process_ids is None else process_ids
        self._own = folder / "events"
        self._own.mkdir()
        self._all = _Part(folder / "events.parquet", EVENTS_SCHEMA)
        self._parts: dict[EventType, _Part] = {}
        self._files = Names(make_file_name, fold=True)
        self._next_id = 0
        self.n_without_file = 0
        """Rows of types that have no file of their own."""

    def write(self, batch: EventBatch) -> None:
        """Write events. Raises ValueError if a table is not of its type, OSError."""
        for event_type, table in batch.tables:
            event_type.check(table)
        if self._addresses is not None:
            self._addresses.add(batch)
        for (event_type, table), event_id in zip(batch.tables, self._number(batch), strict=True):
            part = self._find_part(event_type)
            if part is None:
                self.n_without_file += table.num_rows
            else:
                part.add(pa.Table.from_arrays([event_id, *table.columns], schema=part.schema))
            self._all.add(self._rows_of(event_type, table, event_id))
        for loss in batch.losses:
            place: list[Any] = [self._next_id, self._process_ids.get(loss.pid), _signed(loss.pid), _signed(loss.tid)]
            values = [*place, loss.time_ns, 0, None, "", "", "lost", None, loss.count, "{}"]
            self._next_id += 1
            self._all.add(_to_table([[value] for value in values]))
        parts = [self._all, *self._parts.values()]
        if sum(part.n_bytes for part in parts) > _MAX_WAITING_BYTES:
            for part in parts:
                part.flush()

    def close(self) -> None:
        """Write what waits, and end the files. Raises OSError."""
        for part in [self._all, *self._parts.values()]:
            part.close()
        if self._addresses is not None:
            self._addresses.write(self._folder / "addresses.parquet")

    def _number(self, batch: EventBatch) -> list[pa.Array]:
        """The numbers of the events, table by table: rising by thread, in its order."""
        sizes = [table.num_rows for _, table in batch.tables]
        if not sum(sizes):
            return [pa.array([], pa.int64()) for _ in sizes]
        keys = [
            np.concatenate([table.column(PLACE.get_field_index(name)).to_numpy() for _, table in batch.tables])
            for name in ("sequence", "tid", "pid")
        ]
        numbers = np.empty(sum(sizes), np.int64)
        numbers[np.lexsort(keys)] = np.arange(self._next_id, self._next_id + len(numbers))
        self._next_id += len(numbers)
        return [pa.array(own) for own in np.split(numbers, np.cumsum(sizes)[:-1])]

    def _find_part(self, event_type: EventType) -> _Part | None:
        """The file of a type, if it has one."""
        part = self._parts.get(event_type)
        if part is None and len(self._parts) < MAX_TYPES:
            path = self._own / f"{self._files.give(event_type.name)}.parquet"
            part = self._parts[event_type] = _Part(path, _own_schema(event_type))
        return part

    def _rows_of(self, event_type: EventType, table: pa.Table, event_id: pa.Array) -> pa.Table:
        n = table.num_rows
        place = {name: table.column(index).to_pylist() for index, name in enumerate(PLACE.names)}
        columns = [column.to_pylist() for column in table.columns[len(PLACE) :]]
        rows = zip(*columns, strict=True) if columns else [()] * n
        texts = [json.dumps(named_values(event_type.values, row)) for row in rows]
        return _to_table(
            [
                event_id,
                [self._process_ids.get(pid) for pid in place["pid"]],
                [_signed(pid) for pid in place["pid"]],
                [_signed(tid) for tid in place["tid"]],
                place["time_ns"],
                place["sequence"],
                place["cpu"],
                [comm.split(b"\0")[0].decode(errors="backslashreplace") for comm in place["comm"]],
                [plain_text(event_type.name)] * n,
                [event_type.kind.value] * n,
                [plain_text(event_type.function) or None] * n,
                [None] * n,
                texts,
            ]
        )


class _Part:
    """A file of Parquet that is written by groups of rows. `n_bytes` wait."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        self.schema, self.n_bytes = schema, 0
        self._writer = pq.ParquetWriter(path, schema, compression="zstd")
        self._waiting: list[pa.Table] = []
        self._n_rows = 0

    def add(self, table: pa.Table) -> None:
        """Add rows. Raises OSError."""
        self._waiting.append(table)
        self._n_rows += table.num_rows
        self.n_bytes += table.nbytes
        if self._n_rows >= _ROW_GROUP:
            self.flush()

    def close(self) -> None:
        """Write what waits, and end the file. Raises OSError."""
        self.flush()
        self._writer.close()

    def flush(self) -> None:
        """Write what waits. Raises OSError."""
        if self._waiting:
            self._writer.write_table(pa.concat_tables(self._waiting), _ROW_GROUP)
            self._waiting, self._n_rows, self.n_bytes = [], 0, 0


def _own_schema(event_type: EventType) -> pa.Schema:
    """Of a type's own table: `event_id`, PLACE, the contexts, the fields. Of columns of one name, whatever its case,
    those behind the first have a number."""
    names = Names(plain_text, fold=True)
    for place in ["event_id", *PLACE.names]:
        names.give(place)
    own = [pa.field(names.give(one.name), one.arrow_type, not one.is_present) for one in event_type.values]
    return pa.schema([pa.field("event_id", pa.int64(), nullable=False), *PLACE, *own])


def _to_table(columns: list[Any]) -> pa.Table:
    arrays = []
    for column, field in zip(columns, EVENTS_SCHEMA, strict=True):
        is_word = pa.types.is_dictionary(field.type)
        array = column if isinstance(column, pa.Array) else pa.array(column, pa.string() if is_word else field.type)
        arrays.append(array.dictionary_encode() if is_word else array)
    return pa.Table.from_arrays(arrays, schema=EVENTS_SCHEMA)


def _signed(number: int) -> int:
    """A number of a process or thread; what is none is damage."""
    return number if number < 1 << 31 else -1
