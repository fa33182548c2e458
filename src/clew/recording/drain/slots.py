"""The slots of a target's threads in the shared memory, as they are read and answered.

Runs in the controller, beside the target. None of what is read is trusted: the controller keeps its own copy of every
ring's tail, and clamps or refuses what does not fit. What becomes of the records is not known here.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from clew.process.linux import futex_wake
from clew.process.shared_memory import SharedMemory
from clew.protocol._generated import (
    RECORD_BYTES,
    STATUS_PAGE,
    STATUS_PAGE_BYTES,
    THREAD_SLOT,
    THREAD_SLOT_BYTES,
    RequestKind,
    SlotState,
)
from clew.protocol.layout import field_offset
from clew.recording.drain.counter_extents import erase, iter_data_extents
from clew.recording.drain.request import Request

__all__ = ["ImpossibleHeadError", "Slots"]

_U64_MASK: Final = (1 << 64) - 1

_U32: Final = struct.Struct("<I")
_ARGUMENTS: Final = struct.Struct("<4Q")
_TID_PLACE, _KIND_PLACE, _REPLY_PLACE, _ARGUMENTS_PLACE = (
    field_offset("ThreadSlot", name) for name in ("tid", "request_kind", "request_reply", "request_arguments")
)
_N_REGISTERS, _N_VECTORS = (THREAD_SLOT[name].shape[0] for name in ("held_registers", "held_vectors"))
_HELD: Final = struct.Struct(f"<{_N_REGISTERS + _N_VECTORS + 2}Q")
_HELD_PLACE: Final = field_offset("ThreadSlot", "held_registers")
"""What a stopped thread shows: registers, vector registers, its thread pointer and where it comes from."""
assert field_offset("ThreadSlot", "held_behind") == _HELD_PLACE + _HELD.size - 8

_FEW: Final = 16
"""So many slots are looked through one by one: that is quicker than an array of them."""

Indices = npt.NDArray[np.int64]


class ImpossibleHeadError(Exception):
    """A ring's head is where no runtime would have it: `size_bytes` behind it are lost, the ring begins anew there."""

    def __init__(self, message: str, size_bytes: int) -> None:
        super().__init__(message)
        self.size_bytes = size_bytes


