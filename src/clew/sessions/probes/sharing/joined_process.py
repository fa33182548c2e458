"""A process that another session has, as far as this one sees it: what is added up there, and what is mapped.

Runs in the controller, in the thread that owns the session.
"""

from __future__ import annotations

import os
from typing import Any, Final

from clew.address import MAX_PID, Pid
from clew.errors import UsageError
from clew.process.aggregate_tables import AggregateTables, TableContent
from clew.process.identity import has_exited
from clew.process.table_shape import TableShape
from clew.sessions.probes.sharing.left_rings import LeftRings

__all__ = ["JoinedProcess", "JoinedTables", "shape_from_json", "shape_to_json"]

_MAX_ROWS_LOG2: Final = 24
_MAX_OFFSET: Final = 1 << 40


class JoinedTables(AggregateTables):
    """The tables of this session in the other one's memory, where they lie elsewhere than here."""

    def __init__(self, fd: int, start: int) -> None:
        super().__init__(fd, start)
        self._places: dict[TableShape, TableShape] = {}

    def place(self, own: TableShape, there: TableShape) -> None:
        """Where a table is. Raises UsageError where that is another one."""
        if own._replace(start=0) != there._replace(start=0):
            raise UsageError("a table is told by what it is not")
        self._places[own] = there

    def read(self, shape: TableShape) -> TableContent:
        if shape not in self._on_end or shape not in self._places:
            return TableContent(b"", 0)
        return self._read(self._places[shape])

    def end(self) -> None:
        """The other session is gone, or about to give the memory back."""
        for shape, on_end in list(self._on_end.items()):
            if shape in self._places:
                on_end(self)
        self._on_end.clear()
        if self in self.family:
            self.family.remove(self)


class JoinedProcess:
    """Process `pid`. `fd` is the shared memory, which it owns."""

    def __init__(self, told: dict[str, Any], fd: int) -> None:
        self._fd = fd
        pid, task, start = told.get("pid"), told.get("task"), told.get("aggregates")
        if any(type(one) is not int or not 0 < one <= MAX_PID for one in (pid, task)):
            raise UsageError("a process is told by what it does not have")
        if type(start) is not int or not 0 <= start < _MAX_OFFSET:
            raise UsageError("tables are told by what they do not have")
        assert pid is not None
        assert task is not None
        self.pid, self.task = Pid(pid), Pid(task)
        self.tables = JoinedTables(fd, start)
        self.left = LeftRings(fd, told.get("layout"))

    @property
    def is_served(self) -> bool:
        """Whether the runtime's task runs still."""
        return not has_exited(self.task)

    def close(self) -> None:
        """Keep what was added up, and let go."""
        if self._fd >= 0:
            self.tables.end()
            fd, self._fd = self._fd, -1
            os.close(fd)


def shape_to_json(shape: TableShape) -> list[Any]:
    """A table's shape, as it is told."""
    return list(shape)


def shape_from_json(told: Any) -> TableShape:
    """What somebody told. Raises UsageError."""
    if not isinstance(told, list) or len(told) != len(TableShape._fields):
        raise UsageError("a table's shape was expected")
    start, n_keys, rows_log2, has_values, has_histograms = told
    if any(type(one) is not int or one < 0 for one in (start, n_keys, rows_log2)) or rows_log2 > _MAX_ROWS_LOG2:
        raise UsageError("a table's shape was expected")
    if start > _MAX_OFFSET or not isinstance(has_values, bool) or not isinstance(has_histograms, bool):
        raise UsageError("a table's shape was expected")
    return TableShape(start, n_keys, rows_log2, has_values, has_histograms)
