"""Backtraces out of what threads have taken: whole ones, ones whose rest is found here, and what is none."""

from __future__ import annotations

import random
import struct

import pyarrow as pa

from clew.process.processors.chosen import native_processor
from clew.protocol._constants import BacktraceEnd
from clew.sessions.probes.backtraces import StackPieces, read_backtraces

NAMES = native_processor().definition.held_registers[:17]
POINTER = native_processor().definition.stack_pointer
FRAMES = [0x1000, 0x2000, 0x3000]


def packed(
    end: BacktraceEnd, frames: list[int], rest: bytes = b"", *, is_place: int = 0, has_pointer: int = 1
) -> bytes:
    head = struct.pack("<BBBBI", end, is_place, has_pointer, 0, len(frames))
    return head + struct.pack(f"<{len(frames)}Q", *frames) + rest


def rest(last_stack: int, first: bytes, last: bytes) -> bytes:
    registers = [0x7000 if name == POINTER else 0x100 + number for number, name in enumerate(NAMES)]
    words = struct.pack("<QQ17Q", last_stack, 0x7777, *registers)
    return words + struct.pack("<II", len(first), len(last)) + first + last


class Unwinder:
    """Notes what it is asked, and answers."""

    def __init__(self, further: list[int], whole: list[int]) -> None:
        self.answers = [further, whole]
        self.asked: list[tuple[int, dict[str, int], StackPieces, bool]] = []

    def __call__(self, pid: int, registers: dict[str, int], pieces: StackPieces, is_place: bool) -> list[int]:
        self.asked.append((pid, registers, pieces, is_place))
        return self.answers[len(self.asked) - 1]


def read(data: bytes | None, unwind: Unwinder, most: int = 16) -> list[int]:
    column = read_backtraces(pa.array([None, data], pa.binary()), most, NAMES, 9, unwind)
    assert column.type == pa.list_(pa.uint64()) and column[0].as_py() == []
    found: list[int] = column[1].as_py()
    return found


def test_whole_ones_are_taken_as_they_are() -> None:
    unwind = Unwinder([], [])
    for end in (BacktraceEnd.OUTERMOST, BacktraceEnd.FULL):
        assert read(packed(end, FRAMES), unwind) == FRAMES
    assert read(packed(BacktraceEnd.FULL, FRAMES), unwind, 2) == FRAMES[:2]
    assert not unwind.asked


def test_the_longer_one_is_the_one() -> None:
    data = packed(BacktraceEnd.ASKS, FRAMES, rest(0x9000, b"first", b"last!!"), is_place=1)
    for further, whole, wanted in [
        ([0x3000, 0x4000], [0x1000], [*FRAMES, 0x4000]),
        ([0x3000], [*FRAMES, 5, 6], [*FRAMES, 5, 6]),
        ([0x3000, 4, 5, 6], FRAMES, [*FRAMES, 4, 5]),
    ]:
        unwind = Unwinder(further, whole)
        assert read(data, unwind, 5) == wanted
        (pid, last, pieces, is_place), (_, own, _, of_thread) = unwind.asked
        assert (pid, is_place, of_thread) == (9, True, True)
        assert sorted(last.values()) == [0x3000, 0x7777, 0x9000]
        assert set(own) == set(NAMES) and own[POINTER] == 0x7000
        assert list(pieces) == [(0x7000, b"first"), (0x9000, b"last!!")]
    unwind = Unwinder([0x3000], FRAMES)
    read(packed(BacktraceEnd.ASKS, FRAMES, rest(0x9000, b"", b""), has_pointer=0), unwind)
    assert sorted(unwind.asked[0][1].values()) == [0x3000, 0x9000]
    assert not unwind.asked[0][3]


def test_what_was_made_up_harms_nobody() -> None:
    chosen = random.Random(7)
    whole = packed(BacktraceEnd.ASKS, FRAMES, rest(0x9000, b"first", b"last!!"))
    n_asked = 0
    for _ in range(3000):
        data = bytearray(whole[: chosen.choice([len(whole), chosen.randrange(len(whole))])])
        for _ in range(chosen.randrange(4)):
            if data:
                data[chosen.randrange(min(len(data), 60))] = chosen.randrange(256)
        unwind = Unwinder([1, 2], [3])
        assert len(read(bytes(data), unwind, 5)) <= 5
        n_asked += bool(unwind.asked)
    assert 100 < n_asked < 2900
