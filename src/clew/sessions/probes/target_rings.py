"""What threads of a probed process, and of its forks' children, wrote into their rings.

Runs in the controller, in one thread. What the target wrote is not believed: heads are bounded, records looked at
later.
"""

from __future__ import annotations

import os
from typing import Final

import numpy as np

from clew.probing.probed_process import ProbedProcess
from clew.protocol._constants import RECORD_BYTES, SlotState
from clew.recording.drain.slots import ImpossibleHeadError, Slots
from clew.sessions.capture_sink import CaptureSink

__all__ = ["TargetRings"]

_NEARLY_ALL: Final = 0.75
"""Of the slots: few are left then."""


class TargetRings:
    """Of one process. `has_own_numbers`: what it calls its threads says nothing here."""

    def __init__(self, process: ProbedProcess, *, has_own_numbers: bool) -> None:
        self._process, self._has_own_numbers = process, has_own_numbers
        self.slots = Slots(process.shared)
        self.processes: set[int] = set()
        """Those whose events came from here: the process, and children of forks."""
        self._n_lost = self._n_overwritten = 0

    def close(self) -> None:
        """Let go of the shared memory."""
        self.slots.close()

    def drain_newest(self, sink: CaptureSink, most_bytes: int) -> None:
        """Hand over the newest records in the rings, of each so many bytes: no thread waits for that."""
        for slot in self.slots.find_used():
            self._keep(slot, self.slots.take_newest(slot, most_bytes), sink)

    def _keep(self, slot: int, data: bytes, sink: CaptureSink) -> int:
        """Hand over the records of a slot's thread; how many."""
        if not data:
            return 0
        records = np.frombuffer(data, np.uint8).reshape(-1, RECORD_BYTES)
        pid = int(self.slots.rows["process"][slot]) or int(self._process.pid)
        self.processes.add(pid)
        sink.keep(pid, records)
        return len(records)

    def drain_overwritten(self, sink: CaptureSink) -> None:
        """Hand over what threads wrote that write over their oldest records; what they have written over is lost."""
        half = self._process.shared.layout.ring_bytes // 2
        for slot in self.slots.find_used():
            n_bytes = self.slots.count_new(slot)
            data = self.slots.take_newest(slot, half)
            self._n_overwritten += max(n_bytes - len(data), 0) // RECORD_BYTES
            self._keep(slot, data, sink)

    def drain(self, sink: CaptureSink) -> int:
        """Hand over what is in the rings; how many records."""
        n = 0
        for slot in self.slots.find_used():
            try:
                head, first, second = self.slots.read_ring(slot)
            except ImpossibleHeadError:
                continue
            data = bytes(first) + bytes(second)
            first.release()
            second.release()
            self.slots.free_room(slot, head)
            n += self._keep(slot, data, sink)
        return n

    def first_name(self, tid: int) -> bytes:
        """What a thread was called when it came to a probe first; empty where it did not, or that is not known."""
        slots = np.flatnonzero(self.slots.rows["tid"] == tid)
        return bytes(self.slots.rows["name"][slots[0]].tobytes()).split(b"\0")[0] if len(slots) else b""

    def free_slots(self) -> None:
        """Have the slots of threads that are gone, and of whose records all were taken, be others'."""
        self._free_slots(lets_go=False)

    def make_room(self) -> None:
        """Have the slots of threads that are gone be others', whatever is in their rings, if few are left."""
        layout = self._process.shared.layout
        if len(self.slots.find_threads()) > layout.max_threads * _NEARLY_ALL:
            self._free_slots(lets_go=True)

    def _free_slots(self, *, lets_go: bool) -> None:
        if self._has_own_numbers:
            return
        for slot, tid, _ in self.slots.find_threads():
            row = self.slots.rows[slot]
            is_read = int(row["ring_head"]) == int(self.slots.tails[slot])
            if (is_read or lets_go) and tid and not os.path.exists(f"/proc/{int(row['process'])}/task/{tid}"):
                self.slots.skip(slot)
                self.slots.states[slot] = SlotState.FREE

    def take_lost(self) -> int:
        """How many events were lost since this was asked last."""
        lost = self.count_lost()
        before, self._n_lost = self._n_lost, lost
        return lost - before

    def count_lost(self) -> int:
        """How many events were ever lost."""
        lost = int(self.slots.status()["lost_records"]) + self._n_overwritten
        return lost + self._process.sites.missed()
