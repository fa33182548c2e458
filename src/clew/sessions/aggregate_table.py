"""A table in which the target adds up, and what is asked of it.

Runs in the controller, in any thread. Light: what reads a table is `sessions/aggregates.py`.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from clew.dataclass import dataclass
from clew.errors import UsageError
from clew.process.table_shape import TableShape
from clew.protocol._constants import (
    AGGREGATE_KEY_WORDS,
    AGGREGATES_BYTES,
    MAX_AGGREGATE_ROWS_LOG2,
    CaptureType,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from clew.process.aggregate_tables import AggregateTables

__all__ = ["AggregateRoom", "AggregateTable", "AggregateWish"]

_ALIGNMENT: Final = 4096
_ROWS_A_KEY: Final = 4
"""Of so many rows a key finds one of the few in which it may be, but for one of some ten thousand."""
MAX_KEYS: Final = (1 << MAX_AGGREGATE_ROWS_LOG2) // _ROWS_A_KEY
_COLUMNS: Final = frozenset(("count", "sum", "min", "max", "mean", "n_missing", "histogram", "p50", "p90", "p99"))


@dataclass(frozen=True)
class AggregateWish:
    """What is added up: `value`, if there is one, by the expressions `by`, where `condition` holds."""

    by: list[str]
    value: str | None
    condition: str | None
    max_keys: int
    has_histogram: bool


class AggregateTable:
    """A table of a shape, with the types of its keys and of its value, in all processes that have it."""

    def __init__(self, shape: TableShape, kinds: list[CaptureType]) -> None:
        self.shape = shape
        self.key_kinds = kinds[: shape.n_keys]
        self.value_kind = kinds[shape.n_keys] if shape.has_values else None
        self.take_rows: Callable[[bytes], None] = lambda rows: None
        """Is given the rows of each process that ends."""
        self._lock = threading.Lock()
        self._families: list[list[AggregateTables]] = []
        self._n_left_out = 0

    def have_in(self, tables: AggregateTables) -> None:
        """Have a process add up, and those that it forks from now on."""
        tables.add(self.shape, self._end)
        with self._lock:
            self._families = [family for family in self._families if family and family is not tables.family]
            self._families.append(tables.family)

    def read(self, take: Callable[[bytes], None], finish: Callable[[], None]) -> int:
        """Have `take` given the rows of all processes that run, and then `finish` called, while none of them ends; how
        many executions found no room, in all processes that there were."""
        with self._lock:
            contents = [tables.read(self.shape) for family in self._families for tables in list(family)]
            for content in contents:
                take(content.rows)
            finish()
            return self._n_left_out + sum(content.n_left_out for content in contents)

    def _end(self, tables: AggregateTables) -> None:
        with self._lock:
            content = tables.read(self.shape)
            tables.let_go(self.shape)
            self._n_left_out += content.n_left_out
            self.take_rows(content.rows)


class AggregateRoom:
    """The room for the tables of a session: each lies at the same place in all processes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._end = 0

    def make(self, wish: AggregateWish, kinds: list[CaptureType]) -> AggregateTable:
        """Raises UsageError: there can't be such a table, or there is no room for it."""
        n_keys = len(wish.by)
        if n_keys > AGGREGATE_KEY_WORDS:
            raise UsageError(f"{n_keys} keys: there are {AGGREGATE_KEY_WORDS} at most")
        if not 0 < wish.max_keys <= MAX_KEYS:
            raise UsageError(f"max_keys {wish.max_keys}: from 1 to {MAX_KEYS}")
        if wish.value is None and wish.has_histogram:
            raise UsageError("a histogram is of a value: there is none")
        if wish.value is not None and kinds[n_keys] == CaptureType.TEXT:
            raise UsageError(f"{wish.value}: bytes can't be added up")
        for text in wish.by:
            if text in _COLUMNS or wish.by.count(text) > 1:
                raise UsageError(f"{text!r}: there is such a column already")
        rows_log2 = (_ROWS_A_KEY * wish.max_keys - 1).bit_length() if n_keys else 0
        with self._lock:
            shape = TableShape(self._end, n_keys, rows_log2, wish.value is not None, wish.has_histogram)
            if self._end + shape.size_bytes > AGGREGATES_BYTES:
                raise UsageError(f"{shape.size_bytes} bytes of rows: {AGGREGATES_BYTES - self._end} are left")
            self._end += -(-shape.size_bytes // _ALIGNMENT) * _ALIGNMENT
        return AggregateTable(shape, kinds)
