"""The tables for unwinding in shared memory: which one code has, and that nothing is written over that is read."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from clew.process.shared_layout import SharedLayout
from clew.process.shared_memory import HeaderSettings, SharedFile, SharedMemory
from clew.process.unwind_area import UnwindArea, UnwindCode
from clew.protocol._constants import MAX_UNWIND_IMAGES, UNWIND_BYTES, UNWIND_IMAGE_BYTES, Mode, UnwindKind
from clew.protocol.layout import field_offset

LAYOUT = SharedLayout(max_threads=2, counter_bytes=1 << 20, has_probes=True)
Entry = tuple[int, int, int, UnwindKind, bytes]


@pytest.fixture
def shared() -> Iterator[SharedMemory]:
    memory = SharedMemory(SharedFile.create(LAYOUT), HeaderSettings(mode=Mode.COUNTS))
    yield memory
    memory.close()


def state_of(shared: SharedMemory) -> int:
    at = LAYOUT.status_offset + field_offset("StatusPage", "unwind_state")
    return int.from_bytes(shared.map[at : at + 8], "little")


def entries_of(shared: SharedMemory, state: int, size: int = 8) -> list[Entry]:
    """What a directory has, and the first bytes of each table."""
    start = LAYOUT.unwind_offset + (state & 1) * MAX_UNWIND_IMAGES * UNWIND_IMAGE_BYTES
    found = []
    for number in range(state >> 1 & 0x7FFF):
        row = struct.unpack_from("<QQQII", shared.map, start + number * UNWIND_IMAGE_BYTES)
        at = LAYOUT.unwind_offset + row[4]
        content = shared.map[at : at + size] if row[3] == UnwindKind.TABLE else b""
        found.append((*row[:3], UnwindKind(row[3]), content))
    return found


def code(start: int, key: str | None, table: bytes | None) -> UnwindCode:
    return UnwindCode(start, start + 16, start - 4, key, table)


def test_each_code_has_its_table(shared: SharedMemory) -> None:
    area = UnwindArea(shared)
    codes = [code(300, "b", b"table b."), code(100, "a", b"table a."), code(200, None, b""), code(400, "c", None)]
    area.publish([*codes, code(500, "a", b"table a.")])
    assert entries_of(shared, state_of(shared)) == [
        (100, 116, 96, UnwindKind.TABLE, b"table a."),
        (200, 216, 196, UnwindKind.NOTHING, b""),
        (300, 316, 296, UnwindKind.TABLE, b"table b."),
        (400, 416, 396, UnwindKind.ASKS, b""),
        (500, 516, 496, UnwindKind.TABLE, b"table a."),
    ]
    rows = struct.unpack_from(
        "<" + "QQQII" * 5, shared.map, LAYOUT.unwind_offset + MAX_UNWIND_IMAGES * UNWIND_IMAGE_BYTES
    )
    assert rows[4] == rows[24] != rows[14], "the same table is there once"


def test_what_may_be_read_stays_while_the_next_directory_is_made(shared: SharedMemory) -> None:
    """A directory that was the one is whole until another one has come, with all that it leads to."""
    area = UnwindArea(shared)
    states: list[int] = []
    for turn in range(40):
        # One that stays, some that come and go, of several sizes.
        own = [code(100 * n, f"{turn // n}/{n}", f"{turn // n:4}/{n:3}".encode() * (5 * n + turn)) for n in range(1, 6)]
        before = entries_of(shared, states[-1]) if states else []
        area.publish(own)
        if states:
            assert entries_of(shared, states[-1]) == before
        states.append(state_of(shared))
        said = [(one[0], one[4]) for one in entries_of(shared, states[-1])]
        assert said == [(100 * n, f"{turn // n:4}/{n:3}".encode()) for n in range(1, 6)]
    assert len(set(states)) == len(states)


def test_where_there_is_no_room_the_controller_is_asked(shared: SharedMemory) -> None:
    area = UnwindArea(shared)
    large = bytes(UNWIND_BYTES // 2)
    area.publish([code(100, "a", large), code(200, "b", large), code(300, "c", b"table c.")])
    kinds = [one[3] for one in entries_of(shared, state_of(shared))]
    assert kinds == [UnwindKind.TABLE, UnwindKind.ASKS, UnwindKind.TABLE]
    assert area.n_refused == 1
    # What the last directory led to is not written over; behind the next one it may be.
    area.publish([code(200, "b", large)])
    assert [one[3] for one in entries_of(shared, state_of(shared))] == [UnwindKind.ASKS]
    area.publish([code(200, "b", large)])
    assert [one[3] for one in entries_of(shared, state_of(shared))] == [UnwindKind.TABLE]
    assert area.n_refused == 0


def test_what_does_not_fit_into_a_directory_is_code_without_files(shared: SharedMemory) -> None:
    area = UnwindArea(shared)
    others = [code(16 * n, None, b"") for n in range(1, MAX_UNWIND_IMAGES + 10)]
    area.publish([*others, code(1 << 30, "a", b"table a.")])
    entries = entries_of(shared, state_of(shared))
    assert len(entries) == MAX_UNWIND_IMAGES
    assert entries[-1][3:] == (UnwindKind.TABLE, b"table a.")
