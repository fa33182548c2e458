"""What addresses in events are called: where events were, and their callers, each different one named once.

Runs in the controller. How an address is called is for whoever calls to say.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from clew.export.probes.event_types import PLACE, EventBatch, Field, Shape
from clew.export.probes.value_text import plain_text

__all__ = ["ADDRESSES_SCHEMA", "AddressNames", "NameAddress"]

ADDRESSES_SCHEMA: Final = pa.schema(
    [
        pa.field("pid", pa.uint32(), nullable=False),
        pa.field("address", pa.uint64(), nullable=False),
        pa.field("name", pa.string(), nullable=False),
    ]
)
MAX_NAMES: Final = 1 << 20
_PLACE: Final = "ip"
_CALLER: Final = "parent_ip"

NameAddress = Callable[[int, int, bool], str]
"""The name of an address of a process, whose number comes first; whether calls go on there: the call is in front of it.
Empty where there is none."""


class AddressNames:
    """Gathers the names of addresses while events come: what is loaded there may be something else later. An address
    keeps the name that it had first."""

    def __init__(self, name_of: NameAddress) -> None:
        self._name_of = name_of
        self._names: dict[tuple[int, int], str] = {}

    def add(self, batch: EventBatch) -> None:
        """Name what is new in events."""
        for event_type, table in batch.tables:
            pids = table.column(PLACE.get_field_index("pid"))
            for pid in pc.unique(pids).to_pylist():
                own = table.filter(pc.equal(pids, pid))
                columns = own.columns[len(PLACE) :]
                # The first of a backtrace is where the event was, all others are where calls go on.
                for field, column in zip(event_type.values, columns, strict=True):
                    if field.name == _PLACE and field.type is Shape.POINTER:
                        self._note(pid, column, is_return=False)
                for field, column in zip(event_type.values, columns, strict=True):
                    if _has_callers(field):
                        flat = pc.list_flatten(column) if field.type is Shape.BACKTRACE else column
                        self._note(pid, flat, is_return=True)

    def write(self, path: Path) -> None:
        """Write all names that there are. Raises OSError."""
        named = [(pid, address, name) for (pid, address), name in self._names.items() if name]
        pids, addresses, names = zip(*named, strict=True) if named else ((), (), ())
        columns = [
            pa.array(np.array(pids, np.uint32)),
            pa.array(np.array(addresses, np.uint64)),
            pa.array(names, pa.string()),
        ]
        pq.write_table(pa.Table.from_arrays(columns, schema=ADDRESSES_SCHEMA), path, compression="zstd")

    def _note(self, pid: int, column: pa.ChunkedArray | pa.Array, *, is_return: bool) -> None:
        for address in pc.unique(column).to_pylist():
            key = pid, address
            if address is not None and key not in self._names and len(self._names) < MAX_NAMES:
                self._names[key] = plain_text(self._name_of(pid, address, is_return))


def _has_callers(field: Field) -> bool:
    return field.type is Shape.BACKTRACE or (field.name == _CALLER and field.type is Shape.POINTER)