class Slots:
    """Those of one target, with their rings, counters and requests; `rows` has dtype THREAD_SLOT."""

    def __init__(self, shared: SharedMemory) -> None:
        self._shared = shared
        self._layout = layout = shared.layout
        self.rows: npt.NDArray[np.void] = np.frombuffer(
            shared.map, THREAD_SLOT, layout.max_threads, layout.slots_offset
        )
        self.states: npt.NDArray[np.uint32] = self.rows["state"]
        self._heads: npt.NDArray[np.uint64] = self.rows["ring_head"]
        self._waiters: npt.NDArray[np.uint32] = self.rows["ring_waiters"]
        self._requests: npt.NDArray[np.uint32] = self.rows["request_kind"]
        self._born: npt.NDArray[np.uint64] = self.rows["born_child"]
        self.tails = np.zeros(layout.max_threads, np.uint64)
        """Up to where the records in each ring were taken."""
        status_offset = layout.status_offset + field_offset("StatusPage", "slots_used")
        self._slots_used: npt.NDArray[np.uint64] = np.frombuffer(shared.map, np.uint64, 1, status_offset)
        self._most_used = 0
        self.view = memoryview(shared.map)
        """What of the shared memory is mapped."""
        self._base_address = ctypes.addressof(ctypes.c_char.from_buffer(shared.map))
        self._start = layout.slots_offset

    def close(self) -> None:
        """Let go of the shared memory, so that it can be closed."""
        empty = np.zeros(0, np.uint32)
        self.rows = np.zeros(0, THREAD_SLOT)
        self.states, self._waiters, self._requests = empty, empty, empty
        self._heads = self._slots_used = self._born = np.zeros(0, np.uint64)
        self.view.release()

    def status(self) -> np.void:
        """The status page as it is now, copied; a scalar of dtype STATUS_PAGE."""
        offset = self._layout.status_offset
        page: np.void = np.frombuffer(bytearray(self.view[offset : offset + STATUS_PAGE_BYTES]), STATUS_PAGE)[0]
        return page

    def _count_used(self) -> int:
        """How many slots were ever used: the first ones. It does not shrink, whatever the target says."""
        self._most_used = max(self._most_used, min(int(self._slots_used[0]), self._layout.max_threads))
        return self._most_used

    def find_busy(self) -> list[int]:
        """Slots in use in which there is something to do."""
        n = self._count_used()
        states = self.states[:n].copy()
        in_use = states != SlotState.FREE
        busy = in_use & ((self._heads[:n] != self.tails[:n]) | (states == SlotState.ENDED) | (self._waiters[:n] != 0))
        busy |= in_use & ((self._requests[:n] != RequestKind.NONE) | (self._born[:n] != 0))
        busy_slots: list[int] = np.flatnonzero(busy).tolist()
        return busy_slots

    def find_asking(self, kind: int) -> list[int]:
        """Slots of threads that ask for something of a kind (RequestKind)."""
        n = self._count_used()
        if n <= _FEW:
            places = range(
                self._start + _KIND_PLACE, self._start + _KIND_PLACE + n * THREAD_SLOT_BYTES, THREAD_SLOT_BYTES
            )
            view, read = self.view, _U32.unpack_from
            return [slot for slot, place in enumerate(places) if read(view, place)[0] == kind]
        slots: list[int] = np.flatnonzero(self._requests[:n] == kind).tolist()
        return slots

    def find_used(self) -> list[int]:
        """Slots of threads, and those in whose rings is something."""
        n = self._count_used()
        used: list[int] = np.flatnonzero(
            (self.states[:n] != SlotState.FREE) | (self._heads[:n] != self.tails[:n])
        ).tolist()
        return used

    def find_ended(self) -> Indices:
        """Slots of threads that have ended."""
        return np.flatnonzero(self.states[: self._count_used()] == SlotState.ENDED)

    def find_running(self) -> list[int]:
        """Ids of the threads that did not end, as the target tells them."""
        n = self._count_used()
        rows: list[int] = self.rows["tid"][:n][self.states[:n] == SlotState.RUNNING].tolist()
        return rows

    def find_threads(self) -> list[tuple[int, int, bool]]:
        """Slot and number of each thread that did not end, and whether it is followed."""
        n = self._count_used()
        slots = np.flatnonzero(self.states[:n] == SlotState.RUNNING)
        rows = self.rows[slots]
        return list(zip(slots.tolist(), rows["tid"].tolist(), (rows["is_unfollowed"] == 0).tolist(), strict=True))

    def follow(self, slot: int, tid: int, *, is_followed: bool) -> None:
        """Have the thread of a slot followed or not, if it is thread `tid` still."""
        if int(self.rows["tid"][slot]) == tid:
            self.rows["is_unfollowed"][slot] = int(not is_followed)

    def read_ring(self, slot: int) -> tuple[int, memoryview, memoryview]:
        """Where a ring's head is, and the records up to there, which are in two pieces.

        Raises ImpossibleHeadError.
        """
        ring_bytes = self._layout.ring_bytes
        head, tail = int(self._heads[slot]), int(self.tails[slot])
        size_bytes = (head - tail) & _U64_MASK
        if size_bytes > ring_bytes or size_bytes % RECORD_BYTES:
            # Not the runtime's doing, unless it is broken: start anew where the head is.
            self._set_tail(slot, head - head % RECORD_BYTES)
            raise ImpossibleHeadError(
                f"thread slot {slot}: the ring's head is impossible ({head:#x} after {tail:#x}); records lost",
                min(size_bytes, ring_bytes),
            )
        return head, *self._pieces(slot, tail, size_bytes)

    def _pieces(self, slot: int, start: int, size_bytes: int) -> tuple[memoryview, memoryview]:
        """So many bytes of a ring, no more than it has, from a place on: in two pieces, around its end."""
        ring_bytes = self._layout.ring_bytes
        at, ring = start % ring_bytes, self._layout.rings_offset + slot * ring_bytes
        first_bytes = min(size_bytes, ring_bytes - at)
        return self.view[ring + at : ring + at + first_bytes], self.view[ring : ring + size_bytes - first_bytes]

    def count_new(self, slot: int) -> int:
        """How many bytes a thread has written that were not taken, written over or not."""
        return max((int(self._heads[slot]) & -RECORD_BYTES) - int(self.tails[slot]), 0)

    def take_newest(self, slot: int, most_bytes: int) -> bytes:
        """The newest records of a ring whose thread writes over the oldest ones, so many bytes at most, and none
        twice. `most_bytes` is less than half of the ring, whose other half may be written to meanwhile."""
        ring_bytes = self._layout.ring_bytes
        head = int(self._heads[slot]) & -RECORD_BYTES
        start = max(int(self.tails[slot]), head - most_bytes)
        first, second = self._pieces(slot, start, max(head - start, 0))
        data = bytes(first) + bytes(second)
        first.release()
        second.release()
        # What is being written is no more than half of a ring (can_do, at_probes.rs).
        overwritten = (int(self._heads[slot]) & -RECORD_BYTES) - ring_bytes // 2
        self.tails[slot] = max(head, start)
        return data[max(overwritten - start, 0) :]

    def skip(self, slot: int) -> None:
        """What is in a ring is of no interest."""
        self.tails[slot] = int(self._heads[slot]) & -RECORD_BYTES

    def free_room(self, slot: int, tail: int) -> None:
        """What lies before `tail` was taken: wake who waits for room."""
        self._set_tail(slot, tail)
        if self._waiters[slot]:
            self._wake(slot, "ring_tail")

    def _set_tail(self, slot: int, tail: int) -> None:
        self.tails[slot] = tail
        self.rows["ring_tail"][slot] = tail

    def asks(self, slot: int) -> bool:
        """Whether the thread of a slot asks something."""
        return int(self._requests[slot]) != RequestKind.NONE

    def read_request(self, slot: int) -> Request:
        """What the thread of a slot asks."""
        view, start = self.view, self._start + slot * THREAD_SLOT_BYTES
        tid, kind = _U32.unpack_from(view, start + _TID_PLACE)[0], _U32.unpack_from(view, start + _KIND_PLACE)[0]
        return Request(slot, tid, kind, _ARGUMENTS.unpack_from(view, start + _ARGUMENTS_PLACE))

    def reply(self, slot: int, reply: int) -> None:
        """Let a thread go on that asked."""
        start = self._start + slot * THREAD_SLOT_BYTES
        _U32.pack_into(self.view, start + _REPLY_PLACE, reply & 0xFFFFFFFF)
        _U32.pack_into(self.view, start + _KIND_PLACE, RequestKind.NONE)
        futex_wake(self._base_address + start + _KIND_PLACE)

    def answer_more(self, slot: int, words: tuple[int, int, int, int]) -> None:
        """What the request of a slot is answered beside a number."""
        self.rows["request_answer"][slot] = words

    def read_held(self, slot: int) -> tuple[tuple[int, ...], tuple[int, ...], int, int]:
        """What the thread of a slot showed of itself when it was stopped (RequestKind.HOLD): its registers, the low
        halves of its first vector registers, its thread pointer, and the mark that it comes from."""
        words = _HELD.unpack_from(self.view, self._start + slot * THREAD_SLOT_BYTES + _HELD_PLACE)
        return words[:_N_REGISTERS], words[_N_REGISTERS:-2], words[-2], words[-1]

    def write_held_registers(self, slot: int, registers: Sequence[int]) -> None:
        """What the thread of a slot is to go on with (HoldReply.GO_ON_CHANGED)."""
        self.rows["held_registers"][slot] = registers

    def write_held_vectors(self, slot: int, vectors: Sequence[int]) -> None:
        """With which vector registers, their low halves (HoldReply.CALL)."""
        self.rows["held_vectors"][slot] = vectors

    def take_birth(self, slot: int) -> int:
        """The child that the thread of a slot made last, its region and its number; 0: none, or it was taken."""
        if not 0 <= slot < self._count_used():
            return 0
        child = int(self._born[slot])
        if child:
            self._born[slot] = 0
        return child

    def find_births(self) -> list[int]:
        """Slots of threads that made a child of which nobody took note."""
        slots: list[int] = np.flatnonzero(self._born[: self._count_used()]).tolist()
        return slots

    def window_offset(self, slot: int) -> int:
        """Where a thread's counters begin in the file of the shared memory."""
        return self._shared.offset + self._layout.counters_offset + slot * self._layout.counter_bytes

    def read_window(self, slot: int, offset: int, size_bytes: int) -> bytes:
        """A part of a thread's counters."""
        return os.pread(self._shared.fd, size_bytes, self.window_offset(slot) + offset)

    def is_running(self, slot: int) -> bool:
        """Whether the thread of a slot has not said that it ended."""
        return int(self.states[slot]) == SlotState.RUNNING

    def iter_counters(self, slot: int, first_offset: int) -> Iterator[tuple[int, bytes]]:
        """Counters of a thread from an offset on: parts that hold something, each with its first one's index."""
        used = int(self.status()["counters_used"])
        window = self.window_offset(slot)
        end_offset = window + min(8 * used, self._layout.counter_bytes)
        for start, end in iter_data_extents(self._shared.fd, window + first_offset, end_offset):
            yield (start - window) // 8, os.pread(self._shared.fd, end - start, start)

    def free(self, slot: int) -> None:
        """Have another thread use a slot whose thread has ended."""
        erase(self._shared.fd, self.window_offset(slot), self._layout.counter_bytes)
        self.states[slot] = SlotState.FREE

    def _wake(self, slot: int, name: str) -> None:
        offset = self._layout.slots_offset + slot * THREAD_SLOT_BYTES + field_offset("ThreadSlot", name)
        futex_wake(self._base_address + offset)
