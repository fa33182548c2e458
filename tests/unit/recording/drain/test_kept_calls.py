"""What a thread left of the call that it was in when it was killed: read if it is that, whatever the slot says."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.process.shared_layout import SharedLayout
from clew.process.shared_memory import HeaderSettings, SharedFile, SharedMemory
from clew.protocol._generated import THREAD_SLOT, Mode, SlotState
from clew.recording.drain.slots import Slots

LAYOUT = SharedLayout(max_threads=2, ring_bytes=1024, counter_bytes=1 << 20)
NUMBERS = st.integers(0, 2**64 - 1) | st.sampled_from([64, 128, 1024, 1088, 960, 2**64 - 64])


class Thread:
    """That of slot 1; its ring has a row's number in all of its bytes."""

    def __init__(self) -> None:
        self.shared = SharedMemory(SharedFile.create(LAYOUT), HeaderSettings(mode=Mode.COUNTS))
        self.slots = Slots(self.shared)
        rows: npt.NDArray[np.void] = np.frombuffer(
            self.shared.map, THREAD_SLOT, LAYOUT.max_threads, LAYOUT.slots_offset
        )
        self.row = rows[1:2]
        ring = LAYOUT.rings_offset + LAYOUT.ring_bytes
        self.shared.map[ring : ring + LAYOUT.ring_bytes] = b"".join(bytes([n]) * 64 for n in range(16))

    def keep(self, head: int, at: int, size_bytes: int, state: int = SlotState.RUNNING) -> bytes:
        self.row["ring_head"], self.row["call_at"], self.row["call_bytes"] = head, at, size_bytes
        self.row["state"] = state
        return self.slots.read_kept_call(1)


@pytest.fixture(scope="module")
def thread() -> Iterator[Thread]:
    made = Thread()
    yield made
    made.row = np.zeros(1, THREAD_SLOT)
    made.slots.close()
    made.shared.close()


def test_what_lies_behind_the_head_is_read(thread: Thread) -> None:
    assert thread.keep(1024 * 7 + 128, 1024 * 7 + 128, 128) == bytes([2]) * 64 + bytes([3]) * 64
    # Around the ring's end.
    assert thread.keep(960, 960, 192) == b"".join(bytes([n]) * 64 for n in (15, 0, 1))


def test_what_was_written_over_is_not(thread: Thread) -> None:
    assert thread.keep(192, 128, 64) == b""
    assert thread.keep(128, 128, 0) == b""
    assert thread.keep(128, 128, 64, SlotState.ENDED) == b""


@given(head=NUMBERS, size_bytes=NUMBERS)
def test_whatever_a_slot_says_whole_records_are_read(thread: Thread, head: int, size_bytes: int) -> None:
    found = thread.keep(head, head, size_bytes)
    assert len(found) in (0, size_bytes)
    assert len(found) <= LAYOUT.ring_bytes and not len(found) % 64
