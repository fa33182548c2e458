"""Events of one probe as Python has them: a table, or one by one.

Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from clew.dataclass import dataclass
from clew.export.probes.event_types import PLACE, EventKind, EventType
from clew.export.probes.rows import Event

__all__ = ["ProbeEvent", "columns_of", "join_tables", "to_event"]

_NAME: Final = pa.field("event", pa.string())


@dataclass(frozen=True)
class ProbeEvent:
    """An event of a probe: `event[text]` is what an expression came to that was asked for, None: it could not be had.

    `name` is the probe's, with `_entry` or `_exit` where it is one of a function's; `kind` is `point`, `entry` or
    `return`. `time_ns` counts from 1970, `sequence` within the thread, over all events of a session. `ip` is where it
    was; `comm` is the thread's name.
    """

    name: str
    kind: str
    time_ns: int
    sequence: int
    pid: int
    tid: int
    comm: bytes
    cpu: int | None
    values: dict[str, Any]

    @property
    def ip(self) -> int:
        """The address of the instruction."""
        return int(self.values["ip"])

    def __getitem__(self, text: str) -> Any:
        return self.values[text]


def to_event(event: Event) -> ProbeEvent:
    """The same, for callbacks."""
    names = [one.name for one in event.type.values]
    values: dict[str, Any] = {}
    for name, value in zip(names, event.values, strict=True):
        values.setdefault(name, value)
    place = event.time_ns, event.sequence, event.pid, event.tid, event.comm, event.cpu
    return ProbeEvent(event.type.name, event.type.kind.value, *place, values)


def columns_of(types: Iterable[EventType]) -> pa.Schema:
    """What a table of events of these types has: the event's name and its place (PLACE), then each value once. Of
    values of one name those that returns have of another type are called `NAME (return)`."""
    fields = {field.name: field for field in [_NAME, *PLACE]}
    for one in types:
        for field in _own_fields(one).values():
            name = field.name
            if name in fields and fields[name].type != field.type:
                name = _of_return(name)
            fields.setdefault(name, field.with_name(name).with_nullable(True))
    return pa.schema(list(fields.values()))


def join_tables(tables: Sequence[tuple[EventType, pa.Table]], types: Iterable[EventType]) -> pa.Table:
    """Events as one table, by time; `types` are those that there may be."""
    schema = columns_of([*types, *(one for one, _ in tables)])
    if not tables:
        return schema.empty_table()
    joined = pa.concat_tables([_fit(one, table, schema) for one, table in tables])
    order = pc.sort_indices(joined, sort_keys=[("time_ns", "ascending"), ("sequence", "ascending")])
    return joined.take(order)


def _fit(event_type: EventType, table: pa.Table, schema: pa.Schema) -> pa.Table:
    n = table.num_rows
    columns = {name: table.column(index) for index, name in enumerate(PLACE.names)}
    for index, field in _own_fields(event_type).items():
        name = field.name if schema.field(field.name).type == field.type else _of_return(field.name)
        columns[name] = table.column(index)
    # The program's names may be any text.
    columns[_NAME.name] = pa.array([event_type.name.encode("utf-8", "backslashreplace").decode()] * n, pa.string())
    return pa.table([columns.get(one.name, pa.nulls(n, one.type)) for one in schema], schema=schema)


def _own_fields(event_type: EventType) -> dict[int, pa.Field]:
    """What events of a type have besides their place, by column: the first of each name."""
    taken = {_NAME.name, *PLACE.names}
    own = {}
    for index, field in enumerate(event_type.schema):
        if field.name not in taken:
            taken.add(field.name)
            own[index] = field
    return own


def _of_return(name: str) -> str:
    return f"{name} ({EventKind.RETURN.value})"
