"""Empties the rings of a running target into a sink, and has what its threads ask answered.

Runs in the controller, beside the target. Nothing is parsed here but the slots' own fields, and none of these is
trusted. A hostile target can spoil its own trace and no more.

The life of a slot, as seen from here: in use (state running) -> a stream is opened; ring bytes go to the sink;
ended -> the rest of the ring, the counters and the thread's row go to the sink, the counters become zeros, the
slot becomes free.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from clew.address import Pid
from clew.dataclass import dataclass
from clew.process.shared_memory import SharedMemory
from clew.protocol._generated import (
    PATH_WINDOW_BYTES,
    RECORD_BYTES,
    EndKind,
    Mode,
    SlotState,
)
from clew.recording.drain.capture_rows import split_captures
from clew.recording.drain.ended_drain import EndedDrain
from clew.recording.drain.request import Request
from clew.recording.drain.slots import ImpossibleHeadError, Slots
from clew.recording.sinks.sink import ProcessSink, ThreadRow

if TYPE_CHECKING:
    from clew.recording.drain.open_calls import LeftCalls

__all__ = ["Drain"]

MAX_NAME_CHARACTERS: Final = 64
SAMPLE_SECONDS: Final = 0.1
"""How often it is looked how far paths have come that tell nothing."""


@dataclass
class _Stream:
    """One thread's use of a slot."""

    number: int
    slot: int
    fallback_name: str = ""
    skipped_bytes: int = 0


