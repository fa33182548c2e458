"""Counters are read beside the target and the recorder: none counts twice, and none is lost."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np
import pytest

from clew.process.linux import punch_hole
from clew.process.shared_layout import SharedLayout
from clew.process.shared_memory import HeaderSettings, SharedFile, SharedMemory
from clew.protocol._generated import PATH_WINDOW_BYTES, STATUS_PAGE, THREAD_SLOT, Mode, SlotState
from clew.protocol.layout import field_offset
from clew.recording.live.counters import LiveCounters

LAYOUT = SharedLayout(max_threads=4, ring_bytes=4096, counter_bytes=PATH_WINDOW_BYTES + (64 << 10))
FIRST = PATH_WINDOW_BYTES // 8
"""The first counter: in front of it is the path's room."""


class Target:
    """What a runtime writes, and the recorder after a thread's end."""

    def __init__(self) -> None:
        self.shared = SharedMemory(SharedFile.create(LAYOUT), HeaderSettings(Mode.COUNTS))
        self.slots = np.frombuffer(self.shared.map, THREAD_SLOT, LAYOUT.max_threads, LAYOUT.slots_offset)
        self.status = np.frombuffer(self.shared.map, STATUS_PAGE, 1, LAYOUT.status_offset)
        self.status["slots_used"], self.status["counters_used"] = LAYOUT.max_threads, LAYOUT.counter_bytes // 8

    def run(self, slot: int, tid: int, start_tsc: int) -> None:
        self.slots["tid"][slot], self.slots["start_tsc"][slot] = tid, start_tsc
        self.slots["state"][slot] = SlotState.RUNNING

    def count(self, slot: int, counter: int, value: int) -> None:
        at = LAYOUT.counters_offset + slot * LAYOUT.counter_bytes + 8 * (FIRST + counter)
        os.pwrite(self.shared.fd, value.to_bytes(8, "little"), at)

    def empty(self, slot: int) -> None:
        punch_hole(self.shared.fd, LAYOUT.counters_offset + slot * LAYOUT.counter_bytes, LAYOUT.counter_bytes)

    def close(self) -> None:
        del self.slots, self.status
        self.shared.close()


@pytest.fixture
def target() -> Iterator[Target]:
    made = Target()
    yield made
    made.close()


@pytest.fixture
def counters(target: Target) -> Iterator[LiveCounters]:
    made = LiveCounters(os.dup(target.shared.fd), 0, LAYOUT)
    yield made
    made.close()


def read(counters: LiveCounters) -> list[tuple[int, dict[int, int]]]:
    """Of each thread its number and what it counted."""
    counters.read(Mode.COUNTS)
    return [
        (one.tid, dict(zip((one.counters.index - FIRST).tolist(), one.counters.value.tolist(), strict=True)))
        for one in counters.threads
    ]


def test_what_runs_is_read_as_it_is(target: Target, counters: LiveCounters) -> None:
    assert read(counters) == []
    target.run(1, 77, 1000)
    target.count(1, 3, 5)
    target.count(1, 6000, 9)
    assert read(counters) == [(77, {3: 5, 6000: 9})]
    target.count(1, 3, 6)
    assert read(counters) == [(77, {3: 6, 6000: 9})]


def test_what_is_emptied_keeps_what_was_read_until_the_journal_has_it(target: Target, counters: LiveCounters) -> None:
    target.run(0, 10, 1)
    target.count(0, 2, 8)
    assert read(counters) == [(10, {2: 8})]
    # The recorder has kept the counters, and not said so yet.
    target.empty(0)
    assert read(counters) == [(10, {2: 8})]
    # Another thread has the slot by now.
    target.run(0, 11, 2)
    target.count(0, 2, 1)
    assert read(counters) == [(10, {2: 8}), (11, {2: 1})]
    counters.settle(0, 10, 1)
    assert read(counters) == [(11, {2: 1})]
    # A thread that was read by nobody has ended: nothing of another one is forgotten with it, but once.
    counters.settle(1, 99, 3)
    assert read(counters) == [(11, {2: 1})]


def test_a_thread_that_says_something_else_of_itself_counts_once(target: Target, counters: LiveCounters) -> None:
    target.run(0, 10, 1)
    target.count(0, 2, 8)
    read(counters)
    counters.settle(0, 4711, 1)  # So it called itself in the end.
    assert counters.threads == []


def test_a_slot_whose_thread_changes_while_it_is_read_is_left_for_later(
    target: Target, counters: LiveCounters, monkeypatch: pytest.MonkeyPatch
) -> None:
    target.run(0, 10, 1)
    target.count(0, 2, 8)
    real = os.pread

    def pread(fd: int, n: int, at: int) -> bytes:
        data = real(fd, n, at)
        if at >= LAYOUT.counters_offset:
            target.run(0, 11, 2)
        return data

    monkeypatch.setattr(os, "pread", pread)
    assert read(counters) == []


def test_what_a_hostile_target_writes_is_bounded(target: Target, counters: LiveCounters) -> None:
    target.status["slots_used"], target.status["counters_used"] = (1 << 64) - 1, (1 << 64) - 1
    for tid in range(1, 40):
        target.run(3, tid, tid)
        target.count(3, 1, tid)
        assert read(counters)[-1] == (tid, {1: tid})
    assert len(counters.threads) <= 4
    assert field_offset("StatusPage", "slots_used") < LAYOUT.slots_offset
