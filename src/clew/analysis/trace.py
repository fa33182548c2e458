"""A trace, with what can be asked of it beyond its tables."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from clew.errors import UsageError
from clew.store.trace import Trace as StoredTrace

if TYPE_CHECKING:
    import pyarrow as pa

    from clew.analysis.graph.graph_tables import Graph
    from clew.analysis.invariants.check import Finding
    from clew.analysis.order.path_code import ProcessCode
    from clew.analysis.order.thread_path import ThreadPath

__all__ = ["SUBJECTS", "Trace"]

SUBJECTS: Final = ("function", "block", "edge", "line", "image", "thread")
"""What can be ranked."""


class Trace(StoredTrace):
    """A finished trace: see `clew.store.trace.Trace` for its tables."""

    def path(self, thread: int | None = None, *, pid: int | None = None, process_id: int | None = None) -> ThreadPath:
        """The order of execution of a thread, by its id; by default of the first one. Mode full only.

        `pid` tells threads of several processes apart that had the same number. A process that calls execve goes on
        with the same numbers as another program, with a path of its own: `process_id`, the row of the table
        `processes`, says which is meant; by default the last one of those that match. Raises UsageError if there is no
        such path, and TraceDamagedError.
        """
        from clew.analysis.order.thread_path import ThreadPath

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
            from clew.analysis.order.path_code import load_process_code

            self._codes[row["process_id"]] = load_process_code(self, row["process_id"])
        return ThreadPath(self, row, self._codes[row["process_id"]])

    def summary(self) -> dict[str, Any]:
        """What is in the trace: totals, processes with their threads and images, losses, as `clew info --json` has it.

        Addresses are hexadecimal strings, sizes bytes, times seconds or nanoseconds as their names say. Raises
        TraceDamagedError.
        """
        from clew.analysis.summary import describe_trace

        return describe_trace(self)

    def report(
        self, by: str = "function", n: int = 20, *, pid: int | None = None, merge: bool = False
    ) -> list[dict[str, Any]]:
        """The `n` hottest functions, blocks, edges, lines, images or threads, as `clew report --json` has them.

        `by` is one of SUBJECTS. With `pid` only what that process ran; with `merge` what is in the same file is added
        up over processes: functions, lines, images. In mode coverage, where nothing is counted, the largest come
        first. Raises UsageError for what there is none of, and TraceDamagedError.
        """
        from clew.analysis.ranking.hottest import MERGEABLE, rank

        if by not in SUBJECTS:
            raise UsageError(f"{by!r}: no such subject; choose {', '.join(SUBJECTS)}")
        if n < 1:
            raise UsageError(f"n is {n}: choose 1 or more")
        if merge and (by not in MERGEABLE or pid is not None):
            raise UsageError(f"merge: only of {', '.join(MERGEABLE)}, and without pid")
        if pid is not None and all(process["pid"] != pid for process in self.manifest.processes):
            raise UsageError(f"process {pid}: not in this trace")
        return rank(self, by, n, pid=pid, merge=merge).rows

    def verify(self, *, max_examples: int = 5) -> list[Finding]:
        """What does not hold of all that holds in every trace; empty for a good one, as `clew verify` has it.

        Of each invariant that does not hold up to `max_examples` places are told. What was lost is no such thing: it is
        in `manifest.losses`. Raises TraceDamagedError.
        """
        from clew.analysis.invariants.check import check_invariants

        return check_invariants(self, max_examples=max_examples)

    def coverage(self) -> pa.Table:
        """Which code ran: a row for each basic block, by process and address.

        Columns: `process_id`, `image` (a path; null outside of all), `offset` in the image (bytes), `app_pc`,
        `size_bytes`, `n_instructions`, `symbol`, `symbol_offset`, `first_ns` (nanoseconds since 1970) and
        `executions`, which is 1 in mode coverage. Raises TraceDamagedError.
        """
        from clew.analysis.coverage import list_coverage

        return list_coverage(self)

    def graph(self, function: str | None = None, *, process_id: int | None = None) -> Graph:
        """Blocks and edges of a process, by default of the one that executed most, with how often each was executed.

        With `function` only those of the functions that have this name, demangled. Raises UsageError if there is no
        such process or function, and TraceDamagedError.
        """
        from clew.analysis.graph.graph_tables import make_graph

        return make_graph(self, process_id, function)

    def span_of_probes(self, process_id: int) -> tuple[int, int] | None:
        """When the first and the last event of a probe came of a process (ns since 1970); None if none did: in a
        recorded trace there are none, `TraceWithEvents` has them."""
        return None

    @cached_property
    def _codes(self) -> dict[int, ProcessCode]:
        return {}
