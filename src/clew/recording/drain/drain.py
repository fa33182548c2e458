"""Empties the rings of a running target into the journal, and answers what its threads ask.

Runs in the controller, beside the target. Nothing is parsed here but the slots' own fields, and none of these is
trusted: the controller keeps its own copy of every ring's tail, and clamps or refuses what does not fit. A hostile
target can spoil its own trace and no more.

The life of a slot, as seen from here: in use (state running) -> a stream is opened; ring bytes go to the journal;
ended -> the rest of the ring, the counters and the thread's row go to the journal, the counters become zeros, the
slot becomes free.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import os
import time
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from clew.address import Pid
from clew.dataclass import dataclass, field
from clew.process.linux import futex_wake, punch_hole
from clew.process.shared_memory import SharedMemory
from clew.protocol._generated import (
    PATH_WINDOW_BYTES,
    RECORD_BYTES,
    STATUS_PAGE,
    STATUS_PAGE_BYTES,
    THREAD_SLOT,
    THREAD_SLOT_BYTES,
    EndKind,
    Mode,
    RequestKind,
    SlotState,
)
from clew.protocol.layout import field_offset
from clew.recording.drain.counter_extents import iter_data_extents, write_counters
from clew.recording.drain.ended_drain import EndedDrain
from clew.recording.drain.request import Request
from clew.recording.journal.journal import FrameKind, ProcessJournal

if TYPE_CHECKING:
    from clew.recording.journal.path_drain import PathDrain

__all__ = ["Drain"]

MAX_NAME_CHARACTERS: Final = 64
SAMPLE_SECONDS: Final = 0.1
"""How often it is looked how far paths have come that tell nothing."""
MAX_ZEROED_EXTENTS: Final = 16
_ZEROS: Final = memoryview(bytes(256 << 10))
"""So much of the counters of a thread that ended may stay in memory, in so many pieces."""
_U64_MASK: Final = (1 << 64) - 1


@dataclass
class _Stream:
    """One thread's use of a slot."""

    number: int
    slot: int
    tid: int = 0
    fallback_name: str = ""
    skipped_bytes: int = 0
    kept_bytes: int = 0
    """Records that the journal took, if only in memory."""
    path: PathDrain | None = None
    """Mode full: takes what is of its path."""
    warnings: list[str] = field(default_factory=list)


