"""The table of all events that `clew trace --format parquet` writes, read.

Runs in the controller. The file may come from anywhere: what is not as it should be is told, never believed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from clew.errors import NotATraceError, TraceDamagedError
from clew.store.columns import to_numpy

__all__ = ["EVENTS_FILE", "EventRow", "EventRows", "is_event_folder"]

EVENTS_FILE: Final = "events.parquet"
ADDRESSES_FILE: Final = "addresses.parquet"
MOST_EVENTS: Final = 1 << 20
"""So many are read: the first ones."""
_COLUMNS: Final = {
    "event_id": pa.int64(),
    "process_id": pa.int32(),
    "pid": pa.int32(),
    "tid": pa.int32(),
    "time_ns": pa.int64(),
    "comm": pa.string(),
    "name": pa.string(),
    "kind": pa.string(),
    "function": pa.string(),
    "lost": pa.int64(),
    "values": pa.string(),
}
_ADDRESS_COLUMNS: Final = {"pid": pa.uint32(), "address": pa.uint64(), "name": pa.string()}
_MOST_NAMES: Final = 1 << 20
_MAY_BE_NULL: Final = ("process_id", "function", "lost")
_MOST_NS: Final = 1 << 62
_PIECE_ROWS: Final = 1 << 16


class EventRow(NamedTuple):
    """An event. `process_id` and `lost` are -1, and `function` is empty, where there is none."""

    process_id: int
    pid: int
    tid: int
    time_ns: int
    comm: str
    name: str
    kind: str
    function: str
    lost: int
    values: str


def is_event_folder(path: Path) -> bool:
    """Whether `path` is a folder of events of probes."""
    return (path / EVENTS_FILE).is_file()


class EventRows:
    """The events in `folder`, in their order within each thread; `n_omitted` are behind those that are read. Raises
    NotATraceError, TraceDamagedError."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        if not is_event_folder(folder):
            way_out = "`clew trace --format parquet -o DIR` writes what has them"
            raise NotATraceError(folder, f"no events of probes: it has no {EVENTS_FILE}; {way_out}")
        try:
            with pq.ParquetFile(folder / EVENTS_FILE) as file:
                self._check_columns(file.schema_arrow, _COLUMNS)
                n_rows = file.metadata.num_rows
                table = file.read_row_groups(self._first_groups(file.metadata), [*_COLUMNS]).select([*_COLUMNS])
            table.validate(full=True)
            order = np.argsort(to_numpy(table["event_id"]), kind="stable")
            self._table = table.take(pa.array(order[:MOST_EVENTS]))
        except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
            raise self._damaged(str(error).splitlines()[0] if str(error) else type(error).__name__) from error
        self.n_omitted = n_rows - self._table.num_rows
        self._check_values()

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def __iter__(self) -> Iterator[EventRow]:
        for start in range(0, len(self), _PIECE_ROWS):
            piece = self._table.slice(start, _PIECE_ROWS)
            yield from map(EventRow._make, zip(*(_to_list(piece[name]) for name in EventRow._fields), strict=True))

    def _first_groups(self, metadata: pq.FileMetaData) -> list[int]:
        """The row groups that have as many events as are read: they come about in the order of their numbers."""
        found: list[int] = []
        n_rows = 0
        for index in range(metadata.num_row_groups):
            if n_rows >= MOST_EVENTS:
                break
            n_own = metadata.row_group(index).num_rows
            if n_own > MOST_EVENTS:
                raise self._damaged(f"a row group has {n_own} rows")
            n_rows += n_own
            found.append(index)
        return found

    def read_names(self) -> dict[tuple[int, int], str]:
        """What addresses are called, by process and address: nothing where that was not written. Raises
        TraceDamagedError."""
        path = self._folder / ADDRESSES_FILE
        if not path.is_file():
            return {}
        try:
            with pq.ParquetFile(path) as file:
                self._check_columns(file.schema_arrow, _ADDRESS_COLUMNS)
                table = file.read([*_ADDRESS_COLUMNS]).slice(0, _MOST_NAMES)
            table.validate(full=True)
        except (pa.ArrowException, OSError, ValueError, OverflowError) as error:
            raise self._damaged(f"{ADDRESSES_FILE}: {error}".splitlines()[0]) from error
        pids, addresses, names = (table[name].to_pylist() for name in _ADDRESS_COLUMNS)
        return {
            (pid, address): name
            for pid, address, name in zip(pids, addresses, names, strict=True)
            if pid is not None and address is not None and name
        }

    def _check_columns(self, found: pa.Schema, columns: dict[str, pa.DataType]) -> None:
        for name, wanted in columns.items():
            index = found.get_field_index(name)
            kind = None if index < 0 else found.field(index).type
            if kind is not None and pa.types.is_dictionary(kind):
                kind = kind.value_type
            if kind != wanted:
                raise self._damaged(f"column {name} is {'missing' if kind is None else f'of type {kind}'}")

    def _check_values(self) -> None:
        for name in _COLUMNS:
            if name not in _MAY_BE_NULL and self._table[name].null_count:
                raise self._damaged(f"a value of {name} is missing")
        times, lost = to_numpy(self._table["time_ns"]), to_numpy(self._table["lost"])
        if np.any((times < 0) | (times >= _MOST_NS)) or np.any(lost < -1):
            raise self._damaged("a time or a number is impossible")

    def _damaged(self, reason: str) -> TraceDamagedError:
        return TraceDamagedError(self._folder, f"{EVENTS_FILE} is damaged or truncated ({reason})")


def _to_list(column: pa.ChunkedArray) -> list[Any]:
    """A column's values: of numbers -1 for null, of texts nothing; each different word is made once."""
    if pa.types.is_integer(column.type):
        found: list[Any] = to_numpy(column).tolist()
        return found
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    whole = column.unify_dictionaries().combine_chunks()
    words = [*whole.dictionary.to_pylist(), ""]
    return [words[index] for index in to_numpy(whole.indices.fill_null(len(words) - 1)).tolist()]
