"""One process of a recording that goes on: what the journal told of it so far, and its blocks and counts by then.

Runs in the controller, in the live viewer's process. Blocks are worked out by what makes the trace later, from what is
there now; so they are what the trace would be if the process ended here, but for counters that rose while others were
read. Of records only those are kept that tell of code, and of threads that ended, but for the last, nothing else: what
a live view takes of memory grows with the code that ran, not with the time for which it runs.
"""

from __future__ import annotations

import json
import time
from collections import defaultdict
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.address import Tid
from clew.dataclass import dataclass, replace
from clew.protocol._generated import RECORD_BYTES, STATUS_PAGE, Mode
from clew.recording.assembly.arrays.rows import add_up
from clew.recording.assembly.blocks.blocks import Blocks
from clew.recording.assembly.code import ParsedCode, parse_code, work_out
from clew.recording.assembly.edges.edges import Edges
from clew.recording.journal.frames import Frame, FrameKind
from clew.recording.live.counters import LiveCounters
from clew.recording.raw.code_records import CodeRecords
from clew.recording.raw.ended_threads import EndedThreads
from clew.recording.raw.process import Counters, RawImage, RawThread, count_counters, find_last_counter
from clew.recording.reading.inherit import Announced
from clew.recording.reading.journal_reader import join_counters, read_counters

__all__ = ["LiveCode", "LiveProcess"]

Records = npt.NDArray[np.uint8]

MAX_ENDED_THREADS: Final = 128
"""So many threads that ended are kept one by one; of more, the oldest are added up."""
ANNOUNCED_SECONDS: Final = 2.0
"""So often it is looked what a parent announced before a fork, while it goes on."""


@dataclass(frozen=True)
class LiveCode:
    """What a process ran so far. `threads` go with `edges.threads`: of each its counters, and whether it runs."""

    code: ParsedCode
    blocks: Blocks
    edges: Edges
    threads: list[RawThread]


