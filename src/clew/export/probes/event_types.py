"""Events of probes: what types of them there are, and the tables in which they come.

Pure. An event has its place (when, in which thread) and the values of its type's contexts and fields. Names come from
whoever made the probe, or from the program: they may be any text.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import Final

import pyarrow as pa

from clew.dataclass import dataclass, field
from clew.protocol._constants import CaptureType
from clew.store.arrow_types import ARROW_TYPES

__all__ = ["PLACE", "EventBatch", "EventKind", "EventType", "Field", "Loss", "Shape"]

PLACE: Final = pa.schema(
    {
        "time_ns": pa.int64(),
        "sequence": pa.uint64(),
        "pid": pa.uint32(),
        "tid": pa.uint32(),
        "comm": pa.binary(),
        "cpu": pa.int32(),
    }
)
"""The columns that all events have. `time_ns`: since 1970. `sequence` rises within a thread, over all types of events:
two events of one thread may have the same time. `comm`: the thread's name. `cpu` may be null, all others may not."""


class Shape(Enum):
    """What a value is that is neither a number nor a text: an address; bytes, zeros among them; registers by their
    names; addresses from the innermost call on."""

    POINTER = "pointer"
    BYTES = "bytes"
    REGISTERS = "registers"
    BACKTRACE = "backtrace"


class EventKind(Enum):
    """Where in the program an event comes from: some place; where a function is entered; where it returns."""

    POINT = "point"
    ENTRY = "entry"
    RETURN = "return"


@dataclass(frozen=True)
class Field:
    """A value that events have. `members` are the names of a register set's, one at least, of 64 bits each. A value may
    be missing (null) unless `is_present`: of memory that could not be read."""

    name: str
    type: CaptureType | Shape
    members: tuple[str, ...] = ()
    is_present: bool = False

    @property
    def arrow_type(self) -> pa.DataType:
        """What its column is of."""
        if self.type is Shape.POINTER:
            return pa.uint64()
        if self.type is Shape.BYTES:
            return pa.binary()
        if self.type is Shape.BACKTRACE:
            return pa.list_(pa.uint64())
        if self.type is Shape.REGISTERS:
            return pa.struct([pa.field(name, pa.uint64(), nullable=False) for name in self.members])
        return ARROW_TYPES[self.type]


@dataclass(frozen=True)
class EventType:
    """Events of one probe. `contexts` are values that events of other probes have as well. Of entries and returns
    `function` is the function's name; `call` is the name of the field that numbers the calls of a thread: entry and
    return of a call have the same number. Without one they are matched by their order."""

    name: str
    fields: tuple[Field, ...] = ()
    contexts: tuple[Field, ...] = ()
    kind: EventKind = EventKind.POINT
    function: str = ""
    call: str = ""

    @property
    def values(self) -> tuple[Field, ...]:
        """Contexts and fields, in the order of their columns."""
        return self.contexts + self.fields

    @property
    def schema(self) -> pa.Schema:
        """Of its tables: PLACE, the contexts, the fields. Columns are told apart by where they are: names may be
        there twice."""
        return pa.schema([*PLACE, *(pa.field(one.name, one.arrow_type, not one.is_present) for one in self.values)])

    def check(self, table: pa.Table) -> None:
        """Raises ValueError if `table` is not of this type."""
        wanted, types = self.schema, table.schema.types
        if types != wanted.types:
            raise ValueError(f"{self.name}: columns of {types} where {wanted.types} belong")
        for index, one in enumerate(wanted):
            may_be_null = one.nullable and (index >= len(PLACE) or one.name == "cpu")
            if not may_be_null and table.column(index).null_count:
                raise ValueError(f"{self.name}: a value of {one.name} is missing")


@dataclass(frozen=True)
class Loss:
    """Events of a thread that were lost, `count` of them, behind those that came before it and before those behind."""

    time_ns: int
    pid: int
    tid: int
    count: int


@dataclass(frozen=True)
class EventBatch:
    """Events as they come: a table of each type, with the events of several threads in any order, and what was lost
    behind them. Events of a thread are not in earlier batches if they come behind some in this one.

    `until_ns`: all events up to that time, of all threads, have come with this batch; None: nobody knows.
    """

    tables: Sequence[tuple[EventType, pa.Table]]
    losses: Sequence[Loss] = field(default_factory=list)
    until_ns: int | None = None
