"""A trace, with what can be asked of it beyond its tables."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from clew.errors import UsageError
from clew.store.trace import Trace as StoredTrace

if TYPE_CHECKING:
    from clew.analysis.graph_tables import Graph
    from clew.analysis.path_code import ProcessCode
    from clew.analysis.thread_path import ThreadPath

__all__ = ["Trace"]


class Trace(StoredTrace):
    """A finished trace: see `clew.store.trace.Trace` for its tables."""

    def path(self, thread: int | None = None, *, pid: int | None = None, process_id: int | None = None) -> ThreadPath:
        """The order of execution of a thread, by its id; by default of the first one. Mode full only.

        `pid` tells threads of several processes apart that had the same number. A process that calls execve goes on
        with the same numbers as another program, with a path of its own: `process_id`, the row of the table
        `processes`, says which is meant; by default the last one of those that match. Raises UsageError if there is no
        such path, and TraceDamagedError.
        """
        from clew.analysis.thread_path import ThreadPath

        if self.mode != "full":
            raise UsageError(f"{self.directory}: no order was recorded in mode {self.mode}; record with --mode full")
        rows = self.paths.to_pylist()
        wanted = {"tid": thread, "pid": pid, "process_id": process_id}
        wanted = {name: value for name, value in wanted.items() if value is not None}
        found = [row for row in rows if all(row[name] == value for name, value in wanted.items())]
        if not found:
            some = ", ".join(str(row["tid"]) for row in rows[:8]) + (", …" if len(rows) > 8 else "")
            raise UsageError(f"thread {thread}: no path of it in this trace, which has those of {some}")
        row = found[0]
        if wanted:
            programs = [other for other in found if other["pid"] == row["pid"]]
            last = max(other["process_id"] for other in programs)
            row = next(other for other in programs if other["process_id"] == last)
        if row["process_id"] not in self._codes:
            from clew.analysis.path_code import load_process_code

            self._codes[row["process_id"]] = load_process_code(self, row["process_id"])
        return ThreadPath(self, row, self._codes[row["process_id"]])

    def graph(self, function: str | None = None, *, process_id: int | None = None) -> Graph:
        """Blocks and edges of a process, by default of the one that executed most, with how often each was executed.

        With `function` only those of the functions that have this name, demangled. Raises UsageError if there is no
        such process or function, and TraceDamagedError.
        """
        from clew.analysis.graph_tables import make_graph

        return make_graph(self, process_id, function)

    @cached_property
    def _codes(self) -> dict[int, ProcessCode]:
        return {}
