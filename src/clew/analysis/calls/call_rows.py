"""The calls of a process, or of all of a trace, as arrays: chosen by what is asked for, put in order, a
page at a time, and added up.

Runs in the controller. Knows neither where calls come from (`system_calls` and `recorded_calls` beside it) nor what
their arguments are. What is kept of a call takes some twenty bytes, so that ten million of them fit.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np

from clew.analysis.calls.call_filters import find_filters
from clew.analysis.tables.arrays import Array
from clew.api.vocabulary import FILTERS
from clew.errors import UsageError
from clew.protocol.words import CALL_WORDS

__all__ = [
    "MAX_BINS",
    "MOST_CALLS",
    "SORTS",
    "CallFilter",
    "CallRows",
    "CallSeries",
    "join_parts",
    "sort_calls",
]

SORTS: Final = ("time", "process", "thread", "name", "duration", "block")
GROUPS: Final = ("name", "kind", "filter", "process", "thread")
MOST_CALLS: Final = 1 << 24
"""So many of a process are listed, the first of them; the others are a number."""
MAX_BINS: Final = 1 << 12
_KEPT_ORDERS: Final = 3


@dataclass(frozen=True)
class CallFilter:
    """Which calls are asked for; None asks for all. `name` is a whole name, `text` a part of one in whatever case.

    `start_ns` and `end_ns` are nanoseconds since 1970, the second one not in it. `failed` asks for calls that failed,
    `filter` for those that descriptions have under that word, `entity` for those that have to do with an entity.
    """

    name: str | None = None
    text: str = ""
    threads: tuple[int, ...] | None = None
    kind: str | None = None
    filter: str | None = None
    failed: bool = False
    start_ns: int | None = None
    end_ns: int | None = None
    entity: int | None = None


@dataclass(frozen=True)
class CallSeries:
    """Calls over time: `counts` (i64, [series, bin]) and what each series is, the largest first; where there are more
    than were asked for the last one is all others, and `n_others` says how many of them there are."""

    names: list[str]
    counts: Array
    n_others: int


@dataclass
class CallRows:
    """Calls in the order of time, by index: `time_ns` (i64), `name` (an index of `names`), `thread` (of `tids`),
    `block` (i32, of the graph; -1 where it is not known), `kind` (u8, of CALL_WORDS), `failed`, `duration_ns` (i64, -1
    where it is not known) or None for none, and `source`: where more of it is told.
    `library` is an index of `libraries` (behind the last one: of none), or None where no call is of any.

    `processes` (process_ids) are those that made them, `process` is an index of these, `number` which call of its
    process each is, and `owners` has the process_id of each thread; of a single process the last three are not needed.
    `described` (u8) has what they were recorded under, an index of FILTERS, or their number where that is not known;
    `injected` (u8) has what was done to each, as bits of Injected; None where nothing was done to any.
    `n_omitted` calls are not among them. `is_alone` (of all, or by call): one image has all functions of its process,
    libraries' inside.
    """

    names: list[str]
    tids: list[int]
    time_ns: Array
    name: Array
    thread: Array
    block: Array
    kind: Array
    failed: Array
    duration_ns: Array | None
    source: Array
    n_omitted: int = 0
    libraries: list[str] = field(default_factory=list)
    library: Array | None = None
    is_alone: bool | Array = False
    processes: list[int] = field(default_factory=list)
    process: Array | None = None
    number: Array | None = None
    owners: list[int] = field(default_factory=list)
    described: Array | None = None
    injected: Array | None = None

    def __post_init__(self) -> None:
        self._orders: OrderedDict[tuple[object, ...], Array] = OrderedDict()

    def __len__(self) -> int:
        return len(self.time_ns)

    def choose(self, wanted: CallFilter, hits: Array | None = None, among: Array | None = None) -> Array:
        """Which calls (bool) are asked for. `hits` are calls whose arguments have the text, `among` all that have to do
        with the entity; both are indices. Raises UsageError for words that there are not."""
        chosen = np.ones(len(self), bool)
        # Times rise.
        if wanted.start_ns is not None:
            chosen[: np.searchsorted(self.time_ns, wanted.start_ns)] = False
        if wanted.end_ns is not None:
            chosen[np.searchsorted(self.time_ns, wanted.end_ns) :] = False
        if wanted.name is not None:
            chosen &= self._named(lambda name: name == wanted.name)
        if wanted.text:
            has_text = self._named(lambda name: wanted.text.lower() in name.lower())
            if hits is not None:
                has_text[hits] = True
            chosen &= has_text
        if wanted.threads is not None:
            tids = set(wanted.threads)
            is_wanted = np.array([*(tid in tids for tid in self.tids), False])
            chosen &= is_wanted[self.thread]
        if wanted.kind is not None:
            if wanted.kind not in CALL_WORDS:
                raise UsageError(f"kind: {wanted.kind[:40]!r} is none of {', '.join(CALL_WORDS)}")
            chosen &= self.kind == CALL_WORDS.index(wanted.kind)
        if wanted.filter is not None:
            if wanted.filter not in FILTERS:
                raise UsageError(f"filter: {wanted.filter[:40]!r} is none of {', '.join(FILTERS)}")
            chosen &= self.filter == FILTERS.index(wanted.filter)
        if wanted.failed:
            chosen &= self.failed
        if wanted.entity is not None:
            has_to_do = np.zeros(len(self), bool)
            if among is not None:
                has_to_do[among] = True
            chosen &= has_to_do
        return chosen

    @cached_property
    def filter(self) -> Array:
        """By call (u8, of FILTERS) what descriptions choose it by: those that it was recorded with, else clew's own."""
        if self.described is not None and bool((self.described < len(FILTERS)).all()):
            return self.described
        found = find_filters(
            self.names,
            self.libraries,
            kind=self.kind,
            name=self.name,
            library=self.library,
            is_alone=np.broadcast_to(np.asarray(self.is_alone), len(self)),
        )
        if self.described is None:
            return found
        known: Array = np.where(self.described < len(FILTERS), self.described, found)
        return known

    @cached_property
    def whose(self) -> Array:
        """By call an index of `processes`."""
        return np.zeros(len(self), np.uint8) if self.process is None else self.process

    def find(self, process_id: int, number: int) -> int | None:
        """The index of a call of a process that it has that number of."""
        if self.process is None or self.number is None:
            return number if 0 <= number < len(self) else None
        if process_id not in self.processes:
            return None
        found = np.flatnonzero((self.process == self.processes.index(process_id)) & (self.number == number))
        return int(found[0]) if len(found) else None

    def _named(self, is_wanted: Callable[[str], bool]) -> Array:
        found: Array = np.array([*(is_wanted(name) for name in self.names), False])[self.name]
        return found

    def order(
        self,
        wanted: CallFilter,
        sort: str,
        *,
        descending: bool,
        hits: Array | None = None,
        among: Array | None = None,
    ) -> Array:
        """Indices (u32) of the calls asked for, sorted; equal ones by time. The last few that were asked for are kept.
        Raises UsageError."""
        if sort not in SORTS:
            raise UsageError(f"sort: {sort[:40]!r} is none of {', '.join(SORTS)}")
        key = (wanted, sort, descending)
        if key not in self._orders:
            found = np.flatnonzero(self.choose(wanted, hits, among)).astype(np.uint32)
            if sort != "time":
                by = self._sort_key(sort)[found]
                found = found[np.argsort(-by if descending else by, kind="stable")]
            elif descending:
                found = found[::-1]
            self._orders[key] = found
            while len(self._orders) > _KEPT_ORDERS:
                self._orders.popitem(last=False)
        self._orders.move_to_end(key)
        return self._orders[key]

    def rank_names(self) -> Array:
        """By call the place of its name among all, in the order of the alphabet."""
        found: Array = self._name_rank[self.name]
        return found

    def _sort_key(self, sort: str) -> Array:
        if sort == "name":
            return self.rank_names()
        if sort == "duration":
            none = np.full(len(self), -1, np.int64)
            return none if self.duration_ns is None else self.duration_ns
        by = {"process": self.whose, "thread": self.thread, "block": self.block}[sort]
        found: Array = by.astype(np.int64)
        return found

    @cached_property
    def _name_rank(self) -> Array:
        """By name its place among all, in the order of the alphabet; -1 behind the last, for none."""
        rank = np.full(len(self.names) + 1, -1)
        rank[sorted(range(len(self.names)), key=lambda index: self.names[index])] = np.arange(len(self.names))
        return rank

    def series(self, chosen: Array, by: str, edges: Array, n_series: int) -> CallSeries:
        """How many of the calls `chosen` (bool) were made between each of `edges` (i64, rising) and the next, by what
        they are; at most `n_series`, the last of which may be all others. Raises UsageError."""
        if by not in GROUPS:
            raise UsageError(f"by: {by[:40]!r} is none of {', '.join(GROUPS)}")
        if not 1 <= n_series <= 64 or not 1 <= len(edges) - 1 <= MAX_BINS:
            raise UsageError(f"a chart has 1 to 64 series and 1 to {MAX_BINS} bins")
        n_bins = len(edges) - 1
        words, index = self._words_by(by)
        # Times rise, so that bins are ranges; what was at the last edge is in the last bin.
        borders = np.searchsorted(self.time_ns, edges)
        borders[-1] = np.searchsorted(self.time_ns, edges[-1], "right")
        inside = slice(int(borders[0]), int(borders[-1]))
        kept = np.flatnonzero(chosen[inside]) + inside.start
        totals = np.bincount(index[kept], minlength=len(words))[: len(words)]
        ranked = [one for one in np.argsort(-totals, kind="stable").tolist() if totals[one] > 0]
        shown = ranked if len(ranked) <= n_series else ranked[: n_series - 1]
        others = len(ranked) - len(shown)
        place = np.full(len(words) + 1, len(shown), np.int64)
        place[shown] = np.arange(len(shown))
        bins = np.searchsorted(borders, kept, "right") - 1
        n_rows = len(shown) + (others > 0)
        key = place[index[kept]] * n_bins + np.minimum(bins, n_bins - 1)
        counts = np.bincount(key, minlength=n_rows * n_bins)[: n_rows * n_bins].reshape(n_rows, n_bins)
        return CallSeries([words[one] for one in shown] + (["others"] if others else []), counts, others)

    def _words_by(self, by: str) -> tuple[Sequence[str], Array]:
        """What calls are told apart by, and by call an index of that; behind the last for none."""
        if by == "thread":
            # Programs that one process executed have threads of one number.
            tids, place = np.unique(np.array(self.tids, np.int64), return_inverse=True)
            index: Array = np.append(place, len(tids))[self.thread]
            return [str(tid) for tid in tids.tolist()], index
        if by == "process":
            return [str(process_id) for process_id in self.processes], self.whose
        words: dict[str, Sequence[str]] = {"name": self.names, "kind": CALL_WORDS, "filter": FILTERS}
        of_call: Array = getattr(self, by)
        return words[by], of_call

    def count_names(self, chosen: Array) -> list[tuple[str, int, int, int]]:
        """Names of the calls `chosen` (bool), those made most often first: kind, how many, how many of them failed."""
        kept = np.flatnonzero(chosen)
        n = len(self.names) + 1
        key, counts = _count(self.kind[kept].astype(np.int64) * n + self.name[kept])
        broken = kept[self.failed[kept]]
        bad, failures = _count(self.kind[broken].astype(np.int64) * n + self.name[broken])
        failed = dict(zip(bad.tolist(), failures.tolist(), strict=True))
        rows = [
            (self.names[one % n], one // n, count, failed.get(one, 0))
            for one, count in zip(key.tolist(), counts.tolist(), strict=True)
        ]
        return sorted(rows, key=lambda row: (-row[2], row[0]))

    def count_filters(self, chosen: Array) -> list[tuple[str, int]]:
        """What the calls `chosen` (bool) are chosen by, and how many each, in the order of FILTERS."""
        counts = np.bincount(self.filter[chosen], minlength=len(FILTERS)).tolist()
        return [(word, count) for word, count in zip(FILTERS, counts, strict=True) if count]

    def count_threads(self, chosen: Array) -> list[tuple[int, int]]:
        """Threads of the calls `chosen` (bool) and how many each made, in the order of `tids`."""
        counts = np.bincount(self.thread[chosen], minlength=len(self.tids)).tolist()
        return [(tid, count) for tid, count in zip(self.tids, counts, strict=False) if count]

    def count_processes(self, chosen: Array) -> list[tuple[int, int]]:
        """Processes of the calls `chosen` (bool) and how many each made, in the order of `processes`."""
        counts = np.bincount(self.whose[chosen], minlength=len(self.processes)).tolist()
        return [(process_id, count) for process_id, count in zip(self.processes, counts, strict=False) if count]

    def count_places(self, chosen: Array) -> list[tuple[int, int, int]]:
        """Blocks (-1: not known) that made the calls `chosen` (bool), an index of `names`, and how many; the most
        first; of as many those of the first block, by name."""
        n = len(self.names) + 1
        rank = self._name_rank.tolist()
        key, counts = _count((self.block[chosen].astype(np.int64) + 1) * n + self.name[chosen])
        rows = [(one // n - 1, one % n, count) for one, count in zip(key.tolist(), counts.tolist(), strict=True)]
        return sorted(rows, key=lambda row: (-row[2], row[0], rank[row[1]]))


def _count(keys: Array) -> tuple[Array, Array]:
    found: tuple[Array, Array] = np.unique(keys, return_counts=True)
    return found


def sort_calls(rows: CallRows) -> CallRows:
    """The same in the order of time, equal times as they were."""
    order = np.argsort(rows.time_ns, kind="stable")
    if bool((order[1:] > order[:-1]).all()):
        return rows
    names = (
        "time_ns",
        "name",
        "thread",
        "block",
        "kind",
        "failed",
        "source",
        "duration_ns",
        "library",
        "process",
        "described",
        "injected",
    )
    columns: dict[str, Any] = {name: getattr(rows, name) for name in names}
    columns = {name: None if column is None else column[order] for name, column in columns.items()}
    return replace(rows, **columns)


def join_parts(parts: Sequence[Array], kind: type[np.generic]) -> Array:
    """Arrays one after the other, of type `kind`."""
    return np.concatenate([np.zeros(0, kind), *parts]).astype(kind, copy=False)
