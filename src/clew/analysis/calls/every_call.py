"""The recorded calls of all processes of a trace together, in the order of time.

Runs in the controller. Blocks are told by the graph of a process, which none is made of here: of a thousand processes
that would take minutes.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace
from functools import cached_property
from typing import Final

import numpy as np

from clew.analysis.calls.call_columns import CALL_COLUMNS, CallColumns, has_one_image
from clew.analysis.calls.call_rows import MOST_CALLS, CallRows, sort_calls
from clew.analysis.calls.recorded_calls import RecordedCalls
from clew.analysis.tables.arrays import Array, pack_threads, to_numpy
from clew.store.trace import Trace

__all__ = ["EveryCall"]

_LOW_BITS: Final = 0xFFFFFFFF


class EveryCall(RecordedCalls):
    """The calls of all processes of `trace`. Their `source` is a row of the table, and their `number` the index that
    they have among the calls of their process. Of more than MOST_CALLS those of the first processes are listed.

    Raises TraceDamagedError when a table is read.
    """

    def __init__(self, trace: Trace) -> None:
        self._open(trace)

    @cached_property
    def rows(self) -> CallRows:
        """All that are listed, in the order of time."""
        columns, sources, first = CallColumns(), [np.zeros(0, np.int64)], 0
        listed = self._find_listed()
        for piece in self._excerpt.iter_pieces("calls", CALL_COLUMNS):
            kept = np.flatnonzero(np.isin(to_numpy(piece["process_id"]), listed))
            columns.add(piece if len(kept) == piece.num_rows else piece.take(kept))
            sources.append(first + kept)
            first += piece.num_rows
        process_id = columns.numbers("process_id")
        key = pack_threads(process_id, columns.numbers("tid"))
        threads = np.unique(key)
        process = np.searchsorted(listed, process_id).astype(np.min_scalar_type(len(listed)))
        rows = columns.finish((threads & _LOW_BITS).tolist(), np.searchsorted(threads, key), np.zeros(0, np.int32))
        rows = sort_calls(replace(rows, source=np.concatenate(sources), process=process))
        return replace(
            rows,
            n_omitted=self.n_all - len(rows),
            is_alone=self._find_alone(listed)[rows.whose],
            processes=listed.tolist(),
            number=_number(rows.whose),
            owners=(threads >> 32).tolist(),
        )

    def _find_listed(self) -> Array:
        """Processes (i64, rising) whose calls are listed: whole ones, so that each call has its number among them."""
        column = to_numpy(self._excerpt.read("calls", ["process_id"])["process_id"]).astype(np.int64)
        processes, n_calls = np.unique(column, return_counts=True)
        found: Array = processes[np.cumsum(n_calls) <= MOST_CALLS]
        return found

    def _find_alone(self, processes: Array) -> Array:
        """By process (an index) whether one image has all its functions."""
        images = self._excerpt.read("images", ["process_id", "path"])
        paths: defaultdict[int, list[str]] = defaultdict(list)
        for process_id, path in zip(*(images[name].to_pylist() for name in images.column_names), strict=True):
            paths[process_id].append(path)
        return np.array([has_one_image(paths[process_id]) for process_id in processes.tolist()], bool)


def _number(whose: Array) -> Array:
    """By call (u32), in the order of time, which of its process' calls it is."""
    order = np.argsort(whose, kind="stable")
    grouped = whose[order]
    found = np.empty(len(whose), np.uint32)
    found[order] = np.arange(len(whose)) - np.searchsorted(grouped, grouped)
    return found
