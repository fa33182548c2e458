"""A trace, with what can be asked of it beyond its tables."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from clew.errors import UsageError
from clew.store.trace import Trace as StoredTrace

if TYPE_CHECKING:
    from clew.analysis.path_code import ProcessCode
    from clew.analysis.thread_path import ThreadPath

__all__ = ["Trace"]


class Trace(StoredTrace):
    """A finished trace: see `clew.store.trace.Trace` for its tables."""

    def path(self, thread: int | None = None, *, pid: int | None = None) -> ThreadPath:
        """The order of execution of a thread, by its id; by default of the first one. Mode full only.

        `pid` tells threads of several processes apart that had the same number. Raises UsageError if there is no such
        path, and TraceDamagedError.
        """
        from clew.analysis.thread_path import ThreadPath

        if self.mode != "full":
            raise UsageError(f"{self.directory}: no order was recorded in mode {self.mode}; record with --mode full")
        rows = self.paths.to_pylist()
        found = [row for row in rows if thread in (None, row["tid"]) and pid in (None, row["pid"])]
        if not found:
            some = ", ".join(str(row["tid"]) for row in rows[:8]) + (", …" if len(rows) > 8 else "")
            raise UsageError(f"thread {thread}: no path of it in this trace, which has those of {some}")
        row = found[0]
        if row["process_id"] not in self._codes:
            from clew.analysis.path_code import load_process_code

            self._codes[row["process_id"]] = load_process_code(self, row["process_id"])
        return ThreadPath(self, row, self._codes[row["process_id"]])

    @cached_property
    def _codes(self) -> dict[int, ProcessCode]:
        return {}
