"""The table of probes in the shared memory: what the controller asks of the runtime's task, and what that has made.

Runs in the controller. What the target writes is not believed: sizes are bounded, states looked at.
"""

from __future__ import annotations

import ctypes
import struct
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from clew.errors import TargetError
from clew.process.futexes import wait_for_change
from clew.process.linux import futex_wake
from clew.process.shared_memory import SharedMemory
from clew.protocol._constants import MAX_PROBES, PROBE_SITE_BYTES, ProbeState
from clew.protocol.layout import field_offset, row_of

__all__ = ["MAX_HANDLER_BYTES", "AskedSite", "MadeHandler", "SiteTable"]

_ROW: Final = row_of("ProbeSite")
_ANSWER_SECONDS: Final = 20.0
_STATE_PLACE, _MISSED_PLACE = (field_offset("ProbeSite", name) for name in ("state", "missed"))
_ANSWER: Final = struct.Struct("<IQI")
"""`state`, `made` and `size`, which follow each other."""
MAX_HANDLER_BYTES: Final = 1 << 15


class AskedSite(NamedTuple):
    """A place whose handler is to be made: as events have it (`pc`), what is taken there (`place`), where the handler
    will be, and where it leads to."""

    number: int
    pc: int
    place: int
    code: int
    room: int
    resume: int


class MadeHandler(NamedTuple):
    """Where a handler's code lies in the runtime's memory, and its size; None: it was not made, since it would have
    that many bytes, or more than any may have (0)."""

    address: int | None
    size_bytes: int


class SiteTable:
    """Of one process."""

    def __init__(self, shared: SharedMemory) -> None:
        self._shared = shared
        self._map, self._offset = shared.map, shared.layout.probes_offset
        self._status = shared.layout.status_offset
        self._ticket = self._count = 0
        self._done = ctypes.c_uint32.from_buffer(self._map, self._status + field_offset("StatusPage", "probe_done"))

    def close(self) -> None:
        """Let go of the shared memory."""
        del self._done

    def ask(self, sites: Sequence[AskedSite], pid: int) -> list[MadeHandler]:
        """Have the handlers of these places made, with the captures that are in their table. Raises TargetError if the
        runtime does not answer."""
        for number, pc, place, code, room, resume in sites:
            assert number < MAX_PROBES
            row = pc, code, resume, room, ProbeState.ASKED, 0, 0, 0, 0, place
            _ROW.pack_into(self._map, self._offset + number * PROBE_SITE_BYTES, *row)
            self._count = max(self._count, number + 1)
        self._shared.set_status_ticket("probe_count", self._count)
        self._ring()
        self._wait(pid)
        return [self._read(site) for site in sites]

    def missed(self) -> int:
        """How often nothing was taken at places so far, since there was no room to take it in."""
        words = np.frombuffer(self._map, np.uint64, self._count * PROBE_SITE_BYTES // 8, self._offset)
        return int(words[_MISSED_PLACE // 8 :: PROBE_SITE_BYTES // 8].sum())

    def leave(self) -> None:
        """Have the runtime's task end: nothing leads to handlers any more."""
        self._shared.set_status_ticket("probes_leave", 1)
        self._ring()

    def _ring(self) -> None:
        self._ticket += 1
        offset = self._shared.set_status_ticket("probe_ticket", self._ticket)
        futex_wake(ctypes.addressof(ctypes.c_char.from_buffer(self._map, offset)))

    def _wait(self, pid: int) -> None:
        deadline = time.monotonic() + _ANSWER_SECONDS
        while (seen := self._done.value) != self._ticket:
            if time.monotonic() > deadline:
                raise TargetError(pid, f"process {pid}: what serves the probes does not answer")
            wait_for_change([(self._done, seen)], min(deadline, time.monotonic() + 0.5))

    def _read(self, site: AskedSite) -> MadeHandler:
        at = self._offset + site.number * PROBE_SITE_BYTES
        state, address, size_bytes = _ANSWER.unpack_from(self._map, at + _STATE_PLACE)
        if state == ProbeState.MADE and 0 < size_bytes <= site.room:
            return MadeHandler(address, size_bytes)
        return MadeHandler(None, size_bytes if site.room < size_bytes <= MAX_HANDLER_BYTES else 0)
