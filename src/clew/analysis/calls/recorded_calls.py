"""The recorded calls of a process (table `calls`), as arrays, and what is told of single ones.

Runs in the controller. Texts stay in the file until somebody looks at the calls that have them.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Final

import numpy as np

from clew.analysis.calls.call_nesting import CallNesting
from clew.analysis.calls.call_rows import MOST_CALLS, CallRows, join_parts, sort_calls
from clew.analysis.calls.told_calls import ToldCalls
from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.tables.arrays import Array, find_rows, to_numpy, to_words
from clew.binary.vdso import VDSO_NAME
from clew.protocol.words import CALL_WORDS
from clew.store.excerpt import excerpt_of_process

__all__ = ["RecordedCalls"]

_COLUMNS: Final = ("call_id", "tid", "time_ns", "duration_ns", "kind", "name", "library", "block_id", "error")
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
        self._excerpt = excerpt_of_process(graph.trace, graph.process_id)
        self.n_all = self._excerpt.n_rows("calls")
        """How many there are, listed or not."""
        self.n_references = self._excerpt.n_rows("references")

    @cached_property
    def rows(self) -> CallRows:
        """All that are listed, in the order of time."""
        tids = self._graph.threads.tolist()
        names: dict[str, int] = {}
        libraries: dict[str, int] = {}
        parts: dict[str, list[Array]] = {name: [] for name in (*_COLUMNS, "failed")}
        left = MOST_CALLS
        for piece in self._excerpt.iter_pieces("calls", _COLUMNS):
            piece = piece.slice(0, left)
            left -= piece.num_rows
            for name in ("time_ns", "duration_ns", "block_id"):
                parts[name].append(to_numpy(piece[name]))
            parts["tid"].append(find_rows(np.array(tids, np.int64), to_numpy(piece["tid"]).astype(np.int64)))
            parts["kind"].append(to_words(piece["kind"], CALL_WORDS))
            parts["name"].append(_number_names(piece["name"].combine_chunks(), names))
            parts["library"].append(_number_names(piece["library"].combine_chunks(), libraries))
            parts["failed"].append(to_numpy(piece["error"].combine_chunks().indices) >= 0)
            if not left:
                break
        time_ns = join_parts(parts["time_ns"], np.int64)
        return sort_calls(
            CallRows(
                names=list(names),
                tids=tids,
                time_ns=time_ns,
                # What there is not is behind the last.
                name=_fit(join_parts(parts["name"], np.int64), len(names)),
                thread=_fit(join_parts(parts["tid"], np.int64), len(tids)),
                block=find_rows(self._graph.block_id, join_parts(parts["block_id"], np.int64)).astype(np.int32),
                kind=_fit(join_parts(parts["kind"], np.int64), len(CALL_WORDS)),
                failed=join_parts(parts["failed"], np.bool_),
                duration_ns=join_parts(parts["duration_ns"], np.int64),
                source=np.arange(len(time_ns)),
                n_omitted=self.n_all - len(time_ns),
                libraries=list(libraries),
                library=_fit(join_parts(parts["library"], np.int64), len(libraries)),
                is_alone=self._has_one_image(),
            )
        )

    def _has_one_image(self) -> bool:
        """Whether the program has its libraries inside: nothing else was loaded."""
        paths = self._excerpt.read("images", ["path"])["path"].to_pylist()
        return len({path for path in paths if path != VDSO_NAME}) == 1

    @cached_property
    def _call_id(self) -> Array:
        """By row of the process' calls."""
        return to_numpy(self._excerpt.read("calls", ["call_id"])["call_id"])

    @cached_property
    def _index(self) -> Array:
        """By row of the process' calls, and behind the last for none, the index of the call; -1 if it is not listed."""
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

    def index_of(self, call_ids: Array) -> Array:
        """By number the index of the call (i64); -1 where it is not listed."""
        found: Array = self._index[find_rows(self._call_id, call_ids)]
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


def _number_names(column: Any, names: dict[str, int]) -> Array:
    """Indices of names among all so far; -1 for null."""
    known = column.dictionary.to_pylist()
    lookup = np.array([*(names.setdefault(str(name), len(names)) for name in known), -1], np.int64)
    return lookup[to_numpy(column.indices)]


def _fit(values: Array, n: int) -> Array:
    """Numbers below `n`, and `n` for those that are not, in as few bytes as they need."""
    return np.where((values >= 0) & (values < n), values, n).astype(np.min_scalar_type(n))