class LiveProcess:
    """Process `number` of the journal. Among `parents` the one is found, by its number, that it is a fork of."""

    def __init__(self, number: int, parents: dict[int, LiveProcess]) -> None:
        self.number = number
        self.start: dict[str, Any] | None = None
        self.end: dict[str, Any] | None = None
        self.status: np.void = np.zeros(1, STATUS_PAGE)[0]
        self.counters: LiveCounters | None = None
        """Of what runs; None where the recorder did not tell, or the process has ended."""
        self.trouble = ""
        """What of the journal could not be taken; empty where all could."""
        self.version = 0
        """Rises with what the journal tells."""
        self._parents = parents
        self._parent: LiveProcess | None = None
        self._records: dict[int, CodeRecords] = defaultdict(CodeRecords)
        self._parts: dict[int, list[tuple[Any, Any]]] = defaultdict(list)
        self._ended: list[RawThread] = []
        self.n_ended_threads = 0
        self._announced: tuple[int, float, Announced] | None = None
        self._parsed: tuple[int, int, int, ParsedCode] | None = None
        self._records_version = 0

    @property
    def mode(self) -> Mode:
        return Mode(self.start["mode"]) if self.start is not None else Mode.COUNTS

    @property
    def is_running(self) -> bool:
        return self.start is not None and self.end is None

    @property
    def initial_images(self) -> list[RawImage]:
        """What was mapped at its start; of a fork what was mapped at that of the first that forked."""
        parent = self._parent
        if parent is not None:
            return parent.initial_images
        return [RawImage(**image) for image in (self.start or {}).get("initial_images", [])]

    @property
    def parent(self) -> LiveProcess | None:
        """What it is a fork of."""
        return self._parent

    @property
    def lacks_parent(self) -> bool:
        """Whether it is a fork of what nobody knows any more."""
        return self._parent is None and int((self.start or {}).get("inherits", -1)) >= 0

    @property
    def fork_tsc(self) -> int:
        """When it was forked, a time stamp."""
        return int((self.start or {}).get("fork_tsc", 0))

    @property
    def records_version(self) -> int:
        """Rises with its own records of code."""
        return self._records_version

    @property
    def n_records(self) -> int:
        """How many records of code of its own it told."""
        return sum(len(part) for stream in self._records.values() for part in stream.parts)

    def take(self, frame: Frame) -> None:
        """Learn what a frame of the journal tells. Raises ValueError, KeyError for what can't be."""
        self.version += 1
        match frame.kind:
            case FrameKind.PROCESS:
                self.start = json.loads(bytes(frame.payload))
                # It stays for as long as this one does, whoever else forgets it.
                self._parent = self._parents.get(self.start.get("inherits", -1)) if self.start else None
            case FrameKind.RECORDS if len(frame.payload) % RECORD_BYTES == 0:
                records = np.frombuffer(frame.payload, np.uint8).reshape(-1, RECORD_BYTES)
                self._records_version += self._records[frame.stream].add(records)
            case FrameKind.COUNTERS | FrameKind.SPARSE_COUNTERS:
                index, value = read_counters(frame)
                self._parts[frame.stream].append((index.copy(), value.copy()))
            case FrameKind.THREAD:
                self._end_thread(frame, json.loads(bytes(frame.payload)))
            case FrameKind.ENDED:
                self._end_threads(EndedThreads.parse(frame))
            case FrameKind.STATUS:
                self.status = np.frombuffer(frame.payload, STATUS_PAGE)[0].copy()
            case FrameKind.PROCESS_END:
                self.end = json.loads(bytes(frame.payload))
                self.stop_reading()

    def read_counters(self) -> None:
        """Read what runs now; what was read before stays where that fails."""
        if self.counters is not None:
            try:
                self.counters.read(self.mode)
            except (OSError, ValueError):
                self.stop_reading()

    def stop_reading(self) -> None:
        """Nothing runs any more, or nothing can be read: the journal tells the rest."""
        if self.counters is not None:
            self.counters.close()
            self.counters = None

    @property
    def threads(self) -> list[RawThread]:
        """Those that ended, and then those that run; where several are one, `n_members` tells."""
        running = [] if self.counters is None else self.counters.threads
        return [
            *self._ended,
            *(
                RawThread(
                    one.slot, Tid(one.tid), Tid(one.parent_tid), "", one.start_tsc, 0, 0, 0, counters=one.counters
                )
                for one in running
            ),
        ]

    def work_out(self) -> LiveCode:
        """Its blocks and edges, and what each thread did, by now. Raises ValueError, KeyError for what can't be."""
        threads = self.threads
        code = self._parse(threads)
        _, cut, edges = work_out(code, lambda: threads, self.mode)
        return LiveCode(code, cut.blocks, edges, threads)

    def _end_thread(self, frame: Frame, row: dict[str, Any]) -> None:
        parts = self._parts.pop(frame.stream, [])
        # Most threads ran only what was known: nothing is kept of those.
        if frame.stream in self._records and not len(self._records[frame.stream].join()):
            del self._records[frame.stream]
        thread = RawThread(
            slot=frame.slot,
            tid=Tid(int(row["tid"])),
            parent_tid=Tid(int(row["parent_tid"])),
            name=str(row["name"]),
            start_tsc=int(row["start_tsc"]),
            end_tsc=int(row["end_tsc"]) or 1,
            end_kind=int(row["end_kind"]),
            lost_records=int(row["lost_records"]),
            counters=join_counters(parts),
            stream=frame.stream,
        )
        self._keep_ended(thread)

    def _end_threads(self, ended: EndedThreads) -> None:
        first = int(ended.rows["stream"][0]) if len(ended.rows) else 0
        if self._records[first].add(ended.records[~ended.is_path]):
            self._records_version += 1
        else:
            del self._records[first]
        for thread in ended.iter_threads():
            self._keep_ended(replace(thread, end_tsc=thread.end_tsc or 1))

    def _keep_ended(self, thread: RawThread) -> None:
        if self.counters is not None:
            self.counters.settle(thread.slot, thread.tid, thread.start_tsc)
        self._ended.append(thread)
        self.n_ended_threads += 1
        if len(self._ended) > MAX_ENDED_THREADS:
            first, second = self._ended[:2]
            self._ended[:2] = [_add_threads(first, second)]

    def read_code_records(self) -> Records:
        """The records of code that it told, and those that its parent had told when it was forked, shape (n, 64)."""
        own, parent = self.own_records(), self._parent
        if parent is None:
            return own
        return np.concatenate([parent._announce(is_over=True).find_before(self.fork_tsc), own])

    def own_records(self) -> Records:
        """The records of code that it told itself, shape (n, 64)."""
        return np.concatenate(
            [np.zeros((0, RECORD_BYTES), np.uint8), *(self._records[at].join() for at in sorted(self._records))]
        )

    def _announce(self, *, is_over: bool) -> Announced:
        """What its forks may find of it; not what it told since, if that was looked for just now and it goes on."""
        known, now = self._announced, time.monotonic()
        version = self._records_version
        if known is not None and (known[0] == version or (now - known[1] < ANNOUNCED_SECONDS and not is_over)):
            return known[2]
        own, parent = self.own_records(), self._parent
        if parent is not None:
            own = np.concatenate([parent._announce(is_over=is_over).find_before(self.fork_tsc), own])
        self._announced = version, now, Announced(own)
        return self._announced[2]

    def _parse(self, threads: list[RawThread]) -> ParsedCode:
        last, version, parent = find_last_counter(threads), self._records_version, self._parent
        inherited_version = 0
        if parent is not None:
            # What is inherited is what the process itself ran: another counter may mean another fragment.
            inherited_version = hash(tuple(one.counters.index.tobytes() for one in threads))
            inherited_version ^= parent._records_version
        known = self._parsed
        if known is not None and known[:3] == (version, last, inherited_version):
            return known[3]
        records = self.own_records()
        if parent is not None:
            announced = parent._announce(is_over=self.end is not None)
            counters = [one.counters for one in threads]
            inherited = announced.find_inherited(self.fork_tsc, self.mode, counters, records)
            records = np.concatenate([inherited, records])
        code = parse_code(records, count_counters(threads, records))
        self._parsed = version, last, inherited_version, code
        return self._parsed[3]


def _add_threads(first: RawThread, second: RawThread) -> RawThread:
    """Two threads that ended as one."""
    one, other = first.counters, second.counters
    index, value = add_up(
        np.concatenate([one.index, other.index]), np.concatenate([one.value, other.value]).astype(np.int64)
    )
    members = first.n_members + second.n_members
    return replace(first, tid=Tid(0), name="", counters=Counters(index, value.astype(np.uint64)), n_members=members)
