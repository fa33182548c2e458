"""Draining of shared memory, with the test itself in the runtime's place."""

from __future__ import annotations

import json
import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.address import Pid
from clew.process.shared_layout import SharedLayout
from clew.process.shared_memory import HeaderSettings, SharedFile, SharedMemory
from clew.protocol._generated import (
    PATH_WINDOW_BYTES,
    STATUS_PAGE,
    THREAD_SLOT,
    EndKind,
    Mode,
    RequestKind,
    SlotState,
)
from clew.recording.drain.counter_extents import iter_data_extents
from clew.recording.drain.drain import Drain
from clew.recording.drain.request import Request
from clew.recording.journal.frames import FrameKind, iter_frames
from clew.recording.journal.sink import ProcessJournal
from clew.recording.journal.writer import JournalWriter
from clew.recording.raw.ended_threads import EndedThreads
from clew.recording.reading.journal_reader import read_counters
from clew.recording.sinks.sink import ProcessSink

FIRST_COUNTER = PATH_WINDOW_BYTES // 8
LAYOUT = SharedLayout(max_threads=4, ring_bytes=1024, counter_bytes=1 << 20)


class Target:
    """What the runtime does in the target, done here; `seen` is what it wrote into each slot, in order."""

    def __init__(
        self,
        directory: Path,
        answer: Callable[[Request], int] | None = None,
        note_birth: Callable[[int, int], None] | None = None,
    ) -> None:
        self.shared = SharedMemory(SharedFile.create(LAYOUT), HeaderSettings(mode=Mode.COUNTS))
        self.path = directory / "journal"
        self.journal = JournalWriter(self.path)
        journal = ProcessJournal(self.journal, 0)
        pid = Pid(os.getpid())
        self.drain = Drain(self.shared, journal, pid, process_name="main", answer=answer, note_birth=note_birth)
        self.slots: npt.NDArray[np.void] = np.frombuffer(
            self.shared.map, THREAD_SLOT, LAYOUT.max_threads, LAYOUT.slots_offset
        )
        self.status: npt.NDArray[np.void] = np.frombuffer(self.shared.map, STATUS_PAGE, 1, LAYOUT.status_offset)

    def start(self, slot: int, tid: int) -> None:
        self.slots["tid"][slot] = tid
        self.slots["state"][slot] = SlotState.RUNNING
        self.status["slots_used"] = max(slot + 1, int(self.status["slots_used"][0]))

    def write(self, slot: int, numbers: list[int]) -> None:
        for number in numbers:
            head = int(self.slots["ring_head"][slot])
            assert head + 64 - int(self.slots["ring_tail"][slot]) <= LAYOUT.ring_bytes
            at = LAYOUT.rings_offset + slot * LAYOUT.ring_bytes + head % LAYOUT.ring_bytes
            self.shared.map[at : at + 64] = number.to_bytes(8, "little") * 8
            self.slots["ring_head"][slot] = (head + 64) % (1 << 64)

    def count(self, slot: int, index: int, value: int) -> None:
        at = LAYOUT.counters_offset + slot * LAYOUT.counter_bytes + 8 * index
        os.pwrite(self.shared.fd, value.to_bytes(8, "little"), at)

    def counter_bytes_in_use(self, slot: int) -> bytes:
        return os.pread(
            self.shared.fd, LAYOUT.counter_bytes, LAYOUT.counters_offset + slot * LAYOUT.counter_bytes
        ).strip(b"\0")

    def end(self, slot: int) -> None:
        self.slots["state"][slot] = SlotState.ENDED

    def finish(self) -> None:
        self.drain.finish()
        self.close()

    def close(self) -> None:
        if self.journal._fd < 0:
            return
        self.drain.close()
        self.journal.close()
        self.slots, self.status = self.slots.copy(), self.status.copy()
        self.shared.close()

    def streams(self) -> dict[int, list[int]]:
        numbers: dict[int, list[int]] = defaultdict(list)
        for frame in iter_frames(self.path):
            if frame.kind == FrameKind.RECORDS:
                numbers[frame.stream] += np.frombuffer(frame.payload, np.uint64)[::8].tolist()
            elif frame.kind == FrameKind.ENDED:
                ended = EndedThreads.parse(frame)
                of_thread = np.split(ended.records.view(np.uint64)[:, 0], np.cumsum(ended.rows["n_records"]))
                for stream, own in zip(ended.rows["stream"].tolist(), of_thread, strict=False):
                    numbers[stream] += own.tolist()
        return {stream: found for stream, found in numbers.items() if found}

    def threads(self) -> list[dict[str, object]]:
        return [json.loads(bytes(frame.payload)) for frame in iter_frames(self.path) if frame.kind == FrameKind.THREAD]

    def ended(self) -> list[EndedThreads]:
        return [EndedThreads.parse(frame) for frame in iter_frames(self.path) if frame.kind == FrameKind.ENDED]


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    made = Target(tmp_path)
    yield made
    made.close()


