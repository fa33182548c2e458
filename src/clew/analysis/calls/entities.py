"""What recorded calls are about: processes, threads, files, sockets, and who did what with them.

Runs in the controller. All of a trace: an entity may be several processes'. Kept are the entities and, of references,
how many there are of each process, entity and role.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np

from clew.analysis.tables.arrays import Array, find_rows, to_numpy
from clew.analysis.tables.told_json import read_json, tell_value
from clew.errors import UsageError
from clew.store.trace import Trace

__all__ = ["ENTITY_SORTS", "EntityFilter", "EntityTable", "Touch"]

ENTITY_SORTS: Final = ("calls", "name", "first", "bytes")
_MAX_DETAILS: Final = 24


@dataclass(frozen=True)
class EntityFilter:
    """Which entities are asked for: of a kind, with a text in the name, that a process has to do with.

    None or empty for all.
    """

    kind: str | None = None
    text: str = ""
    process_id: int | None = None


@dataclass(frozen=True)
class Touch:
    """What a process did with an entity: in how many calls, in which roles, and how many bytes were read and written.

    `roles` says how many references there are of each.
    """

    process_id: int
    entity_id: int
    calls: int
    roles: dict[str, int]
    bytes_read: int
    bytes_written: int


class EntityTable:
    """The entities of a trace, by row. Raises TraceDamagedError when a table is read."""

    def __init__(self, trace: Trace) -> None:
        self._trace = trace
        self._counted: dict[int | None, Array] = {}

    def __len__(self) -> int:
        return self._trace.n_rows("entities")

    @cached_property
    def entity_id(self) -> Array:
        return to_numpy(self._trace.read("entities", ["entity_id"])["entity_id"])

    @cached_property
    def _process(self) -> Array:
        return to_numpy(self._trace.read("entities", ["process_id"])["process_id"])

    @cached_property
    def _tid(self) -> Array:
        return to_numpy(self._trace.read("entities", ["tid"])["tid"])

    @cached_property
    def _first_ns(self) -> Array:
        return to_numpy(self._trace.read("entities", ["first_ns"])["first_ns"])

    @cached_property
    def kinds(self) -> list[str]:
        """By row its kind, as the trace has it."""
        column = self._trace.read("entities", ["kind"])["kind"].combine_chunks()
        words = [str(word)[:40] for word in column.dictionary.to_pylist()]
        return [words[word] for word in to_numpy(column.indices).tolist()]

    @cached_property
    def names(self) -> list[str]:
        """By row its name, which the program chose."""
        found: list[str] = self._trace.read("entities", ["name"])["name"].to_pylist()
        return found

    @cached_property
    def _touches(self) -> tuple[Array, Array, Array]:
        """Pairs of a process and a row, by both, and in how many calls the one had to do with the other."""
        found = _Pairs()
        carried: tuple[int, set[int]] = (-1, set())
        for piece in self._trace.iter_pieces("references", ["process_id", "call_id", "entity_id"]):
            process, call, entity = (to_numpy(piece[name]) for name in piece.column_names)
            order = np.lexsort((entity, call))
            is_first = np.ones(len(order), bool)
            is_first[1:] = (np.diff(call[order]) != 0) | (np.diff(entity[order]) != 0)
            once = order[is_first]
            # The rows of a call follow one another, maybe over the border of a piece.
            again = [row for row in once[call[once] == carried[0]].tolist() if int(entity[row]) in carried[1]]
            once = once[~np.isin(once, again)]
            found.add(process[once], find_rows(self.entity_id, entity[once]), np.ones(len(once), np.int64))
            if len(call):
                last = int(call[-1])
                before = carried[1] if carried[0] == last else set()
                carried = (last, before | set(entity[call == last].tolist()))
        return found.finish()

    @cached_property
    def _roles(self) -> _Roles:
        """How many references there are of each process, row and role, and how many bytes."""
        words: dict[str, int] = {}
        parts = [np.zeros((5, 0), np.int64)]
        for piece in self._trace.iter_pieces("references", ["process_id", "entity_id", "bytes", "role"]):
            role = piece["role"].combine_chunks()
            number = [words.setdefault(str(word)[:40], len(words)) for word in role.dictionary.to_pylist()]
            process, entity, n_bytes = (to_numpy(piece[name]) for name in ("process_id", "entity_id", "bytes"))
            row, word = find_rows(self.entity_id, entity), to_numpy(role.indices).astype(np.int64)
            known = (row >= 0) & (word >= 0)
            word = np.array([*number, 0], np.int64)[word[known]]
            ones = np.ones(len(word), np.int64)
            parts.append(_sum_by_key(np.stack([process[known], row[known], word, ones, np.maximum(n_bytes[known], 0)])))
        return _Roles(list(words), _sum_by_key(np.concatenate(parts, axis=1)))

    def find_maker(self, row: int) -> tuple[int, int | None] | None:
        """The process_id and the tid of an entity that makes calls; of a process no tid. None for others."""
        process, kind, tid = int(self._process[row]), self.kinds[row], int(self._tid[row])
        if process < 0 or kind not in ("process", "thread") or (kind == "thread" and tid < 0):
            return None
        return process, tid if kind == "thread" else None

    @cached_property
    def _made(self) -> Array:
        """By row how many calls (i64) a process or thread made that do not refer to itself, which count already."""
        callers = [row for row, kind in enumerate(self.kinds) if kind in ("process", "thread")]
        makers = {row: maker for row in callers if (maker := self.find_maker(row)) is not None}
        total = np.zeros(len(self), np.int64)
        if not makers:
            return total
        pairs = [np.zeros((2, 0), np.int64)]
        for piece in self._trace.iter_pieces("references", ["call_id", "entity_id"]):
            rows = find_rows(self.entity_id, to_numpy(piece["entity_id"]))
            named = np.isin(rows, list(makers))
            pairs.append(np.stack([to_numpy(piece["call_id"])[named], rows[named]]).astype(np.int64))
        call_id, named_row = np.unique(np.concatenate(pairs, axis=1), axis=1)
        by_maker: Counter[tuple[int, int | None]] = Counter()
        for piece in self._trace.iter_pieces("calls", ["call_id", "process_id", "tid"]):
            call, process, tid = (to_numpy(piece[name]) for name in piece.column_names)
            keys, counts = np.unique((process.astype(np.int64) << 32) | tid, return_counts=True)
            for one_process, one_tid, n in zip(
                (keys >> 32).tolist(), (keys & 0xFFFFFFFF).tolist(), counts.tolist(), strict=True
            ):
                by_maker[one_process, one_tid] += n
                by_maker[one_process, None] += n
            at = find_rows(call, call_id)
            for place, row in zip(at[at >= 0].tolist(), named_row[at >= 0].tolist(), strict=True):
                process_id, thread = makers[row]
                is_own = int(process[place]) == process_id and thread in (None, int(tid[place]))
                total[row] -= is_own
        for row, maker in makers.items():
            total[row] += by_maker[maker]
        return total

    def count_calls(self, process_id: int | None = None) -> Array:
        """By row how many calls (i64) of a process, or of all, have to do with it, or were made by it."""
        process, row, calls = self._touches
        found = self._counted.get(process_id)
        if found is not None:
            return found
        own = slice(None) if process_id is None else process == process_id
        total = np.bincount(row[own], weights=calls[own], minlength=len(self)).astype(np.int64)
        made: Array = self._made if process_id is None else np.where(self._process == process_id, self._made, 0)
        # Of all, and of the process that was looked at last.
        counted: dict[int | None, Array] = {key: kept for key, kept in self._counted.items() if key is None}
        counted[process_id] = total + made
        self._counted = counted
        return counted[process_id]

    def count_bytes(self, process_id: int | None = None) -> Array:
        """By row how many bytes (i64) a process, or all, read and wrote of it."""
        roles = self._roles
        process, row, word, _, n_bytes = roles.sums
        chosen = np.isin(word, [roles.words.index(one) for one in ("read", "written") if one in roles.words])
        if process_id is not None:
            chosen &= process == process_id
        return np.bincount(row[chosen], weights=n_bytes[chosen], minlength=len(self)).astype(np.int64)

    def choose(self, wanted: EntityFilter) -> Array:
        """Rows that are asked for, rising."""
        chosen = np.ones(len(self), bool)
        if wanted.kind is not None:
            chosen &= np.array([kind == wanted.kind for kind in self.kinds], bool)
        if wanted.text:
            text = wanted.text.lower()
            chosen &= np.array([text in name.lower() for name in self.names], bool)
        if wanted.process_id is not None:
            chosen &= (self.count_calls(wanted.process_id) > 0) | (self._process == wanted.process_id)
        return np.flatnonzero(chosen)

    def sort(self, rows: Array, sort: str, process_id: int | None) -> Array:
        """Rows sorted: by calls or bytes of a process, or of all, the most first, by name, or by when they were first
        met. Raises UsageError."""
        if sort not in ENTITY_SORTS:
            raise UsageError(f"sort: {sort[:40]!r} is none of {', '.join(ENTITY_SORTS)}")
        if sort == "name":
            found = np.array(sorted(rows.tolist(), key=lambda row: (self.names[row].lower(), row)), np.int64)
        elif sort == "first":
            found = rows[np.argsort(self._first_ns[rows], kind="stable")]
        else:
            by = (self.count_calls if sort == "calls" else self.count_bytes)(process_id)
            found = rows[np.lexsort((rows, -by[rows]))]
        return found

    def count_kinds(self, rows: Array) -> dict[str, int]:
        """How many rows there are of each kind, the most first."""
        return dict(Counter(self.kinds[row] for row in rows.tolist()).most_common(40))

    def find(self, entity_id: int) -> int:
        """The row of an entity. Raises UsageError if there is none."""
        row = int(find_rows(self.entity_id, np.array([entity_id]))[0])
        if row < 0:
            raise UsageError(f"no entity {entity_id} in this trace")
        return row

    def read(self, rows: Sequence[int]) -> list[dict[str, Any]]:
        """What the table says of some rows, `details` as pairs of words and texts."""
        names = ["entity_id", "process_id", "pid", "parent_entity_id", "kind", "name", "details", "first_ns", "last_ns"]
        found = self._trace.read_rows("entities", rows, names)
        return [row | {"details": _tell_details(row["details"])} for row in found]

    def touches(self, process_id: int | None = None, entity_id: int | None = None) -> list[Touch]:
        """What processes, or one, did with entities, or one, those with the most calls first."""
        process, row, calls = self._touches
        chosen = np.ones(len(process), bool)
        if process_id is not None:
            chosen &= process == process_id
        if entity_id is not None:
            chosen &= row == self.find(entity_id)
        at = np.flatnonzero(chosen)
        at = at[np.lexsort((row[at], process[at], -calls[at]))]
        return [self._tell_touch(int(process[one]), int(row[one]), int(calls[one])) for one in at.tolist()]

    def _tell_touch(self, process_id: int, row: int, calls: int) -> Touch:
        roles, moved = self._roles.find(process_id, row)
        return Touch(
            process_id, int(self.entity_id[row]), calls, dict(roles.most_common()), moved["read"], moved["written"]
        )


class _Roles:
    """`sums`: by process, row and role (an index of `words`), in that order, how many references and bytes."""

    def __init__(self, words: list[str], sums: Array) -> None:
        self.words, self.sums = words, sums

    def find(self, process_id: int, row: int) -> tuple[Counter[str], Counter[str]]:
        """Of a process and a row how many references there are of each role, and how many bytes."""
        process, rows, word, n, n_bytes = self.sums
        first, last = np.searchsorted(process, [process_id, process_id + 1])
        start, end = first + np.searchsorted(rows[first:last], [row, row + 1])
        names = [self.words[one] for one in word[start:end].tolist()]
        return (
            Counter(dict(zip(names, n[start:end].tolist(), strict=True))),
            Counter(dict(zip(names, n_bytes[start:end].tolist(), strict=True))),
        )


def _sum_by_key(columns: Array) -> Array:
    """Rows of process, row, role and two sums, with equal ones added up; sorted by the first three."""
    process, row, word, *_ = columns
    order = np.lexsort((word, row, process))
    columns = columns[:, order]
    if not len(order):
        return columns
    firsts = np.flatnonzero(np.append(True, (np.diff(columns[:3], axis=1) != 0).any(axis=0)))
    return np.concatenate([columns[:3, firsts], np.add.reduceat(columns[3:], firsts, axis=1)])


class _Pairs:
    """Sums by a process and a row, which come in pieces."""

    def __init__(self) -> None:
        self._keys: list[Array] = []

    def add(self, process: Array, row: Array, n: Array) -> None:
        known = row >= 0
        self._keys.append(np.stack([process[known], row[known], n[known]]).astype(np.int64))
        if len(self._keys) > 64:
            self._keys = [self._sum()]

    def _sum(self) -> Array:
        every = np.concatenate([np.zeros((3, 0), np.int64), *self._keys], axis=1)
        every = every[:, np.lexsort((every[1], every[0]))]
        if not every.shape[1]:
            return every
        firsts = np.flatnonzero(np.append(True, (np.diff(every[:2], axis=1) != 0).any(axis=0)))
        found: Array = np.concatenate([every[:2, firsts], np.add.reduceat(every[2:], firsts, axis=1)])
        return found

    def finish(self) -> tuple[Array, Array, Array]:
        process, row, n = self._sum()
        return process, row, n


def _tell_details(text: str) -> list[tuple[str, str]]:
    told = read_json(text)
    if not isinstance(told, dict):
        return []
    return [(tell_value(name), tell_value(value)) for name, value in list(told.items())[:_MAX_DETAILS]]
