"""The counters of threads that run, out of the shared memory, beside the target and the recorder.

Runs in the controller, in the live viewer's process, which only reads. The target may write anything there at any time:
what is read is bounded, and says at most something wrong of that process. The recorder empties a slot and gives it to
another thread once its thread has ended: a reading belongs to the thread that the slot told of before and after it, and
of two readings of one thread each counter has the higher one. When the journal tells of a thread's end its counters
come from there, and what was read here is forgotten: so nothing counts twice, and at the end all is exact.
"""

from __future__ import annotations

import os
from typing import Final

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass, field
from clew.process.shared_layout import SharedLayout
from clew.protocol._generated import (
    PATH_WINDOW_BYTES,
    STATUS_PAGE,
    STATUS_PAGE_BYTES,
    THREAD_SLOT,
    THREAD_SLOT_BYTES,
    Mode,
    SlotState,
)
from clew.recording.drain.counter_extents import iter_data_extents
from clew.recording.raw.process import Counters

__all__ = ["LiveCounters", "RunningThread"]

MAX_READ_BYTES: Final = 64 << 20
"""So much is read at a time, of all threads; the others keep what was read of them last."""


@dataclass
class RunningThread:
    """A thread that has a slot, or had it and whose end the journal did not tell of yet."""

    slot: int
    tid: int
    parent_tid: int
    start_tsc: int
    counters: Counters = field(default_factory=lambda: Counters.from_values(np.zeros(0, np.uint64)))

    @property
    def identity(self) -> tuple[int, int]:
        """What tells threads apart that have one slot, one after another."""
        return self.tid, self.start_tsc


class LiveCounters:
    """Reads the region at `offset` of the shared memory `fd`, which it owns."""

    def __init__(self, fd: int, offset: int, layout: SharedLayout) -> None:
        self._fd, self._offset, self._layout = fd, offset, layout
        self._threads: dict[int, list[RunningThread]] = {}
        self._next_slot = 0
        self.status: np.void = np.zeros(1, STATUS_PAGE)[0]
        """The status page as it was read last."""

    @property
    def threads(self) -> list[RunningThread]:
        """Those that are known, by slot; of one slot the older first."""
        return [thread for slot in sorted(self._threads) for thread in self._threads[slot]]

    def read(self, mode: Mode, max_bytes: int = MAX_READ_BYTES) -> None:
        """Read the counters of all that run, of some the next time if there are more than `max_bytes`.

        Raises OSError.
        """
        self.status = status = self._read_status()
        n_slots = min(int(status["slots_used"]), self._layout.max_threads)
        rows = self._read_slots(0, n_slots)
        slots = np.flatnonzero((rows["state"] == SlotState.RUNNING) & (rows["tid"] != 0))
        used_bytes = min(8 * int(status["counters_used"]), self._layout.counter_bytes)
        left_bytes = max_bytes
        # The next time it begins with those for which there was no time now.
        start = int(np.searchsorted(slots, self._next_slot))
        self._next_slot = 0
        for slot in [*slots[start:].tolist(), *slots[:start].tolist()]:
            if left_bytes <= 0:
                self._next_slot = slot
                return
            left_bytes -= self._read_slot(slot, rows[slot], used_bytes, left_bytes, mode)

    def settle(self, slot: int, tid: int, start_tsc: int) -> None:
        """The journal has all of this thread."""
        known = self._threads.get(slot, [])
        for at, thread in enumerate(known):
            if thread.identity == (tid, start_tsc):
                del known[at]
                return
        if known:
            # It told something else of itself before: whoever it was, the oldest of the slot has ended.
            del known[0]

    def close(self) -> None:
        """Let go of the shared memory, which is freed with the last that has it."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
        self._threads.clear()

    def _read_status(self) -> np.void:
        page = os.pread(self._fd, STATUS_PAGE_BYTES, self._offset + self._layout.status_offset)
        status: np.void = np.frombuffer(page, STATUS_PAGE)[0]
        return status

    def _read_slots(self, first: int, n: int) -> npt.NDArray[np.void]:
        at = self._offset + self._layout.slots_offset + first * THREAD_SLOT_BYTES
        rows: npt.NDArray[np.void] = np.frombuffer(os.pread(self._fd, n * THREAD_SLOT_BYTES, at), THREAD_SLOT)
        return rows

    def _read_slot(self, slot: int, row: np.void, used_bytes: int, left_bytes: int, mode: Mode) -> int:
        """Read the counters of one thread; how many bytes that were."""
        start = self._offset + self._layout.counters_offset + slot * self._layout.counter_bytes
        first = start + (PATH_WINDOW_BYTES if mode in (Mode.COUNTS, Mode.FULL) else 0)
        index, value = [np.zeros(0, np.int64)], [np.zeros(0, np.uint64)]
        read_bytes = 0
        for begin, end in iter_data_extents(self._fd, first, start + used_bytes):
            data = os.pread(self._fd, min(end - begin, left_bytes - read_bytes), begin)
            read_bytes += len(data)
            values = np.frombuffer(data[: len(data) // 8 * 8], np.uint64)
            used = np.flatnonzero(values)
            index.append((begin - start) // 8 + used)
            value.append(values[used])
            if read_bytes >= left_bytes:
                break
        after = self._read_slots(slot, 1)[0]
        if (int(after["tid"]), int(after["start_tsc"])) == (int(row["tid"]), int(row["start_tsc"])):
            self._keep(slot, row, Counters(np.concatenate(index), np.concatenate(value)))
        return max(read_bytes, 1)

    def _keep(self, slot: int, row: np.void, counters: Counters) -> None:
        known = self._threads.setdefault(slot, [])
        identity = int(row["tid"]), int(row["start_tsc"])
        thread = next((one for one in known if one.identity == identity), None)
        if thread is None:
            thread = RunningThread(slot, identity[0], int(row["parent_tid"]), identity[1])
            known.append(thread)
            # What ends is told of soon; a target that makes threads up here has only the last ones.
            del known[:-4]
        thread.counters = _higher(thread.counters, counters)


def _higher(before: Counters, now: Counters) -> Counters:
    """Of each counter the higher one of two readings."""
    there = now.at(before.index)
    if bool((there >= before.value).all()):
        return now
    index = np.union1d(before.index, now.index)
    return Counters(index, np.maximum(before.at(index), now.at(index)))