def test_records_come_in_order_round_the_ring(target: Target) -> None:
    target.start(1, 100)
    for turn in range(10):
        target.write(1, list(range(11 * turn, 11 * turn + 11)))
        assert target.drain.poll() == 11 * 64
        assert target.drain.poll() == 0
    target.finish()
    assert target.streams() == {0: list(range(110))}


class Sometimes(ProcessSink):
    """Has room when it is told so; keeps which records came."""

    has_room = False

    def __init__(self) -> None:
        self.taken: list[int] = []
        self.n_rounds = 0

    def take_records(self, stream: int, slot: int, first: memoryview, second: memoryview) -> None:
        self.taken += np.frombuffer(b"".join((first, second)), np.uint64)[::8].tolist()

    def end_round(self) -> None:
        self.n_rounds += 1


def test_what_there_is_no_room_for_stays_in_the_rings(target: Target) -> None:
    sink = Sometimes()
    drain = Drain(target.shared, sink, Pid(os.getpid()), answer=lambda request: 7)
    target.start(0, 100)
    target.write(0, [1, 2])
    target.slots["request_kind"][0] = RequestKind.IMAGE_FILTERS
    assert drain.poll() == 0
    assert (sink.taken, sink.n_rounds, int(target.slots["ring_tail"][0])) == ([], 0, 0)
    assert target.slots["request_kind"][0] == RequestKind.NONE, "who asks is answered all the same"
    sink.has_room = True
    assert drain.poll() == 2 * 64
    assert (sink.taken, sink.n_rounds) == ([1, 2], 1)
    assert drain.poll() == 0 and sink.n_rounds == 1
    drain.close()


def test_positions_wrap_at_the_end_of_64_bits(target: Target) -> None:
    for name in ("ring_head", "ring_tail"):
        target.slots[name][0] = (1 << 64) - 128
    target.drain._slots.tails[0] = (1 << 64) - 128
    target.start(0, 100)
    target.write(0, [1, 2, 3, 4])
    target.finish()
    assert target.streams() == {0: [1, 2, 3, 4]}
    assert int(target.slots["ring_tail"][0]) == 128


@pytest.mark.parametrize("is_seen", [True, False])
@pytest.mark.parametrize("far", [5000, 20_000])
def test_a_slot_is_given_back_clean_and_used_again(target: Target, far: int, *, is_seen: bool) -> None:
    """Also one that ended before it was looked at, whether all of its counters are read or those that are there."""
    near, far = FIRST_COUNTER + 3, FIRST_COUNTER + far
    for tid, number in ((100, 1), (101, 2)):
        target.start(2, tid)
        target.write(2, [number])
        if is_seen:
            assert target.drain.poll() == 64
        target.count(2, near, number)
        target.count(2, far, 10 * number)
        target.status["counters_used"] = far + 1
        target.end(2)
        assert target.drain.poll() == (0 if is_seen else 64)
        assert target.slots["state"][2] == SlotState.FREE
        assert target.counter_bytes_in_use(2) == b""
    target.finish()
    assert target.streams() == {0: [1], 1: [2]}
    rows = [(row["tid"], row["has_ended"]) for row in target.threads()]
    rows += [(tid, True) for ended in target.ended() for tid in ended.rows["tid"].tolist()]
    assert rows == [(100, True), (101, True)]
    counters: dict[tuple[int, int], int] = {}
    for frame in iter_frames(target.path):
        if frame.kind in (FrameKind.COUNTERS, FrameKind.SPARSE_COUNTERS):
            index, values = read_counters(frame)
            counters |= {
                (frame.stream, at): value for at, value in zip(index.tolist(), values.tolist(), strict=True) if value
            }
    for thread in (thread for ended in target.ended() for thread in ended.iter_threads()):
        own = zip(thread.counters.index.tolist(), thread.counters.value.tolist(), strict=True)
        counters |= {(thread.stream, at): value for at, value in own}
    assert counters == {(0, near): 1, (0, far): 10, (1, near): 2, (1, far): 20}