class Drain:
    """Reads the shared memory of one target.

    `answer` is called for every request and returns the reply, with which the thread goes on; None: ask again later.
    `note_birth` takes the region and the process id of each child that is made.
    `process_name` is the name of the first thread if the kernel can't be asked any more.
    """

    def __init__(
        self,
        shared: SharedMemory,
        journal: ProcessJournal,
        pid: Pid,
        *,
        process_name: str = "",
        answer: Callable[[Request], int | None] | None = None,
        mode: Mode = Mode.COUNTS,
        note_birth: Callable[[int, int], None] | None = None,
        has_paths: bool = False,
    ) -> None:
        layout = shared.layout
        self._layout = layout
        self._shared = shared
        self._journal = journal
        self._pid = pid
        self._process_name = process_name
        self._answer = answer
        self._note_birth = note_birth
        self._has_paths = has_paths
        self._slots: npt.NDArray[np.void] = np.frombuffer(
            shared.map, THREAD_SLOT, layout.max_threads, layout.slots_offset
        )
        self._states: npt.NDArray[np.uint32] = self._slots["state"]
        self._heads: npt.NDArray[np.uint64] = self._slots["ring_head"]
        self._waiters: npt.NDArray[np.uint32] = self._slots["ring_waiters"]
        self._requests: npt.NDArray[np.uint32] = self._slots["request_kind"]
        self._born: npt.NDArray[np.uint64] = self._slots["born_child"]
        self._tails = np.zeros(layout.max_threads, np.uint64)
        status_offset = layout.status_offset + field_offset("StatusPage", "slots_used")
        self._slots_used: npt.NDArray[np.uint64] = np.frombuffer(shared.map, np.uint64, 1, status_offset)
        self._most_used = 0
        self._sample_at = 0.0
        self._view = memoryview(shared.map)
        self._ended = EndedDrain(shared, self._view, journal, mode)
        self._base_address = ctypes.addressof(ctypes.c_char.from_buffer(shared.map))
        self._streams: dict[int, _Stream] = {}
        self._next_stream = 0
        self.warnings: list[str] = []
        """What went wrong, for people; at most a few lines."""
        self.drained_bytes = 0

    def poll(self) -> int:
        """Take what is there; how many bytes of records came."""
        if self._has_paths:
            self._sample_paths()
        moved = self._take_ended()
        return moved + sum(self._poll_slot(slot) for slot in self._find_busy_slots())

    def finish(self) -> None:
        """Take everything, the counters too. The target has ended."""
        self._take_ended()
        n = self._count_used()
        in_use = (self._states[:n] != SlotState.FREE) | (self._heads[:n] != self._tails[:n])
        for slot in np.flatnonzero(in_use).tolist():
            stream = self._stream_of(slot)
            self._drain_ring(stream)
            self.take_birth(slot)
            self._refresh_name(stream)
            self._finish_path(stream)
            self._write_thread(stream, self._slots[slot].copy(), self._journal)
        self._journal.write(FrameKind.STATUS, self.status().tobytes())

    def give_up(self) -> None:
        """Write what is known of the threads, after taking it has failed: what they did since is lost."""
        for stream in self._streams.values():
            row = self._slots[stream.slot].copy()
            row["state"], row["end_kind"] = SlotState.RUNNING, EndKind.UNKNOWN
            with contextlib.suppress(Exception):
                self._finish_path(stream)
                self._write_thread(stream, row, self._journal)
        self._journal.write(FrameKind.STATUS, self.status().tobytes())

    def status(self) -> np.void:
        """The status page as it is now, copied; a scalar of dtype STATUS_PAGE."""
        offset = self._layout.status_offset
        page: np.void = np.frombuffer(bytes(self._view[offset : offset + STATUS_PAGE_BYTES]), STATUS_PAGE)[0]
        return page

    def snapshot(self, journal: ProcessJournal) -> None:
        """Write the counters and rows of the threads that run now, and the status page.

        The counters go on while they are read. What they count was announced before, and is in the main journal once it
        was polled after this.
        """
        for stream in list(self._streams.values()):
            self._refresh_name(stream)
            if stream.path is not None:
                stream.path.save()
            self._write_thread(stream, self._slots[stream.slot].copy(), journal, has_ended=False)
        journal.write(FrameKind.STATUS, self.status().tobytes())

    def take_paths(self) -> None:
        """From now on there may be records of paths (mode full)."""
        self._has_paths = True
        for stream in self._streams.values():
            stream.path = stream.path or self._path_of(stream)

    def _path_of(self, stream: _Stream) -> PathDrain:
        # What writes paths takes as long to import as all the rest of this.
        from clew.recording.journal.path_drain import PathDrain

        return PathDrain(self._journal.folder, self._journal.number, stream.number)

    def refresh_names(self) -> None:
        """Note what the kernel calls each thread: threads that are killed can't say it themselves."""
        for stream in self._streams.values():
            self._refresh_name(stream)

    def find_running(self) -> list[int]:
        """Ids of the threads that did not end, as the target tells them."""
        n = self._count_used()
        rows: list[int] = self._slots["tid"][:n][self._states[:n] == SlotState.RUNNING].tolist()
        return rows

    def read_held_registers(self, slot: int) -> tuple[int, ...]:
        """What the thread of a slot showed of itself when it stood still (RequestKind.HOLD)."""
        return tuple(self._slots["held_registers"][slot].tolist())

    def answer_more(self, slot: int, words: tuple[int, int, int, int]) -> None:
        """What the request of a slot is answered beside a number."""
        self._slots["request_answer"][slot] = words

    def take_birth(self, slot: int) -> None:
        """Take note of the child that the thread of a slot made last, if that was not done yet."""
        if 0 <= slot < self._count_used() and (child := int(self._born[slot])):
            self._born[slot] = 0
            if self._note_birth is not None:
                self._note_birth(child >> 32, child & 0xFFFFFFFF)

    def take_births(self) -> None:
        """The same of all threads."""
        for slot in np.flatnonzero(self._born[: self._count_used()]).tolist():
            self.take_birth(slot)

    def tell_process(self, pid: Pid, name: str) -> None:
        """Whose threads these are; a fork's child says so itself."""
        self._pid, self._process_name = pid, name

    def close(self) -> None:
        """Let go of the shared memory, so that it can be closed."""
        empty = np.zeros(0, np.uint32)
        self._slots = np.zeros(0, THREAD_SLOT)
        self._states, self._waiters, self._requests = empty, empty, empty
        self._heads = self._slots_used = self._born = np.zeros(0, np.uint64)
        self._view.release()

    def _sample_paths(self) -> None:
        now = time.monotonic()
        if now < self._sample_at:
            return
        from clew.recording.raw.path_tail import CELLS_BYTES

        self._sample_at = now + SAMPLE_SECONDS
        first, size = self._shared.offset + self._layout.counters_offset, self._layout.counter_bytes
        for slot, stream in self._streams.items():
            if stream.path is not None and self._states[slot] == SlotState.RUNNING:
                stream.path.sample(partial(os.pread, self._shared.fd, CELLS_BYTES, first + slot * size))

    def _find_busy_slots(self) -> list[int]:
        n = self._count_used()
        states = self._states[:n].copy()
        in_use = states != SlotState.FREE
        busy = in_use & ((self._heads[:n] != self._tails[:n]) | (states == SlotState.ENDED) | (self._waiters[:n] != 0))
        busy |= in_use & ((self._requests[:n] != RequestKind.NONE) | (self._born[:n] != 0))
        busy_slots: list[int] = np.flatnonzero(busy).tolist()
        return busy_slots

    def _count_used(self) -> int:
        """How many slots were ever used: the first ones. It does not shrink, whatever the target says."""
        self._most_used = max(self._most_used, min(int(self._slots_used[0]), self._layout.max_threads))
        return self._most_used

    def _take_ended(self) -> int:
        """Take what threads left that ended before anything of them was taken; how many bytes of records that were."""
        # As of now: what is in their rings is all there will be.
        ended = np.flatnonzero(self._states[: self._count_used()] == SlotState.ENDED)
        slots = ended[[slot not in self._streams for slot in ended.tolist()]] if len(ended) else ended
        moved = 0
        while len(slots):
            used, rows, tails = int(self.status()["counters_used"]), self._slots[slots], self._tails[slots]
            taken = self._ended.take(slots, rows, tails, used, self._next_stream, has_paths=self._has_paths)
            if not len(taken):
                break
            heads, own = rows["ring_head"][taken], slots[taken]
            moved += int((heads - tails[taken]).sum())
            self._tails[own] = self._slots["ring_tail"][own] = heads
            self._next_stream += len(taken)
            self._states[own] = SlotState.FREE
            slots = np.delete(slots, taken)
        self.drained_bytes += moved
        return moved

    def _poll_slot(self, slot: int) -> int:
        # The state first: what is in the ring when it says `ended` is all there will be.
        state = int(self._states[slot])
        stream = self._stream_of(slot)
        moved = self._drain_ring(stream)
        asks = int(self._requests[slot]) != RequestKind.NONE
        # A thread that asks made the child before, and none until it is answered.
        self.take_birth(slot)
        if asks:
            self._answer_request(slot)
        if state == SlotState.ENDED:
            self._finish_path(stream)
            self._write_thread(stream, self._slots[slot].copy(), self._journal)
            self._free(slot)
        return moved

    def _stream_of(self, slot: int) -> _Stream:
        stream = self._streams.get(slot)
        if stream is None:
            stream = self._streams[slot] = _Stream(self._next_stream, slot, int(self._slots["tid"][slot]))
            if self._has_paths:
                stream.path = self._path_of(stream)
            self._next_stream += 1
            self._refresh_name(stream)
        return stream

    def _drain_ring(self, stream: _Stream) -> int:
        """Move the ring's records to the journal, free their room, wake who waits for it; bytes moved."""
        slot, ring_bytes = stream.slot, self._layout.ring_bytes
        head, tail = int(self._heads[slot]), int(self._tails[slot])
        size_bytes = (head - tail) & _U64_MASK
        if size_bytes > ring_bytes or size_bytes % RECORD_BYTES:
            # Not the runtime's doing, unless it is broken: start anew where the head is.
            stream.skipped_bytes += min(size_bytes, ring_bytes)
            self._warn(f"thread slot {slot}: the ring's head is impossible ({head:#x} after {tail:#x}); records lost")
            self._set_tail(slot, head - head % RECORD_BYTES)
            return 0
        if size_bytes:
            at = tail % ring_bytes
            ring = self._layout.rings_offset + slot * ring_bytes
            first_bytes = min(size_bytes, ring_bytes - at)
            pieces = self._view[ring + at : ring + at + first_bytes], self._view[ring : ring + size_bytes - first_bytes]
            if stream.path is not None:
                # Compressing takes longer than copying: the thread need not wait for it.
                records = np.concatenate([np.frombuffer(piece, np.uint8) for piece in pieces])
                self._free_room(slot, head)
                rest = stream.path.take(records.reshape(-1, RECORD_BYTES))
                pieces = memoryview(rest.tobytes()), pieces[1][:0]
            self._keep_records(stream, *pieces)
            self._tails[slot] = head
            self.drained_bytes += size_bytes
        self._free_room(slot, int(self._tails[slot]))
        return size_bytes

    def _keep_records(self, stream: _Stream, first: memoryview, second: memoryview) -> None:
        """Write records, the second of two pieces after the first."""
        size_bytes = len(first) + len(second)
        if not size_bytes:
            return
        was_written = self._journal.write(
            FrameKind.RECORDS, first, second=second, stream=stream.number, slot=stream.slot
        )
        if was_written:
            stream.kept_bytes += size_bytes
        else:
            stream.skipped_bytes += size_bytes

    def _finish_path(self, stream: _Stream) -> None:
        """Its thread has ended: nothing more comes of the path."""
        if stream.path is not None:
            stream.path.finish()
            failure = stream.path.writer.failure
            if failure is not None:
                self._warn(f"{stream.path.writer.path}: {failure.strerror}; the path of thread {stream.tid} ends there")

    def _free_room(self, slot: int, tail: int) -> None:
        """What lies before `tail` was taken: wake who waits for room."""
        self._set_tail(slot, tail)
        if self._waiters[slot]:
            self._wake(slot, "ring_tail")

    def _set_tail(self, slot: int, tail: int) -> None:
        self._tails[slot] = tail
        self._slots["ring_tail"][slot] = tail

    def _answer_request(self, slot: int) -> None:
        row = self._slots[slot].copy()
        arguments = tuple(int(argument) for argument in row["request_arguments"])
        request = Request(slot, int(row["tid"]), int(row["request_kind"]), arguments)
        reply = 0 if self._answer is None else self._answer(request)
        if reply is None:
            return
        self._slots["request_reply"][slot] = reply & 0xFFFFFFFF
        self._requests[slot] = RequestKind.NONE
        self._wake(slot, "request_kind")

    def _write_thread(self, stream: _Stream, row: np.void, journal: ProcessJournal, *, has_ended: bool = True) -> None:
        """Write what the slot says, the counters, and what is left of the path; or how much of that was saved, if the
        thread goes on: what it writes while it is read is of no moment."""
        if not int(row["tid"]):
            return  # The process ended before the thread began.
        used = int(self.status()["counters_used"])
        counters_offset = self._shared.offset + self._layout.counters_offset + stream.slot * self._layout.counter_bytes
        end_offset = counters_offset + min(8 * used, self._layout.counter_bytes)
        first_offset = counters_offset
        if self._has_paths:
            first_offset += PATH_WINDOW_BYTES
        if self._has_paths and has_ended:
            from clew.recording.raw.path_tail import cut_tail

            tail = cut_tail(lambda offset, size: os.pread(self._shared.fd, size, counters_offset + offset))
            # All zeros: its path never began.
            if any(tail):
                journal.write(FrameKind.PATH_TAIL, tail, stream=stream.number, slot=stream.slot)
        for start, end in iter_data_extents(self._shared.fd, first_offset, end_offset):
            data = os.pread(self._shared.fd, end - start, start)
            write_counters(journal, data, (start - counters_offset) // 8, stream.number, stream.slot)
        name = bytes(row["name"]).split(b"\0", 1)[0].decode("utf-8", "replace") or stream.fallback_name
        journal.write_json(
            FrameKind.THREAD,
            {
                "tid": int(row["tid"]),
                "parent_tid": int(row["parent_tid"]),
                "name": name[:MAX_NAME_CHARACTERS],
                "start_tsc": int(row["start_tsc"]),
                "end_tsc": int(row["end_tsc"]),
                "end_kind": int(row["end_kind"]),
                "lost_records": int(row["lost_records"]) + stream.skipped_bytes // RECORD_BYTES,
                "records": stream.kept_bytes // RECORD_BYTES,
                "has_ended": int(row["state"]) == SlotState.ENDED,
                **({} if has_ended else {"path_bytes": 0 if stream.path is None else stream.path.writer.size_bytes}),
            },
            stream=stream.number,
            slot=stream.slot,
        )

    def _free(self, slot: int) -> None:
        fd, counter_bytes = self._shared.fd, self._layout.counter_bytes
        first = self._shared.offset + self._layout.counters_offset + slot * counter_bytes
        # The next thread needs as much: zeroing it is less work than to give it back, and to have it once more.
        used = list(itertools.islice(iter_data_extents(fd, first, first + counter_bytes), MAX_ZEROED_EXTENTS + 1))
        if len(used) > MAX_ZEROED_EXTENTS or sum(end - start for start, end in used) > len(_ZEROS):
            punch_hole(fd, first, counter_bytes)
        else:
            for start, end in used:
                os.pwrite(fd, _ZEROS[: end - start], start)
        del self._streams[slot]
        self._states[slot] = SlotState.FREE

    def _refresh_name(self, stream: _Stream) -> None:
        if self._states[stream.slot] == SlotState.ENDED:
            return  # It says so itself.
        tid = int(self._slots["tid"][stream.slot])
        try:
            with open(f"/proc/{self._pid}/task/{tid}/comm", "rb") as file:
                stream.fallback_name = file.read(64).rstrip(b"\n").decode("utf-8", "replace")
        except OSError:
            if tid == self._pid and not stream.fallback_name:
                stream.fallback_name = self._process_name

    def _wake(self, slot: int, name: str) -> None:
        offset = self._layout.slots_offset + slot * THREAD_SLOT_BYTES + field_offset("ThreadSlot", name)
        futex_wake(self._base_address + offset)

    def _warn(self, message: str) -> None:
        if len(self.warnings) < 8:
            self.warnings.append(message)
