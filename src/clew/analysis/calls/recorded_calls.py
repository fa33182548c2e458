"""The recorded calls of a process, or of all (table `calls`), as arrays, and what is told of single ones.

Runs in the controller. Texts stay in the file until somebody looks at the calls that have them.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from clew.analysis.calls.call_columns import CALL_COLUMNS, CallColumns, has_one_image
from clew.analysis.calls.call_nesting import CallNesting
from clew.analysis.calls.call_rows import MOST_CALLS, CallRows, join_parts, sort_calls
from clew.analysis.calls.told_calls import ToldCalls
from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.tables.arrays import Array, find_rows, to_numpy
from clew.store.excerpt import excerpt_of_process
from clew.store.trace import Trace

__all__ = ["RecordedCalls"]

_TOLD: Final = (
    *("call_id", "parent_call_id", "kind", "number", "library", "position", "arguments", "result", "result_text"),
    *("error", "injected"),
)


class RecordedCalls:
    """The calls of the process of `graph`. `rows` has them; their `source` is a row of the process' calls.

    Raises TraceDamagedError when a table is read.
    """

    def __init__(self, graph: ProcessGraph) -> None:
        self._graph = graph
        self._open(excerpt_of_process(graph.trace, graph.process_id))

    def _open(self, excerpt: Trace) -> None:
        self._excerpt = excerpt
        self.n_all = excerpt.n_rows("calls")
        """How many there are, listed or not."""
        self.n_references = excerpt.n_rows("references")

    @cached_property
    def rows(self) -> CallRows:
        """All that are listed, in the order of time."""
        columns, left = CallColumns(), MOST_CALLS
        for piece in self._excerpt.iter_pieces("calls", CALL_COLUMNS):
            columns.add(piece.slice(0, left))
            left -= min(piece.num_rows, left)
            if not left:
                break
        tids = self._graph.threads.tolist()
        rows = columns.finish(
            tids,
            find_rows(np.array(tids, np.int64), columns.numbers("tid")),
            find_rows(self._graph.block_id, columns.numbers("block_id")),
        )
        return replace(
            sort_calls(rows),
            n_omitted=self.n_all - len(rows),
            is_alone=has_one_image(self._excerpt.read("images", ["path"])["path"].to_pylist()),
            processes=[self._graph.process_id],
        )

    @cached_property
    def _call_id(self) -> Array:
        """By row of the calls."""
        return to_numpy(self._excerpt.read("calls", ["call_id"])["call_id"])

    @cached_property
    def _index(self) -> Array:
        """By row of the calls, and behind the last for none, the index of the call; -1 if it is not listed."""
        found = np.full(max(self.n_all, len(self.rows)) + 1, -1)
        found[self.rows.source] = np.arange(len(self.rows))
        return found

    @cached_property
    def nesting(self) -> CallNesting:
        """What is within what, of those that are listed."""
        around = to_numpy(self._excerpt.read("calls", ["parent_call_id"])["parent_call_id"])[self.rows.source]
        return CallNesting(self.rows, self._index[find_rows(self._call_id, around)])

    @cached_property
    def position(self) -> Array:
        """By call where its thread was (i64); -1 where that is not known."""
        found: Array = to_numpy(self._excerpt.read("calls", ["position"])["position"])[self.rows.source]
        return found

    @cached_property
    def _told(self) -> ToldCalls:
        return ToldCalls(self._excerpt)

    def find(self, call_ids: Array) -> Array:
        """Indices of the calls that have these numbers, rising; those that are not listed left out."""
        index = np.unique(self._index[find_rows(self._call_id, call_ids)])
        return index[index >= 0]

    def number_of(self, call_ids: Array) -> Array:
        """By its id which call of its process each is (i64); -1 where it is not listed."""
        index = self._index[find_rows(self._call_id, call_ids)]
        if self.rows.number is None:
            return index
        found: Array = np.append(self.rows.number.astype(np.int64), -1)[index]
        return found

    def find_text(self, text: str) -> Array:
        """Indices of the calls that have a text, in whatever case, in an argument or in their result, as they are told;
        `fd=3` finds those with an argument of that name, or one that ends so, and value."""
        index = self._index[self._told.find(text)]
        return index[index >= 0]

    def read(self, indices: list[int]) -> list[dict[str, Any]]:
        """What is told of some calls, in the order of `indices`."""
        rows = self.rows.source[np.array(indices, np.int64)].tolist()
        return self._excerpt.read_rows("calls", rows, _TOLD)

    def find_entity(self, entity_id: int) -> Array:
        """Indices of the calls that have to do with an entity."""
        found = [
            to_numpy(piece["call_id"])[to_numpy(piece["entity_id"]) == entity_id]
            for piece in self._excerpt.iter_pieces("references", ["call_id", "entity_id"])
        ]
        return self.find(join_parts(found, np.int64))

    def read_references(self, indices: list[int], limit: int) -> list[list[dict[str, Any]]]:
        """By call, in the order of `indices`, what it did with which entities; at most so many of each."""
        call_ids = self._call_id[self.rows.source[np.array(indices, np.int64)]].tolist()
        found: dict[int, list[dict[str, Any]]] = {call_id: [] for call_id in call_ids}
        for piece in self._excerpt.iter_pieces("references", ["call_id", "entity_id", "role", "argument", "bytes"]):
            named = to_numpy(piece["call_id"])
            for call_id, told in found.items():
                rows = np.flatnonzero(named == call_id)[: limit - len(told)].tolist()
                told += [{name: piece[name][row].as_py() for name in piece.column_names} for row in rows]
        return [found[call_id] for call_id in call_ids]