def test_threads_that_ended_unseen_come_together(target: Target) -> None:
    target.status["counters_used"] = FIRST_COUNTER + 10
    for slot, name in enumerate((b"one", b"t\xc3\xbc\0x", b"", b"abcdefghijklmnop")):
        target.start(slot, 100 + slot)
        row = target.slots[slot : slot + 1]
        row["parent_tid"], row["start_tsc"], row["end_tsc"], row["end_kind"] = 7, 10 + slot, 20 + slot, EndKind.EXIT
        row["lost_records"] = slot
        row["name"][0, : len(name)] = list(name)
        target.write(slot, list(range(10 * slot, 11 * slot)))
        target.count(slot, FIRST_COUNTER + slot, 1 << slot)
        target.end(slot)
    assert target.drain.poll() == 6 * 64
    assert (target.slots["state"] == SlotState.FREE).all()
    assert target.drain.poll() == 0
    target.finish()
    (ended,) = target.ended()
    assert target.threads() == []
    assert target.streams() == {1: [10], 2: [20, 21], 3: [30, 31, 32]}
    assert [
        (one.stream, one.slot, one.tid, one.parent_tid, one.name, one.start_tsc, one.end_tsc, one.lost_records)
        for one in ended.iter_threads()
    ] == [
        (0, 0, 100, 7, "one", 10, 20, 0),
        (1, 1, 101, 7, "tü", 11, 21, 1),
        (2, 2, 102, 7, "", 12, 22, 2),
        (3, 3, 103, 7, "abcdefghijklmnop", 13, 23, 3),
    ]
    counters = [one.counters for one in ended.iter_threads()]
    assert [(one.index.tolist(), one.value.tolist()) for one in counters] == [
        ([FIRST_COUNTER + slot], [1 << slot]) for slot in range(4)
    ]


def test_what_is_odd_of_a_thread_that_ended_unseen_keeps_nobody_else_back(target: Target) -> None:
    for slot in range(4):
        target.start(slot, 100 + slot)
        target.write(slot, [slot])
        target.end(slot)
    target.slots["ring_head"][1] = 1 << 40
    target.slots["tid"][2] = 0
    target.drain.poll()
    assert (target.slots["state"] == SlotState.FREE).all()
    target.finish()
    assert target.streams() == {0: [0], 1: [3], 3: [2]}
    assert any("impossible" in warning for warning in target.drain.warnings)


@pytest.mark.parametrize(("indices", "stays"), [([3, 4, 9000], True), (range(0, 60 * 1024, 1024), False)])
def test_few_pages_of_counters_are_kept_for_the_next_thread(
    target: Target, indices: Sequence[int], *, stays: bool
) -> None:
    target.start(1, 100)
    target.write(1, [1])
    target.drain.poll()
    for index in indices:
        target.count(1, index, 7)
    target.end(1)
    target.drain.poll()
    assert target.slots["state"][1] == SlotState.FREE
    assert target.counter_bytes_in_use(1) == b""
    first = LAYOUT.counters_offset + LAYOUT.counter_bytes
    assert bool(list(iter_data_extents(target.shared.fd, first, first + LAYOUT.counter_bytes))) == stays


def test_threads_that_never_ended_are_there_too(target: Target) -> None:
    target.start(0, os.getpid())
    target.start(3, 999_999_999)
    target.slots["name"][0, :3] = list(b"abc")
    target.finish()
    rows = target.threads()
    assert [(row["tid"], row["name"], row["has_ended"]) for row in rows] == [
        (os.getpid(), "abc", False),
        (999_999_999, "", False),
    ]


