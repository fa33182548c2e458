"""The memory that the runtime and the controller share: regions of a file, headers, and what is told through them.

Runs in the controller. What is in the rings and counters is not known here. The target can write everywhere in it, so
that nothing read from it may be trusted; it can't change its size, which is sealed.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import fcntl
import mmap
import os
import struct
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from clew.dataclass import dataclass, replace
from clew.errors import ClewError, UsageError
from clew.process.aggregate_tables import AggregateTables
from clew.process.callout_data import CalloutData
from clew.process.code_orders import CodeOrders
from clew.process.linux import F_ADD_SEALS, MFD_ALLOW_SEALING, MFD_CLOEXEC, futex_wake, punch_hole
from clew.process.shared_layout import SharedLayout
from clew.protocol._constants import (
    FILTER_RANGE_BYTES,
    MAGIC,
    MAX_FILTER_RANGES,
    MAX_TRANSFORM_RANGES,
    PATH_UNLIMITED,
    SCHEMA_HASH,
    SESSION_HEADER_BYTES,
    VERSION,
    CaptureAction,
    Mode,
    OnFull,
)
from clew.protocol.layout import field_offset, pack_struct

if TYPE_CHECKING:
    from clew.process.capture_table import CaptureRow, CaptureTable

__all__ = [
    "MEMFD_NAME",
    "FilterRow",
    "HeaderSettings",
    "SharedFile",
    "SharedMemory",
    "TransformRow",
    "read_relayout_executions",
]

MEMFD_NAME: Final = "clew"
MAX_REGIONS: Final = 4096
"""Processes that a process and its forks' children can be at one time."""

RELAYOUT_EXECUTIONS: Final = 16384
MAX_RELAYOUT_EXECUTIONS: Final = 65535

_SEAL_SEAL, _SEAL_SHRINK, _SEAL_GROW = 1, 2, 4

TransformRow = tuple[int, int, int]
"""Start and end of a range of code whose blocks are asked about, and who wants that, by a number."""

FilterRow = tuple[int, int, bool]
"""Of a range of code: first address, first address past it, whether it is recorded."""


def read_relayout_executions() -> int:
    """How often a thread runs code before it is laid out anew, as CLEW_RELAYOUT says; 0: it never is.

    Tests set it so that short programs are laid out anew, too. Raises UsageError.
    """
    text = os.environ.get("CLEW_RELAYOUT", str(RELAYOUT_EXECUTIONS))
    if not text.isdecimal() or int(text) > MAX_RELAYOUT_EXECUTIONS:
        raise UsageError(f"CLEW_RELAYOUT={text}: not a number up to {MAX_RELAYOUT_EXECUTIONS}")
    return int(text)


@dataclass(frozen=True)
class HeaderSettings:
    """What the runtime is told in the header of a region."""

    mode: Mode
    relayout_executions: int = RELAYOUT_EXECUTIONS
    on_full: OnFull = OnFull.WAIT
    filters_active: bool = False
    default_included: bool = True
    follows: bool = False
    busy_limit: int = 0
    """Mode region: from this level on a thread is busy."""
    reaper_pid: int = 0
    """Who adopts orphans where the controller does not; 0: the controller does not, or that is not known."""
    budget: int = PATH_UNLIMITED
    """Mode full: bytes of paths a second that may be recorded."""
    tells_accesses: bool = False
    """Mode full: accesses to memory are told beside the order."""
    is_own_child: bool = False
    """The process is a child of the controller, not one that it adopted."""


class SharedFile:
    """A sealed memfd with room for the regions of a process and of its forks' children.

    All of it is sparse. A region is taken, used by one process as its `SharedMemory`, and given back, zeroed, when that
    process has ended.
    """

    def __init__(self, layout: SharedLayout, fd: int) -> None:
        """Size and seal the empty memfd `fd`, and own it. Raises ClewError."""
        self.layout = layout
        self.fd = fd
        self._taken: set[int] = set()
        self._lowest = 0
        self.n_regions = MAX_REGIONS
        try:
            while True:
                try:
                    os.ftruncate(fd, layout.total_bytes * self.n_regions)
                    break
                except OSError:
                    # The size of files is limited, and every process' first region matters more than children.
                    if self.n_regions == 1:
                        raise
                    self.n_regions //= 2
            fcntl.fcntl(fd, F_ADD_SEALS, _SEAL_SEAL | _SEAL_SHRINK | _SEAL_GROW)
        except OSError as error:
            os.close(fd)
            raise _no_memory(layout, error) from error

    @classmethod
    def create(cls, layout: SharedLayout) -> SharedFile:
        """A new memfd of this process. Raises ClewError."""
        return cls(layout, os.memfd_create(MEMFD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING))

    def take_region(self) -> int | None:
        """The lowest region that nobody uses; None if all are in use. The first one is taken first, and never again.

        A fork's child can't have that one: its number says that there is none (RequestKind.FORK).
        """
        lowest, self._lowest = self._lowest, 1
        for region in range(lowest, self.n_regions):
            if region not in self._taken:
                self._taken.add(region)
                return region
        return None

    def give_back(self, region: int) -> None:
        """Make a region zeros, free again. The file is closed with the last one."""
        self._taken.discard(region)
        if self.fd < 0:
            return
        if not self._taken:
            os.close(self.fd)
            self.fd = -1
        else:
            punch_hole(self.fd, region * self.layout.total_bytes, self.layout.total_bytes)


