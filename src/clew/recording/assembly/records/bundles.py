"""Small processes taken together, so that they are assembled as one.

Runs in the controller, after the target ended. Assembling takes some hundred steps on arrays, each of which costs the
same for three thousand records as for thirty: a build of thousands of short programs would pay them for each program.

In a bundle each process has addresses of its own: the number of the process in the bundle stands above the bits that
addresses of user space have. So do numbers of fragments and counters go on from one process to the next. Nothing of
one process can then meet anything of another one, and what comes out is what each alone would have given.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass, replace
from clew.protocol._generated import (
    DYNAMIC_EDGE_RECORD,
    EVENT_RECORD,
    FRAGMENT_RECORD,
    IMAGE_RECORD,
    INVALIDATE_RECORD,
    LINK_RECORD,
    NO_INDEX,
    RECORD_BYTES,
    UNMAP_RECORD,
    Mode,
    RecordKind,
)
from clew.recording.assembly.records.records import count_misses, count_ways
from clew.recording.raw.process import Counters, RawProcess, RawThread, count_counters

__all__ = ["Bundle", "iter_bundles"]

Array = npt.NDArray[Any]

MAX_RECORDS = 1 << 16
"""Of a bundle. More at a time gain nothing, and take memory."""
MAX_MEMBERS = 256

_ADDRESS_BITS = 47
_ADDRESS_LIMIT = (1 << _ADDRESS_BITS) - (1 << 20)
"""Code of a bundled process ends below it: also what begins there and is as long as records can say."""
_MAX_FRAGMENT_ID = 1 << 20
_MAX_INVALIDATES = 256
"""Versions of code need room in numbers beside addresses."""

_ADDRESSES = {
    RecordKind.FRAGMENT: (FRAGMENT_RECORD, ("app_pc", "target_pc")),
    RecordKind.DYNAMIC_EDGE: (DYNAMIC_EDGE_RECORD, ("source_pc", "target_pc")),
    RecordKind.LINK: (LINK_RECORD, ("source_pc", "target_pc")),
    RecordKind.IMAGE: (IMAGE_RECORD, ("start",)),
    RecordKind.UNMAP: (UNMAP_RECORD, ("start",)),
    RecordKind.EVENT: (EVENT_RECORD, ("app_pc",)),
    RecordKind.INVALIDATE: (INVALIDATE_RECORD, ()),
}
_FRAGMENT_IDS = {
    RecordKind.FRAGMENT: ("fragment_id",),
    RecordKind.DYNAMIC_EDGE: ("source_fragment_id", "target_fragment_id"),
    RecordKind.LINK: ("source_fragment_id", "target_fragment_id"),
    RecordKind.INVALIDATE: ("fragment_id",),
}


_NONE = np.zeros((0, RECORD_BYTES), np.uint8)
_NO_COUNTERS = Counters(np.zeros(0, np.int64), np.zeros(0, np.uint64))


@dataclass
class Bundle:
    """Processes, and what they left as if they were one: `records`, `threads` and the number of their counters.

    Records are here alone, not in `processes`: who takes them has all there is.

    `thread_owner` says of each thread which of the processes it is of, i64.
    """

    processes: list[RawProcess]
    records: npt.NDArray[np.uint8]
    threads: list[RawThread]
    n_counters: int

    def take_records(self) -> npt.NDArray[np.uint8]:
        """The records, which are here no more: they take much memory, and once parsed they are of no use."""
        records, self.records = self.records, _NONE
        return records

    def take_threads(self) -> list[RawThread]:
        """The threads. The counters of a process that is alone are here no more, if nothing is asked of them later."""
        threads = self.threads
        if len(self.processes) == 1 and self.mode in (Mode.COUNTS, Mode.COVERAGE):
            self.threads = [replace(thread, counters=_NO_COUNTERS) for thread in threads]
            self.processes = [replace(self.processes[0], threads=self.threads)]
        return threads

    @property
    def mode(self) -> Mode:
        """What was recorded of all of them."""
        return self.processes[0].mode

    @property
    def thread_owner(self) -> Array:
        return np.repeat(np.arange(len(self.processes)), [len(process.threads) for process in self.processes])

    def owner_of(self, pc: Array) -> Array:
        """Which of the processes has each address, i64."""
        if len(self.processes) == 1:
            return np.zeros(len(pc), np.int64)
        owner: Array = (pc >> np.uint64(_ADDRESS_BITS)).astype(np.int64)
        return owner

    def own_pc(self, pc: Array) -> Array:
        """The addresses as the processes themselves have them."""
        return pc if len(self.processes) == 1 else pc & np.uint64((1 << _ADDRESS_BITS) - 1)

    def place(self, owner: int) -> int:
        """What has been added to the addresses of process `owner`."""
        return owner << _ADDRESS_BITS


def iter_bundles(processes: Iterable[RawProcess]) -> Iterator[Bundle]:
    """All of `processes` in their order, the small ones in bundles, each of the others alone."""
    waiting: list[RawProcess] = []
    n_records = 0
    for process in processes:
        is_small = _is_small(process)
        n_records += len(process.records)
        goes_with = waiting and waiting[0].mode == process.mode and len(waiting) < MAX_MEMBERS
        if waiting and not (is_small and goes_with and n_records <= MAX_RECORDS):
            yield _join(waiting)
            waiting, n_records = [], len(process.records)
        if is_small:
            waiting.append(process)
        else:
            alone = [_alone(process)]
            # Nothing but the bundle has its records from here on.
            del process
            yield alone.pop()
            n_records = 0
    if waiting:
        yield _join(waiting)


def _is_small(process: RawProcess) -> bool:
    """Whether a process may be in a bundle: the order of others is told by files of their own, and no number that the
    target made up may reach another process."""
    if process.mode not in (Mode.COUNTS, Mode.COVERAGE) or not 0 < len(process.records) <= MAX_RECORDS // 4:
        return False
    if process.event_chunks is not None:
        return False
    kinds = _kinds(process.records)
    for kind, (dtype, names) in _ADDRESSES.items():
        rows = _rows(process.records, np.flatnonzero(kinds == kind), dtype)
        if any(len(rows) and int(rows[name].max()) >= _ADDRESS_LIMIT for name in names):
            return False
        if kind in (RecordKind.IMAGE, RecordKind.UNMAP) and len(rows):
            sizes = rows["size_bytes"]
            if int(sizes.max()) >= _ADDRESS_LIMIT or int((rows["start"] + sizes).max()) >= _ADDRESS_LIMIT:
                return False
        if kind == RecordKind.FRAGMENT and len(rows) and int(rows["fragment_id"].max()) >= _MAX_FRAGMENT_ID:
            return False
    return int(np.count_nonzero(kinds == RecordKind.INVALIDATE)) <= _MAX_INVALIDATES


def _alone(process: RawProcess) -> Bundle:
    n_counters = count_counters(process.threads, process.records)
    return Bundle([_without_records(process)], process.records, process.threads, n_counters)


def _without_records(process: RawProcess) -> RawProcess:
    return replace(process, records=_NONE)


def _join(processes: list[RawProcess]) -> Bundle:
    if len(processes) == 1:
        return _alone(processes[0])
    records = np.concatenate([process.records for process in processes])
    threads: list[RawThread] = []
    n_records = n_fragments = n_counters = 0
    for owner, process in enumerate(processes):
        own = records[n_records : n_records + len(process.records)]
        own_counters = count_counters(process.threads, own)
        n_fragments += _renumber(own, owner << _ADDRESS_BITS, n_fragments, n_counters, own_counters)
        for thread in process.threads:
            counters = Counters(thread.counters.index.astype(np.int64) + n_counters, thread.counters.value)
            threads.append(replace(thread, counters=counters))
        n_records += len(own)
        n_counters += own_counters
    return Bundle([_without_records(process) for process in processes], records, threads, n_counters)


def _renumber(records: Array, place: int, first_fragment: int, first_counter: int, n_counters: int) -> int:
    """Move all numbers in the records of a process, which are changed; how many numbers of fragments it takes."""
    kinds = _kinds(records)
    n_fragments = 0
    for kind, (dtype, names) in _ADDRESSES.items():
        at = np.flatnonzero(kinds == kind)
        if not len(at):
            continue
        rows = _rows(records, at, dtype)
        for name in names:
            rows[name] += np.uint64(place)
        if kind == RecordKind.FRAGMENT:
            n_fragments = int(rows["fragment_id"].max()) + 1
        for name in _FRAGMENT_IDS.get(kind, ()):
            # What was never announced must stay so.
            rows[name] = np.where(rows[name] < n_fragments, rows[name] + np.uint32(first_fragment), NO_INDEX)
        if kind in (RecordKind.FRAGMENT, RecordKind.DYNAMIC_EDGE):
            last = rows["counter_index"].astype(np.int64)
            if kind == RecordKind.FRAGMENT:
                last += count_ways(rows["exit_kind"]) - 1 + count_misses(rows)
            rows["counter_index"] = np.where(last < n_counters, rows["counter_index"] + first_counter, NO_INDEX)
        records[at] = rows.view(np.uint8).reshape(-1, records.shape[1])
    return n_fragments


def _kinds(records: Array) -> Array:
    kinds: Array = records[:, :2].copy().view("<u2")[:, 0]
    return kinds


def _rows(records: Array, at: Array, dtype: np.dtype[np.void]) -> Array:
    """A copy of the records at `at`, as rows of a table."""
    return records[at].reshape(-1).view(dtype)