@pytest.mark.parametrize("head", [1, 63, 1024 + 64, 1 << 63, (1 << 64) - 64])
def test_an_impossible_head_costs_records_and_is_told(target: Target, head: int) -> None:
    target.start(0, 100)
    target.slots["ring_head"][0] = head
    target.drain.poll()
    target.drain.poll()
    assert any("impossible" in warning for warning in target.drain.warnings)
    assert len(target.drain.warnings) < 10
    target.finish()
    assert target.streams() == {}


def test_counters_used_beyond_the_region_is_clamped(target: Target) -> None:
    target.start(0, 100)
    target.count(0, 0, 5)
    target.count(1, 0, 6)
    target.status["counters_used"] = (1 << 64) - 1
    target.finish()
    kinds = (FrameKind.COUNTERS, FrameKind.SPARSE_COUNTERS)
    assert 0 < sum(len(frame.payload) for frame in iter_frames(target.path) if frame.kind in kinds) <= 4096


def test_children_are_told_of_once_and_before_their_maker_is_answered(tmp_path: Path) -> None:
    told: list[object] = []

    def answer(request: Request) -> int:
        told.append(request.kind)
        return 0

    target = Target(tmp_path, answer, lambda *child: told.append(child))
    target.start(1, 10)
    target.slots["born_child"][1] = 7 << 32 | 4321
    target.slots["request_kind"][1] = RequestKind.FORK
    for _ in range(2):
        target.drain.poll()
        assert told == [(7, 4321), RequestKind.FORK]
    target.slots["born_child"][1] = 8 << 32 | 4322
    target.drain.take_birth(1 << 40)
    target.drain.take_births()
    assert told[2:] == [(8, 4322)]
    target.slots["born_child"][1] = 9 << 32 | 4323
    target.finish()
    assert told[3:] == [(9, 4323)]


def test_requests_are_answered(tmp_path: Path) -> None:
    asked: list[Request] = []

    def answer(request: Request) -> int:
        asked.append(request)
        return 17

    target = Target(tmp_path, answer)
    target.start(1, 100)
    target.slots["request_arguments"][1] = [10, 20, 30, 40]
    target.slots["request_kind"][1] = RequestKind.IMAGE_FILTERS
    target.drain.poll()
    assert asked == [Request(1, 100, RequestKind.IMAGE_FILTERS, (10, 20, 30, 40))]
    assert (target.slots["request_kind"][1], target.slots["request_reply"][1]) == (RequestKind.NONE, 17)
    target.drain.poll()
    assert len(asked) == 1
    target.close()


@settings(deadline=None, max_examples=60)
@given(
    steps=st.lists(
        st.one_of(st.tuples(st.just("write"), st.integers(0, 3), st.integers(1, 16)), st.just(("poll", 0, 0))),
        max_size=60,
    )
)
def test_nothing_is_lost_or_reordered(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int]]
) -> None:
    target = Target(tmp_path_factory.mktemp("drain"))
    written: dict[int, list[int]] = defaultdict(list)
    for slot in range(4):
        target.start(slot, 100 + slot)
    number = 0
    for step, slot, amount in steps:
        if step == "poll":
            target.drain.poll()
            continue
        room = (LAYOUT.ring_bytes - int(target.slots["ring_head"][slot]) + int(target.slots["ring_tail"][slot])) // 64
        numbers = list(range(number, number + min(amount, room)))
        number += len(numbers)
        target.write(slot, numbers)
        written[slot] += numbers
    target.finish()
    assert sorted(target.streams().values()) == sorted(numbers for numbers in written.values() if numbers)


@settings(deadline=None, max_examples=60)
@given(noise=st.binary(min_size=64, max_size=1024), status=st.binary(min_size=256, max_size=256))
def test_noise_in_shared_memory_is_survived(
    tmp_path_factory: pytest.TempPathFactory, noise: bytes, status: bytes
) -> None:
    target = Target(tmp_path_factory.mktemp("noise"), lambda request: 0)
    for at, content in ((LAYOUT.slots_offset, noise), (LAYOUT.status_offset, status), (0, noise[:256])):
        target.shared.map[at : at + len(content)] = content
        target.drain.poll()
        target.drain.refresh_names()
    target.finish()
    assert list(iter_frames(target.path))