class SharedMemory:
    """One region of a shared file, its header written. Mapped here up to the counters, which are read from the file.

    `close` gives the region back; the target's mapping of it stays.
    """

    def __init__(self, file: SharedFile, settings: HeaderSettings, *, is_paused: bool = False) -> None:
        """Take a region. Raises ClewError if there is none, or no address space to map it."""
        self.file = file
        self.settings = settings
        self.layout = layout = file.layout
        region = file.take_region()
        if region is None:
            raise ClewError(f"all {file.n_regions} regions of the shared memory are in use")
        self.region = region
        self.offset = region * layout.total_bytes
        try:
            self.map = mmap.mmap(file.fd, layout.counters_offset, mmap.MAP_SHARED, offset=self.offset)
        except (OSError, ValueError) as error:
            file.give_back(region)
            raise _no_memory(layout, error) from error
        self.map[:SESSION_HEADER_BYTES] = pack_struct(
            "SessionHeader",
            magic=MAGIC,
            version=VERSION,
            header_bytes=SESSION_HEADER_BYTES,
            schema_hash=SCHEMA_HASH,
            total_bytes=layout.total_bytes,
            status_offset=layout.status_offset,
            slots_offset=layout.slots_offset,
            rings_offset=layout.rings_offset,
            counters_offset=layout.counters_offset,
            filters_offset=layout.filters_offset,
            captures_offset=layout.captures_offset,
            prefetch_offset=layout.prefetch_offset,
            probes_offset=layout.probes_offset,
            traps_offset=layout.traps_offset,
            patches_offset=layout.patches_offset,
            unwind_offset=layout.unwind_offset,
            aggregates_offset=layout.aggregates_offset,
            calls_offset=layout.calls_offset,
            counter_bytes=layout.counter_bytes,
            ring_bytes=layout.ring_bytes,
            max_threads=layout.max_threads,
            mode=settings.mode,
            on_full=settings.on_full,
            controller_pid=os.getpid(),
            controller_tid=threading.get_native_id(),
            filters_active=settings.filters_active,
            default_included=settings.default_included,
            relayout_executions=settings.relayout_executions,
            busy_limit=settings.busy_limit,
            follows=settings.follows,
            region=region,
            reaper_pid=0 if settings.is_own_child else settings.reaper_pid,
        )
        self._filters: list[FilterRow] = []
        self._breakpoints: list[int] = []
        self._capture_table: CaptureTable | None = None
        self._transforms: list[TransformRow] = []
        self.orders = CodeOrders(self.map, layout)
        self.callout_data = CalloutData(self.map, layout.callout_data_offset)
        self.aggregates = AggregateTables(file.fd, self.offset + layout.aggregates_offset)
        self._transform_ticket = 0
        self._n_directives = 0
        self._is_written = False
        self._follows_new = True
        self._tell_order(settings.mode == Mode.FULL, tells_accesses=settings.tells_accesses)
        self.set_status_ticket("pause_ticket", int(is_paused))
        self.set_budget(settings.budget)

    @property
    def fd(self) -> int:
        """The file. The region starts at `offset` in it."""
        return self.file.fd

    def fork(self) -> SharedMemory:
        """A region of the same file for a child of the process: with its settings and filters. Raises ClewError."""
        child = SharedMemory(self.file, replace(self.settings, is_own_child=False))
        child.append_filters(self._filters)
        # The child has its parent's code, as far as that carried out these directives.
        child._n_directives = self._n_directives - 1
        child._tell_order(self._records_order, tells_accesses=self.tells_accesses)
        child._tell_written(self._is_written)
        child.follow_new(self._follows_new)
        child.orders.inherit(self.orders)
        if self._capture_table is not None:
            child._capture_table = self._capture_table.copy()
            child._write_captures()
        child._tell_transforms(self._transforms, self._transform_ticket)
        child.callout_data.inherit(self.callout_data)
        child.aggregates.inherit(self.aggregates)
        child.set_breakpoints(self._breakpoints)
        return child

    def close(self, *, is_unused: bool = True) -> None:
        """Give the mapping here up; and the region back, to be zeroed and used again, if nobody uses it any more."""
        with contextlib.suppress(ValueError):
            self.callout_data.keep()
        self.aggregates.end()
        # A view of it may still be alive somewhere; the mapping goes with it then.
        with contextlib.suppress(BufferError):
            self.map.close()
        if is_unused:
            self.file.give_back(self.region)

    def set_status_ticket(self, name: str, value: int) -> int:
        """Set u32 field `name` of the status page; its offset in the shared memory."""
        offset = self.layout.status_offset + field_offset("StatusPage", name)
        self.map[offset : offset + 4] = value.to_bytes(4, "little")
        return offset

    def set_controller(self) -> None:
        """This process is the controller from now on, and this thread of it."""
        for name, value in (("controller_pid", os.getpid()), ("controller_tid", threading.get_native_id())):
            offset = field_offset("SessionHeader", name)
            self.map[offset : offset + 4] = value.to_bytes(4, "little")

    def set_budget(self, budget: int) -> None:
        """Mode full: say how many bytes of paths a second may be recorded from now on."""
        offset = self.layout.status_offset + field_offset("StatusPage", "budget")
        self.map[offset : offset + 8] = budget.to_bytes(8, "little")

    def set_records_order(self, records_order: bool, *, tells_accesses: bool = False) -> None:
        """Modes counts and full: say whether the order is recorded from now on, and what is done with memory beside it.
        All threads must be stopped."""
        self._tell_order(records_order, tells_accesses=tells_accesses)
        self.give_directive()

    def _tell_order(self, records_order: bool, *, tells_accesses: bool = False) -> None:
        self._records_order = records_order
        self.tells_accesses = records_order and tells_accesses
        self.set_status_ticket("records_order", int(records_order) | int(self.tells_accesses) << 1)

    def distrust(self) -> None:
        """Say that another process may write to the code whatever is protected; threads see to it as they come."""
        self._tell_written(True)
        self.give_directive()

    def _tell_written(self, is_written: bool) -> None:
        self._is_written = is_written
        self.set_status_ticket("is_written", int(is_written))

    def follow_new(self, is_followed: bool) -> None:
        """Say whether threads that begin are followed."""
        self._follows_new = is_followed
        self.set_status_ticket("unfollows_new", int(not is_followed))

    def end_pause(self) -> None:
        """Let a process that waits before its first instruction go on."""
        offset = self.set_status_ticket("pause_ticket", 0)
        futex_wake(ctypes.addressof(ctypes.c_char.from_buffer(self.map, offset)))

    def status_u32(self, name: str) -> int:
        """Field `name` of the status page, as the target left it."""
        offset = self.layout.status_offset + field_offset("StatusPage", name)
        return int.from_bytes(self.map[offset : offset + 4], "little")

    def set_breakpoints(self, addresses: Sequence[int]) -> None:
        """Replace the breakpoints, at most MAX_BREAKPOINTS of them, by these; threads see to it when they stop next."""
        offset = self.layout.status_offset + field_offset("StatusPage", "breakpoints")
        self.map[offset : offset + 8 * len(addresses)] = struct.pack(f"<{len(addresses)}Q", *addresses)
        self.set_status_ticket("breakpoint_count", len(addresses))
        self._breakpoints = list(addresses)
        self.give_directive()

    @property
    def has_captures(self) -> bool:
        """Whether anything was ever captured."""
        return self._capture_table is not None and self._capture_table.was_used

    @property
    def _captures(self) -> CaptureTable:
        if self._capture_table is None:
            # Late: only sessions capture anything.
            from clew.process.capture_table import CaptureTable

            self._capture_table = CaptureTable()
        return self._capture_table

    def find_left_captures(self) -> list[CaptureRow]:
        """What is recorded of calls that are over without having returned: forms by the kinds of calls."""
        rows = [] if self._capture_table is None else self._capture_table.rows
        return [row for row in rows if row.tells_left and row.action == CaptureAction.RECORD]

    def set_captures(self, captures: Sequence[CaptureRow]) -> None:
        """Replace what is captured by this; all threads are stopped, and see to it. Raises UsageError: too much."""
        self._captures.replace(captures)
        self._write_captures()
        self.give_directive()

    def append_capture(self, one: CaptureRow, *, is_last: bool = True) -> None:
        """Capture something more; threads that run see to it when they come next, or, if more is to come, when they are
        told (`tell_captures`). Raises UsageError: no room."""
        self._captures.append(one)
        if is_last:
            self.tell_captures()

    def append_captures(self, table: CaptureTable, *, is_last: bool = True) -> None:
        """The same for all that a table has."""
        if self._captures.rows:
            for row in table.rows:
                self._captures.append(row)
        else:
            self._capture_table = table.copy()
        if is_last:
            self.tell_captures()

    def tell_captures(self) -> None:
        """Have threads see to what was appended, if anything was."""
        if self._capture_table is None or self._capture_table.is_written:
            return
        self._write_captures()
        self.give_directive()

    @property
    def transforms(self) -> list[TransformRow]:
        """The ranges of code whose blocks are asked about."""
        return list(self._transforms)

    def set_transforms(self, rows: Sequence[TransformRow]) -> None:
        """Have the blocks in some ranges asked about before they are translated, all of them once more; threads see
        to it as they come. Raises UsageError: too many."""
        if len(rows) > MAX_TRANSFORM_RANGES:
            raise UsageError(f"there are {len(rows)} ranges of code to transform: {MAX_TRANSFORM_RANGES} are possible")
        self._tell_transforms(rows, self._transform_ticket + 1)
        self.give_directive()

    def _tell_transforms(self, rows: Sequence[TransformRow], ticket: int) -> None:
        self._transforms, self._transform_ticket = list(rows), ticket
        offset = self.layout.status_offset + field_offset("StatusPage", "transform_ranges")
        words = [word for start, end, _ in rows for word in (start, end)]
        self.map[offset : offset + 8 * len(words)] = struct.pack(f"<{len(words)}Q", *words)
        self.set_status_ticket("transform_count", len(rows))
        self.set_status_ticket("transform_ticket", ticket)

    def _write_captures(self) -> None:
        # Late: only sessions capture anything.
        from clew.binary.path_codec import read_time_stamp

        self._captures.write(self.map, self.layout.captures_offset)
        offset = self.layout.status_offset + field_offset("StatusPage", "captures_tsc")
        self.map[offset : offset + 8] = read_time_stamp().to_bytes(8, "little")
        self.set_status_ticket("capture_count", len(self._captures.rows))

    def tell_changed(self, pages: Sequence[int]) -> None:
        """Say which pages of code changed behind the process' back; threads see to it when they come next."""
        self.orders.tell_changed(pages)
        self.give_directive()

    def release_task(self, number: int) -> None:
        """Say which task that shares the process' memory is to go on natively; 0: none."""
        self.set_status_ticket("released_task", number)
        self.give_directive()

    def give_directive(self) -> None:
        """Have threads look at what was changed, before they execute anything more."""
        self._n_directives = self._n_directives + 1 & 0xFFFFFFFF
        self.set_status_ticket("directive_count", self._n_directives)

    def ask_about_images(self) -> None:
        """From now on the target asks about what it maps (RequestKind.IMAGE_FILTERS)."""
        offset = field_offset("SessionHeader", "filters_active")
        self.map[offset : offset + 4] = (1).to_bytes(4, "little")

    def append_filters(self, rows: Sequence[FilterRow]) -> int:
        """Append filter ranges, then make them valid; how many of them found room."""
        fitting = rows[: MAX_FILTER_RANGES - len(self._filters)]
        at = self.layout.filters_offset + len(self._filters) * FILTER_RANGE_BYTES
        for start, end, included in fitting:
            self.map[at : at + FILTER_RANGE_BYTES] = pack_struct(
                "FilterRange", start=start, end=end, included=int(included)
            )
            at += FILTER_RANGE_BYTES
        self._filters += fitting
        offset = field_offset("SessionHeader", "filter_count")
        self.map[offset : offset + 4] = len(self._filters).to_bytes(4, "little")
        return len(fitting)


def _no_memory(layout: SharedLayout, error: Exception) -> ClewError:
    is_full = isinstance(error, OSError) and error.errno == errno.EMFILE
    limits = "`ulimit -n`" if is_full else "`ulimit -f` and `ulimit -v`"
    return ClewError(
        f"can't set up {layout.total_bytes >> 20} MiB of shared memory ({error}); look at {limits}, or at `clew doctor`"
    )
