"""The processes of a bundle as rows of tables tell of them.

Runs in the controller, after the target ended.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clew.recording.assembly.clock import Clock
from clew.recording.assembly.records.bundles import Bundle
from clew.store.columns import numbers
from clew.store.schema import SCHEMAS

__all__ = ["Members", "make_table"]

Array = npt.NDArray[Any]


class Members:
    """The processes of `bundle`, the first of which has id `first_process`, by their place in it (`owner`)."""

    def __init__(self, bundle: Bundle, first_process: int) -> None:
        self.bundle, self.processes, self._first = bundle, bundle.processes, first_process
        self._pids = np.array([process.pid for process in bundle.processes], np.int64)
        clocks = [Clock(process) for process in bundle.processes]
        self._start_tsc = np.array([clock.start_tsc for clock in clocks], np.uint64)
        self._ns_per_tick = np.array([clock.ns_per_tick for clock in clocks])
        self._start_ns = np.array([clock.start_ns for clock in clocks], np.int64)
        self._duration_ns = np.array([clock.duration_ns for clock in clocks], np.int64)

    def columns(self, owner: Array) -> dict[str, pa.Array]:
        """The columns that say of which process rows are."""
        return {
            "process_id": numbers(self._first + owner, pa.int32()),
            "pid": numbers(self._pids[owner], pa.int32()),
        }

    def to_ns(self, tsc: Array, owner: Array) -> Array:
        """As `Clock.to_ns` has it, each time stamp by the clock of its process."""
        start = self._start_tsc[owner]
        elapsed = np.where(tsc > start, tsc - start, 0).astype(np.float64) * self._ns_per_tick[owner]
        time_ns: Array = self._start_ns[owner] + np.minimum(elapsed, self._duration_ns[owner]).astype(np.int64)
        return time_ns


def make_table(table: str, /, **columns: pa.Array | pa.ChunkedArray) -> pa.Table:
    schema = SCHEMAS[table]
    return pa.Table.from_arrays([columns[field] for field in schema.names], schema=schema)
