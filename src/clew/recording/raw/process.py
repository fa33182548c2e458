"""What a recording session hands over when the target has ended, before anything is parsed.

Runs in the controller. Plain data between the session, which knows the target, and the assembler, which knows what
records mean. All of it but the session's own facts came from the target and is untrusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from clew.address import FileOffset, Pid, RemoteAddress, Tid
from clew.binary.architectures.known import KNOWN
from clew.dataclass import dataclass, field
from clew.protocol._generated import FRAGMENT_RECORD, LINK_RECORD, MAX_COUNTER_BYTES, Mode, RecordKind
from clew.recording.raw.event_chunks import EventChunks

if TYPE_CHECKING:
    from clew.recording.assembly.region.tag_chunks import TagChunks

__all__ = ["Counters", "RawImage", "RawProcess", "RawThread", "SessionInfo", "count_counters", "find_last_counter"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class RawImage:
    """One executable mapping of a process as /proc/PID/maps said when it started.

    `path` is the file's path, a name such as `[vdso]`, or empty for anonymous memory. `start` and `end` are addresses,
    `file_offset` belongs to `start`. `protection` holds PROT_* bits, `device` is a st_dev (0 without a file).
    """

    path: str
    start: RemoteAddress
    end: RemoteAddress
    file_offset: FileOffset
    protection: int
    device: int
    inode: int


@dataclass(frozen=True)
class Counters:
    """The counters of a thread that counted something: `index`, rising, and `value`, above 0; unsigned, or i64.

    A process that goes on for long has many counters, and most of its threads need few of them.
    """

    index: Array
    value: Array

    @classmethod
    def from_values(cls, values: Array) -> Counters:
        """From all counters, in their order."""
        index = np.flatnonzero(values)
        return cls(index, values[index].astype(np.uint64))

    def pack(self) -> Counters:
        """The same for keeping: in 32 bits each, if they fit. Many threads have millions of them together."""
        return Counters(_pack(self.index), _pack(self.value))

    @property
    def last(self) -> int:
        """The highest index; -1 if there is none."""
        return int(self.index[-1]) if len(self.index) else -1

    def at(self, index: Array) -> Array:
        """The counters at `index` (any order), u64; 0 where nothing was counted."""
        if not len(self.index):
            return np.zeros(len(index), np.uint64)
        place = np.minimum(np.searchsorted(self.index, index), len(self.index) - 1)
        values: Array = np.where(self.index[place] == index, self.value[place], np.uint64(0))
        return values


def _pack(numbers: Array) -> Array:
    return numbers.astype(np.uint32) if not len(numbers) or int(numbers.max()) < 1 << 32 else numbers


@dataclass(frozen=True)
class RawThread:
    """One thread that had a slot.

    `start_tsc` and `end_tsc` are time stamps; `end_tsc` is 0 when the thread did not say that it ended. `end_kind` is
    a number of `EndKind`, unchecked.
    """

    slot: int
    tid: Tid
    parent_tid: Tid
    name: str
    start_tsc: int
    end_tsc: int
    end_kind: int
    lost_records: int
    counters: Counters
    stream: int = 0
    """Its number in the journal."""
    n_members: int = 1
    """So many threads left these counters together: a live view adds up those that ended long ago."""
    path_tail: bytes = b""
    """Mode full: what of its path had not left the target (see `path_tail`)."""
    path_bytes: int | None = None
    """Mode full: how much of its path's file belongs together, of a thread that went on when the recording was cut off;
    None: all of it. What was written behind that may lack what happened on the way."""
    path_records: Array | None = None
    """Mode full: its records, if its path was told of nowhere else."""
    tag_chunks: TagChunks | None = None
    """Mode region: its tags, as far as they had left the target."""


def find_last_counter(threads: Sequence[RawThread]) -> int:
    """The highest number of a counter that counted; -1: none did."""
    return max((thread.counters.last for thread in threads), default=-1)


_COUNTERS_EACH = 4
"""No fragment has more."""


def count_counters(threads: Sequence[RawThread], records: npt.NDArray[np.uint8]) -> int:
    """How many counters there are to be looked at: all up to the last that counted, with the others of its fragment.

    And those of fragments with leaders, whose executions follow from others': they may never have counted themselves.
    """
    last = find_last_counter(threads)
    kind = records[:, :2].copy().view("<u2")[:, 0]
    is_link = kind == RecordKind.LINK
    if last < 0 or not is_link.any():
        return last + _COUNTERS_EACH
    # Column by column: the records are most of the memory.
    rows = np.ascontiguousarray(records).reshape(-1)
    followers = rows.view(LINK_RECORD)["target_fragment_id"][is_link]
    fragments, at = rows.view(FRAGMENT_RECORD), np.flatnonzero(kind == RecordKind.FRAGMENT)
    led = fragments["counter_index"][at[np.isin(fragments["fragment_id"][at], followers)]]
    led = led[led < MAX_COUNTER_BYTES // 8]
    return max(last, int(led.max()) if len(led) else -1) + _COUNTERS_EACH


@dataclass(frozen=True)
class RawProcess:
    """One process, ended.

    `start_ns` and `end_ns` are CLOCK_REALTIME in nanoseconds. `exit_code` or `signal` says how it ended; both are None
    if that is not known. `records` has shape (n, 64), in the order in which each thread wrote its own; a record and
    its continuations stay together; those of a fork begin with what it inherited; those that bring tags are not among
    them, but in `threads`. `status` is the last StatusPage, a scalar of dtype STATUS_PAGE; its start_tsc, start_ns,
    last_tsc, last_ns (CLOCK_MONOTONIC) turn time stamps into time: start_tsc is at `start_ns` of the process. `threads`
    may hold one slot several times: threads that used it one after another. `is_lost`: it could not be followed to its
    end. `went_on_unfollowed`: as another program.
    """

    pid: Pid
    parent_pid: Pid
    executable: str
    command: list[str]
    start_ns: int
    end_ns: int
    exit_code: int | None
    signal: int | None
    mode: Mode
    initial_images: list[RawImage]
    records: npt.NDArray[np.uint8]
    threads: list[RawThread]
    status: np.void
    architecture: str = KNOWN[0].name
    event_chunks: EventChunks | None = None
    """Signals and faults, where they are too many to be among the records."""
    number: int = 0
    """Its number in the journal."""
    is_lost: bool = False
    went_on_unfollowed: bool = False
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class SessionInfo:
    """One run of recording.

    `start_ns` and `end_ns` are CLOCK_REALTIME in nanoseconds. `machine` holds facts for the manifest, such as
    `architecture`, `kernel`, `cpu`. `target_cpu_seconds` is user and system time of the target's processes, None
    if it is not known, `controller_cpu_seconds` of clew until the trace is assembled. `warnings` are lines for people.
    With `follow` children are followed. `unfollowed_programs`: that many could not be, as far as is known;
    `unfollowed_children`: that many of which no event tells.
    """

    command: list[str]
    mode: Mode
    include: list[str]
    exclude: list[str]
    start_ns: int
    end_ns: int
    clew_version: str
    machine: dict[str, Any]
    target_cpu_seconds: float | None
    controller_cpu_seconds: float
    warnings: list[str] = field(default_factory=list)
    follow: bool = True
    unfollowed_programs: int = 0
    unfollowed_children: int = 0
