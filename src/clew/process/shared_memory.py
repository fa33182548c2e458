"""The memory that the runtime and the controller share: its sizes, its layout, its creation.

Runs in the controller. What is in the rings and counters is not known here. The target can write everywhere in it, so
that nothing read from it may be trusted; it can't change its size, which is sealed.
"""

from __future__ import annotations

import contextlib
import fcntl
import mmap
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from clew.errors import ClewError, UsageError
from clew.process.linux import F_ADD_SEALS
from clew.protocol._constants import (
    FILTER_RANGE_BYTES,
    MAGIC,
    MAX_FILTER_RANGES,
    SCHEMA_HASH,
    SESSION_HEADER_BYTES,
    STATUS_PAGE_BYTES,
    THREAD_SLOT_BYTES,
    VERSION,
    Mode,
)
from clew.protocol.layout import field_offset, pack_struct

__all__ = ["MEMFD_FLAGS", "MEMFD_NAME", "FilterRow", "SharedLayout", "SharedMemory"]

_PAGE_BYTES: Final = 4096
_SEAL_SEAL, _SEAL_SHRINK, _SEAL_GROW = 1, 2, 4

MEMFD_NAME: Final = "clew"
MEMFD_FLAGS: Final = 0x1 | 0x2  # MFD_CLOEXEC, MFD_ALLOW_SEALING

FilterRow = tuple[int, int, bool]
"""Of a range of code: first address, first address past it, whether it is recorded."""


@dataclass(frozen=True)
class SharedLayout:
    """Sizes of the shared memory. All of it is sparse: what is not touched costs nothing."""

    max_threads: int = 1024
    ring_bytes: int = 1 << 20
    counter_bytes: int = 32 << 20

    @property
    def status_offset(self) -> int:
        return _PAGE_BYTES

    @property
    def slots_offset(self) -> int:
        return self.status_offset + STATUS_PAGE_BYTES

    @property
    def filters_offset(self) -> int:
        return _page_up(self.slots_offset + self.max_threads * THREAD_SLOT_BYTES)

    @property
    def rings_offset(self) -> int:
        return _page_up(self.filters_offset + MAX_FILTER_RANGES * FILTER_RANGE_BYTES)

    @property
    def counters_offset(self) -> int:
        return self.rings_offset + self.max_threads * self.ring_bytes

    @property
    def total_bytes(self) -> int:
        return self.counters_offset + self.max_threads * self.counter_bytes


@dataclass(frozen=True)
class Relayout:
    """When the runtime lays a thread's hot code out anew: after `calls` calls, what was executed `executions` times."""

    calls: int = 1 << 22
    executions: int = 1 << 15

    @classmethod
    def from_environment(cls) -> Relayout:
        """As CLEW_RELAYOUT says, `CALLS,EXECUTIONS`; tests set it so that short programs are laid out anew, too.

        Raises UsageError.
        """
        text = os.environ.get("CLEW_RELAYOUT")
        if text is None:
            return cls()
        words = text.split(",")
        if len(words) != 2 or not all(word.isdecimal() and 0 < int(word) < 1 << 31 for word in words):
            raise UsageError(f"CLEW_RELAYOUT={text}: not two numbers above 0, as in CLEW_RELAYOUT=1000,100")
        return cls(int(words[0]), int(words[1]))


class SharedMemory:
    """A sealed memfd, laid out, its header written. Mapped here up to the counters, which are read by `read_counters`.

    A context manager: leaving it closes the file; the target's mapping of it stays.
    """

    def __init__(
        self,
        layout: SharedLayout,
        *,
        mode: Mode,
        relayout: Relayout = Relayout(),
        drop_on_full: bool = False,
        filters_active: bool = False,
        default_included: bool = True,
        is_paused: bool = False,
        fd: int | None = None,
    ) -> None:
        """`fd`: an empty memfd that may be sealed, to be used instead of a new one; it is closed like that one."""
        self.layout = layout
        self.fd = os.memfd_create(MEMFD_NAME, MEMFD_FLAGS) if fd is None else fd
        try:
            try:
                os.ftruncate(self.fd, layout.total_bytes)
                fcntl.fcntl(self.fd, F_ADD_SEALS, _SEAL_SEAL | _SEAL_SHRINK | _SEAL_GROW)
                self.map = mmap.mmap(self.fd, layout.counters_offset, mmap.MAP_SHARED)
            except (OSError, ValueError) as error:
                raise ClewError(
                    f"can't set up {layout.total_bytes >> 20} MiB of shared memory ({error}); "
                    "look at `ulimit -f` and `ulimit -v`, or at `clew doctor`"
                ) from error
        except BaseException:
            os.close(self.fd)
            raise
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
            counter_bytes=layout.counter_bytes,
            ring_bytes=layout.ring_bytes,
            max_threads=layout.max_threads,
            mode=mode,
            drop_on_full=drop_on_full,
            controller_pid=os.getpid(),
            filters_active=filters_active,
            default_included=default_included,
            relayout_calls=relayout.calls,
            relayout_executions=relayout.executions,
        )
        self._filter_count = 0
        self.set_status_ticket("pause_ticket", int(is_paused))

    def close(self) -> None:
        """Close the file and the mapping here."""
        # A view of it may still be alive somewhere; the mapping goes with it then.
        with contextlib.suppress(BufferError):
            self.map.close()
        os.close(self.fd)

    def set_status_ticket(self, name: str, value: int) -> int:
        """Set u32 field `name` of the status page; its offset in the shared memory."""
        offset = self.layout.status_offset + field_offset("StatusPage", name)
        self.map[offset : offset + 4] = value.to_bytes(4, "little")
        return offset

    def status_u32(self, name: str) -> int:
        """Field `name` of the status page, as the target left it."""
        offset = self.layout.status_offset + field_offset("StatusPage", name)
        return int.from_bytes(self.map[offset : offset + 4], "little")

    def append_filters(self, rows: Sequence[FilterRow]) -> int:
        """Append filter ranges, then make them valid; how many of them found room."""
        fitting = rows[: MAX_FILTER_RANGES - self._filter_count]
        at = self.layout.filters_offset + self._filter_count * FILTER_RANGE_BYTES
        for start, end, included in fitting:
            self.map[at : at + FILTER_RANGE_BYTES] = pack_struct(
                "FilterRange", start=start, end=end, included=int(included)
            )
            at += FILTER_RANGE_BYTES
        self._filter_count += len(fitting)
        offset = field_offset("SessionHeader", "filter_count")
        self.map[offset : offset + 4] = self._filter_count.to_bytes(4, "little")
        return len(fitting)


def _page_up(value: int) -> int:
    return -(-value // _PAGE_BYTES) * _PAGE_BYTES