class Drain:
    """Reads the shared memory of one target.

    `answer` is called for every request and returns the reply, with which the thread goes on; None: ask again later.
    `note_birth` takes the region and the process id of each child that is made.
    `process_name` is the name of the first thread if the kernel can't be asked any more.
    """

    def __init__(
        self,
        shared: SharedMemory,
        sink: ProcessSink,
        pid: Pid,
        *,
        process_name: str = "",
        answer: Callable[[Request], int | None] | None = None,
        mode: Mode = Mode.COUNTS,
        note_birth: Callable[[int, int], None] | None = None,
        has_paths: bool = False,
    ) -> None:
        self._shared = shared
        self._sink = sink
        self._pid = pid
        self._process_name = process_name
        self._answer = answer
        self._note_birth = note_birth
        self._has_paths = False
        self._slots = Slots(shared)
        self._sample_at = 0.0
        self._ended = EndedDrain(shared, self._slots.view, sink, mode)
        self._streams: dict[int, _Stream] = {}
        self._next_stream = 0
        self._left: LeftCalls | None = None
        self.warnings: list[str] = []
        """What went wrong, for people; at most a few lines."""
        self.drained_bytes = 0
        if has_paths:
            self.take_paths()

    def poll(self) -> int:
        """Take what is there; how many bytes of records came."""
        open_tails = self._sample_paths() if self._has_paths else {}
        if not self._sink.has_room:
            self._answer_all()
            return 0
        moved = self._take_ended()
        busy = self._slots.find_busy()
        states = self._slots.states
        # While those were taken, others ended: of many short threads a few each time.
        late = {slot for slot in busy if states[slot] == SlotState.ENDED and slot not in self._streams}
        if late:
            moved += self._take_ended()
            busy = [slot for slot in busy if slot not in late or states[slot] == SlotState.ENDED]
        moved += sum(self._poll_slot(slot) for slot in busy)
        still = {stream.number for stream in self._streams.values()} if open_tails else set()
        for number, (readings, accesses) in open_tails.items():
            if number in still:
                self._sink.take_open_tail(number, readings, accesses)
        if moved or open_tails:
            self._sink.end_round()
        return moved

    def finish(self) -> None:
        """Take everything, the counters too. The target has ended."""
        self._take_ended()
        for slot in self._slots.find_used():
            stream = self._stream_of(slot)
            self._drain_ring(stream)
            if self._shared.has_captures:
                self._take_open_calls(slot)
            self.take_birth(slot)
            self._refresh_name(stream)
            self._end_stream(stream)
        self._sink.take_status(self.status().tobytes())

    def give_up(self) -> None:
        """Tell what is known of the threads, after taking it has failed: what they did since is lost."""
        for stream in self._streams.values():
            row = self._slots.rows[stream.slot].copy()
            row["state"], row["end_kind"] = SlotState.RUNNING, EndKind.UNKNOWN
            with contextlib.suppress(Exception):
                self._tell_thread(stream, row, self._sink)
                self._sink.end_thread(stream.number)
        self._sink.take_status(self.status().tobytes())

    def snapshot(self, sink: ProcessSink) -> None:
        """Give another sink the counters and rows of the threads that run now, and the status page.

        The counters go on while they are read. What they count was announced before, and is given to the main sink once
        it was polled after this.
        """
        for stream in list(self._streams.values()):
            self._refresh_name(stream)
            self._tell_thread(stream, self._slots.rows[stream.slot].copy(), sink, has_ended=False)
        sink.take_status(self.status().tobytes())

    def take_paths(self) -> None:
        """From now on there may be records of paths (mode full)."""
        self._has_paths = True
        self._sink.expect_paths()

    def status(self) -> np.void:
        """The status page as it is now, copied, and what is lost; a scalar of dtype STATUS_PAGE."""
        page = self._slots.status()
        if self._left is not None:
            page["calls_forgotten"] += self._left.n_lost
        return page

    def find_running(self) -> list[int]:
        """Ids of the threads that did not end, as the target tells them."""
        return self._slots.find_running()

    def find_threads(self) -> list[tuple[int, int, bool]]:
        """Slot and number of each thread that did not end, and whether it is followed."""
        return self._slots.find_threads()

    def follow(self, slot: int, tid: int, *, is_followed: bool) -> None:
        """Have the thread of a slot followed or not; told with a directive."""
        self._slots.follow(slot, tid, is_followed=is_followed)

    def find_requests(self, kind: int) -> list[Request]:
        """What threads ask of that kind, and wait for."""
        return [self._slots.read_request(slot) for slot in self._slots.find_asking(kind)]

    def read_held(self, slot: int) -> tuple[tuple[int, ...], tuple[int, ...], int, int]:
        """What the thread of a slot showed of itself when it was stopped (Slots.read_held)."""
        return self._slots.read_held(slot)

    def write_held_registers(self, slot: int, registers: Sequence[int]) -> None:
        """What that thread is to go on with (HoldReply.GO_ON_CHANGED)."""
        self._slots.write_held_registers(slot, registers)

    def write_held_vectors(self, slot: int, vectors: Sequence[int]) -> None:
        """With which vector registers, their low halves (HoldReply.CALL)."""
        self._slots.write_held_vectors(slot, vectors)

    def reply(self, slot: int, reply: int) -> None:
        """Let the thread of a slot go on that asked, and was told "later"."""
        if self._slots.asks(slot):
            self._slots.reply(slot, reply)

    def answer_more(self, slot: int, words: tuple[int, int, int, int]) -> None:
        """What the request of a slot is answered beside a number."""
        self._slots.answer_more(slot, words)

    def refresh_names(self) -> None:
        """Note what the kernel calls each thread: threads that are killed can't say it themselves."""
        for stream in self._streams.values():
            self._refresh_name(stream)

    def take_birth(self, slot: int) -> None:
        """Take note of the child that the thread of a slot made last, if that was not done yet."""
        child = self._slots.take_birth(slot)
        if child and self._note_birth is not None:
            self._note_birth(child >> 32, child & 0xFFFFFFFF)

    def take_births(self) -> None:
        """The same of all threads."""
        for slot in self._slots.find_births():
            self.take_birth(slot)

    def tell_process(self, pid: Pid, name: str) -> None:
        """Whose threads these are; a fork's child says so itself."""
        self._pid, self._process_name = pid, name

    def close(self) -> None:
        """Let go of the shared memory, so that it can be closed."""
        self._slots.close()

    def sample_soon(self) -> None:
        """Look with the next poll how far paths have come."""
        self._sample_at = 0.0

    def _sample_paths(self) -> dict[int, tuple[tuple[bytes, bytes, bytes], bytes]]:
        """Tell how far paths have come; what is in the buffers of each stream if that is asked for: of its path, and of
        its accesses to memory."""
        now = time.monotonic()
        if now < self._sample_at:
            return {}
        from clew.recording.raw.path_tail import CELLS_BYTES

        self._sample_at = now + SAMPLE_SECONDS
        wants_tails, tails = self._sink.wants_tails, {}
        for slot, stream in self._streams.items():
            if self._slots.states[slot] == SlotState.RUNNING:
                read_cells = partial(self._slots.read_window, slot, 0, CELLS_BYTES)
                self._sink.tell_position(stream.number, read_cells)
                if wants_tails:
                    found = self._read_open_tail(partial(self._slots.read_window, slot), read_cells)
                    if found is not None:
                        tails[stream.number] = found
        return tails

    def _read_open_tail(
        self, read: Callable[[int, int], bytes], read_cells: Callable[[], bytes]
    ) -> tuple[tuple[bytes, bytes, bytes], bytes] | None:
        """What is in a thread's buffers; None if they were emptied meanwhile."""
        from clew.recording.raw.access_tail import cut_accesses
        from clew.recording.raw.path_tail import cut_tail

        found: list[tuple[bytes, bytes, bytes]] = []

        def read_path() -> None:
            found.append((read_cells(), cut_tail(read), read_cells()))

        if not self._shared.tells_accesses:
            read_path()
            return found[0], b""
        accesses = cut_accesses(read, read_path)
        return (found[0], accesses) if accesses else None

    def _answer_all(self) -> None:
        """Answer what threads ask; whoever has no room in its ring waits on."""
        for slot in self._slots.find_busy():
            if self._slots.asks(slot):
                self.take_birth(slot)
                self._answer_request(slot)

    def _take_ended(self) -> int:
        """Take what threads left that ended before anything of them was taken; how many bytes of records that were."""
        # As of now: what is in their rings is all there will be.
        ended = self._slots.find_ended()
        slots = ended[[slot not in self._streams for slot in ended.tolist()]] if len(ended) else ended
        moved = 0
        while len(slots):
            rows, tails = self._slots.rows[slots], self._slots.tails[slots]
            used = int(self.status()["counters_used"])
            taken = self._ended.take(slots, rows, tails, used, self._next_stream, has_paths=self._has_paths)
            if not len(taken):
                break
            heads, own = rows["ring_head"][taken], slots[taken]
            moved += int((heads - tails[taken]).sum())
            self._slots.tails[own] = self._slots.rows["ring_tail"][own] = heads
            self._next_stream += len(taken)
            self._slots.states[own] = SlotState.FREE
            slots = np.delete(slots, taken)
        self.drained_bytes += moved
        return moved

    def _poll_slot(self, slot: int) -> int:
        # The state first: what is in the ring when it says `ended` is all there will be.
        state = int(self._slots.states[slot])
        stream = self._stream_of(slot)
        moved = self._drain_ring(stream)
        asks = self._slots.asks(slot)
        # A thread that asks made the child before, and none until it is answered.
        self.take_birth(slot)
        if asks:
            self._answer_request(slot)
        if state == SlotState.ENDED:
            self._end_stream(stream)
            self._slots.free(slot)
        return moved

    def _stream_of(self, slot: int) -> _Stream:
        stream = self._streams.get(slot)
        if stream is None:
            stream = self._streams[slot] = _Stream(self._next_stream, slot)
            self._sink.begin_thread(stream.number, slot, int(self._slots.rows["tid"][slot]))
            self._next_stream += 1
            self._refresh_name(stream)
        return stream

    def _end_stream(self, stream: _Stream) -> None:
        self._tell_thread(stream, self._slots.rows[stream.slot].copy(), self._sink)
        self._sink.end_thread(stream.number)
        del self._streams[stream.slot]

    def _drain_ring(self, stream: _Stream) -> int:
        """Hand over the ring's records, free their room, wake who waits for it; bytes moved."""
        slot = stream.slot
        try:
            head, first, second = self._slots.read_ring(slot)
        except ImpossibleHeadError as error:
            stream.skipped_bytes += error.size_bytes
            self._warn(str(error))
            return 0
        size_bytes = len(first) + len(second)
        if size_bytes:
            if self._sink.is_slow:
                # Copying is less work than that: the thread need not wait for it.
                first, second = memoryview(b"".join((first, second))), second[:0]
                self._slots.free_room(slot, head)
            if self._shared.has_captures:
                whole = memoryview(b"".join((first, second))) if len(second) else first
                first, second = self._take_captures(slot, head, whole), second[:0]
            self._sink.take_records(stream.number, slot, first, second)
            self.drained_bytes += size_bytes
        self._slots.free_room(slot, head)
        return size_bytes

    def _take_captures(self, slot: int, head: int, data: memoryview) -> memoryview:
        """Hand over the captures among a ring's records up to `head`; the others."""
        captures, others = split_captures(data)
        if captures is not None:
            # All of it was copied: the thread need not wait for what is done with it.
            self._slots.free_room(slot, head)
            self._sink.take_captures(captures)
        return memoryview(others)

    def _take_open_calls(self, slot: int) -> None:
        """Hand over the calls that a thread was in when a signal, or another thread, ended it."""
        if not self._slots.is_running(slot):
            return
        from clew.recording.drain.open_calls import LeftCalls

        if self._left is None:
            self._left = LeftCalls(self._shared, self._pid, int(self.status()["start_tsc"]))
        captures = self._left.take(slot, int(self._slots.rows["tid"][slot]))
        if captures is not None:
            self._sink.take_captures(captures)

    def _answer_request(self, slot: int) -> None:
        request = self._slots.read_request(slot)
        reply = 0 if self._answer is None else self._answer(request)
        if reply is not None:
            self._slots.reply(slot, reply)

    def _tell_thread(self, stream: _Stream, row: np.void, sink: ProcessSink, *, has_ended: bool = True) -> None:
        """Give `sink` the counters, what is left of the path if the thread does not go on, and what the slot says."""
        if not int(row["tid"]):
            return  # The process ended before the thread began.
        if self._has_paths and has_ended:
            from clew.recording.raw.path_tail import cut_tail

            if self._shared.tells_accesses:
                from clew.recording.raw.access_tail import cut_accesses

                accesses = cut_accesses(partial(self._slots.read_window, stream.slot))
                if accesses:
                    sink.take_accesses(stream.number, accesses)
            tail = cut_tail(partial(self._slots.read_window, stream.slot))
            # All zeros: its path never began.
            if any(tail):
                sink.take_path_tail(stream.number, stream.slot, tail)
        for first, values in self._slots.iter_counters(stream.slot, PATH_WINDOW_BYTES if self._has_paths else 0):
            sink.take_counters(stream.number, stream.slot, first, values)
        name = bytes(row["name"]).split(b"\0", 1)[0].decode("utf-8", "replace") or stream.fallback_name
        told = ThreadRow(
            tid=int(row["tid"]),
            parent_tid=int(row["parent_tid"]),
            name=name[:MAX_NAME_CHARACTERS],
            start_tsc=int(row["start_tsc"]),
            end_tsc=int(row["end_tsc"]),
            end_kind=int(row["end_kind"]),
            lost_records=int(row["lost_records"]) + stream.skipped_bytes // RECORD_BYTES,
            has_ended=int(row["state"]) == SlotState.ENDED,
        )
        sink.tell_thread(stream.number, stream.slot, told)

    def _refresh_name(self, stream: _Stream) -> None:
        if self._slots.states[stream.slot] == SlotState.ENDED:
            return  # It says so itself.
        tid = int(self._slots.rows["tid"][stream.slot])
        try:
            with open(f"/proc/{self._pid}/task/{tid}/comm", "rb") as file:
                stream.fallback_name = file.read(64).rstrip(b"\n").decode("utf-8", "replace")
        except OSError:
            if tid == self._pid and not stream.fallback_name:
                stream.fallback_name = self._process_name

    def _warn(self, message: str) -> None:
        if len(self.warnings) < 8:
            self.warnings.append(message)
