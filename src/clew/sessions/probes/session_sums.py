"""What probes of a session add up in the target: a table for each, the same in all processes.

Runs in the controller, in the thread that owns the session.
"""

from __future__ import annotations

from clew.process.aggregate_tables import AggregateTables
from clew.sessions.aggregate_table import AggregateRoom, AggregateTable
from clew.sessions.aggregates import Aggregate
from clew.sessions.probes.asked import AskedProbe

__all__ = ["SessionSums"]


class SessionSums:
    """Of one session; `found` has what each probe adds up, by its index."""

    def __init__(self) -> None:
        self.found: dict[int, Aggregate] = {}
        self.room = AggregateRoom()
        """For tables of others as well, in the processes that this session has."""
        self._tables: dict[int, AggregateTable] = {}
        self._given: set[tuple[int, AggregateTables]] = set()
        """Which processes have which of the tables."""

    def find_table(self, probe: AskedProbe, tables: AggregateTables) -> AggregateTable:
        """Where a probe adds up, which a process has from now on, among its `tables`. Raises UsageError,
        CaptureError."""
        wish, index = probe.spec.wish, probe.index
        assert wish is not None
        if index not in self._tables:
            self._tables[index] = table = self.room.make(wish, probe.wanted_sum.kinds())
            self.found[index] = Aggregate(table, probe.spec.where, wish, lambda: None)
        if (index, tables) not in self._given:
            self._given.add((index, tables))
            self._tables[index].have_in(tables)
        return self._tables[index]

    def forget(self, tables: AggregateTables) -> None:
        """A process has none of them any more."""
        self._given = {one for one in self._given if one[1] is not tables}
