"""Which processes of a trace are linked: one of them names what is another's, or both give out the same number.

Runs in the controller. In a good trace none are. Reads only the columns with ids, a row group at a time; what is kept
is ranges of them, of which each process has one in each table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from clew.store.columns import Array, distinct, to_numpy
from clew.store.schema import SCHEMAS
from clew.store.trace import Trace

__all__ = ["Runs", "find_linked", "find_runs"]

_IDS: Final = {"images": "image_id", "blocks": "block_id", "edges": "edge_id", "calls": "call_id"}
_REFERENCES: Final[dict[str, Mapping[str, str]]] = {
    "blocks": {"image_id": "images"},
    "edges": {"source_block_id": "blocks", "target_block_id": "blocks", "callee_block_id": "blocks"},
    "counts": {"block_id": "blocks", "edge_id": "edges"},
    "tags": {"block_id": "blocks", "target_block_id": "blocks"},
    "path_blocks": {"block_id": "blocks"},
    "path_targets": {"block_id": "blocks"},
    "path_counters": {"block_id": "blocks"},
    "calls": {"block_id": "blocks"},
    "references": {"call_id": "calls"},
}
"""By table: columns that name rows of other tables, and which. Entities are left out: what several processes did with
one does not make them one piece."""

_NONE: Final = np.zeros(0, np.int64)


@dataclass(frozen=True)
class Runs:
    """Rows of a table that follow one another and have one owner: from each of `first` up to that of `last`."""

    owner: Array
    first: Array
    last: Array


@dataclass(frozen=True)
class _Ranges:
    """Ids that are given out, from `first` up to `last`, sorted and apart, and to whom (an index)."""

    first: Array
    last: Array
    owner: Array

    def find_owner(self, ids: Array) -> Array:
        """To whom ids are given out; -1 to nobody."""
        if not len(self.first):
            return np.full(len(ids), -1)
        at = np.searchsorted(self.first, ids, "right") - 1
        return np.where((at >= 0) & (ids < self.last[at]), self.owner[at], -1)


def find_runs(trace: Trace, table: str, column: str) -> Runs:
    """The runs of a column of integers."""
    found = _RunsSoFar()
    for piece in trace.iter_pieces(table, [column]):
        found.add(to_numpy(piece[column]))
    return found.finish()


def find_linked(trace: Trace) -> tuple[dict[str, Runs], dict[int, int]]:
    """The runs of every table by process_id; and for each of these one of those that it is linked to, if only itself.

    All that are linked, if by others, have the same one.
    """
    links = _Links()
    ranges: dict[str, _Ranges] = {}
    runs = {}
    # Those first whose ids others name.
    for table in dict.fromkeys(("processes", "images", "blocks", "edges", *SCHEMAS)):
        id_column = _IDS.get(table)
        references = _REFERENCES.get(table, {})
        given_out: list[tuple[Array, Array, Array]] = []
        found = _RunsSoFar()
        columns = dict.fromkeys(["process_id", *([id_column] if id_column else []), *references])
        for piece in trace.iter_pieces(table, list(columns)):
            process = to_numpy(piece["process_id"])
            if not len(process):
                continue
            starts = found.add(process)
            owners = np.array([links.number(owner) for owner in process[starts].tolist()])
            if id_column is not None:
                given_out.append(_find_ranges(to_numpy(piece[id_column]).astype(np.int64), starts, owners))
            for column, target in references.items():
                _link_references(links, to_numpy(piece[column]).astype(np.int64), starts, owners, ranges[target])
        if id_column is not None:
            ranges[table] = _join_ranges(links, given_out)
        runs[table] = found.finish()
    return {table: runs[table] for table in SCHEMAS}, links.leaders()


def _find_ranges(ids: Array, starts: Array, owners: Array) -> tuple[Array, Array, Array]:
    """Ranges of ids that rise by one: first, beyond the last, and owner of each."""
    begins = np.ones(len(ids), bool)
    begins[1:] = np.diff(ids) != 1
    begins[starts] = True
    at = np.flatnonzero(begins)
    last = np.append(at[1:], len(ids)) - 1
    return ids[at], ids[last] + 1, owners[np.searchsorted(starts, at, "right") - 1]


def _join_ranges(links: _Links, found: list[tuple[Array, Array, Array]]) -> _Ranges:
    """All ranges; owners of ranges that overlap give out the same number, or may as well, and are linked."""
    first, last, owner = (np.concatenate([_NONE, *(one[part] for one in found)]) for part in range(3))
    order = np.lexsort((last, first))
    first, last, owner = first[order], last[order], owner[order]
    furthest = np.maximum.accumulate(last) if len(last) else last
    overlaps = np.zeros(len(first), bool)
    overlaps[1:] = first[1:] < furthest[:-1]
    # Two that only touch are joined, too, if one process has both.
    overlaps[1:] |= (first[1:] == furthest[:-1]) & (owner[1:] == owner[:-1])
    for at in np.flatnonzero(overlaps).tolist():
        links.join(int(owner[at - 1]), int(owner[at]))
    begins = np.flatnonzero(~overlaps)
    ends = np.append(begins[1:], len(first)) - 1
    return _Ranges(first[begins], furthest[ends[: len(begins)]], owner[begins])


def _link_references(links: _Links, ids: Array, starts: Array, owners: Array, ranges: _Ranges) -> None:
    """Link who names ids with those to whom they are given out. `ids` below 0 name nothing."""
    if not len(ranges.first):
        return
    least = np.minimum.reduceat(np.where(ids < 0, np.iinfo(np.int64).max, ids), starts)
    greatest = np.maximum.reduceat(ids, starts)
    at = np.searchsorted(ranges.first, least, "right") - 1
    is_own = (greatest < 0) | (
        (at >= 0) & (least >= ranges.first[at]) & (greatest < ranges.last[at]) & (ranges.owner[at] == owners)
    )
    stops = np.append(starts[1:], len(ids))
    for run in np.flatnonzero(~is_own).tolist():
        named = distinct(ids[starts[run] : stops[run]])
        for other in distinct(ranges.find_owner(named[named >= 0])).tolist():
            if other >= 0:
                links.join(int(owners[run]), other)


class _RunsSoFar:
    """Finds runs in a column that comes in pieces."""

    def __init__(self) -> None:
        self._owners: list[Array] = []
        self._first: list[Array] = []
        self._n_rows = 0

    def add(self, owner: Array) -> Array:
        """Where in this piece runs begin; its first row begins one."""
        begins = np.ones(len(owner), bool)
        begins[1:] = owner[1:] != owner[:-1]
        starts = np.flatnonzero(begins)
        self._owners.append(owner[starts].astype(np.int64))
        self._first.append(starts + self._n_rows)
        self._n_rows += len(owner)
        return starts

    def finish(self) -> Runs:
        first = np.concatenate([_NONE, *self._first])
        return Runs(np.concatenate([_NONE, *self._owners]), first, np.append(first[1:], self._n_rows)[: len(first)])


class _Links:
    """Processes, numbered as they come, and which of them are linked."""

    def __init__(self) -> None:
        self._numbers: dict[int, int] = {}
        self._leader: list[int] = []

    def number(self, process_id: int) -> int:
        number = self._numbers.setdefault(process_id, len(self._leader))
        if number == len(self._leader):
            self._leader.append(number)
        return number

    def join(self, one: int, other: int) -> None:
        one, other = self._find(one), self._find(other)
        self._leader[max(one, other)] = min(one, other)

    def leaders(self) -> dict[int, int]:
        """By process_id that of the first that it is linked to."""
        process_ids = list(self._numbers)
        return {process_id: process_ids[self._find(number)] for process_id, number in self._numbers.items()}

    def _find(self, number: int) -> int:
        while self._leader[number] != number:
            self._leader[number] = self._leader[self._leader[number]]
            number = self._leader[number]
        return number
