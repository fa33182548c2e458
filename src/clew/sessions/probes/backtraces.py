"""Backtraces of events, out of what threads have taken of their stacks.

Runs in the controller. A thread unwinds its own stack (`unwinding` in the runtime). Where it comes to code whose rules
it has not, its registers and pieces of its stack are there, and the rest is found here. What the target wrote is not
believed.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
import pyarrow as pa

from clew.process.processors.chosen import native_processor
from clew.protocol._constants import BacktraceEnd

__all__ = ["StackPieces", "UnwindRow", "complete_backtrace", "read_backtraces"]

StackPieces = Sequence[tuple[int, bytes]]
"""Memory that is known: from which address on, and the bytes."""

UnwindRow = Callable[[int, dict[str, int], StackPieces, bool], list[int]]
"""Addresses from the innermost call on: of a process' thread with these registers, which is there (true), or goes on
there behind a call (false)."""

_HEAD: Final = struct.Struct("<BBBBI")
"""BacktraceHead."""
_WORD_BYTES: Final = 8


def read_backtraces(column: pa.Array, most: int, registers: Sequence[str], pid: int, unwind: UnwindRow) -> pa.Array:
    """Lists of addresses, `most` at most, of what was captured; `registers` are named as they were taken."""
    rows = []
    for data in column.to_pylist():
        frames, is_asked = _read_frames(data, most)
        if is_asked:
            frames = complete_backtrace(data, most, registers, pid, unwind)
        rows.append(frames)
    values = np.array([one for frames in rows for one in frames], np.uint64)
    offsets = np.cumsum([0, *map(len, rows)], dtype=np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values, pa.uint64()))


def complete_backtrace(data: bytes, most: int, registers: Sequence[str], pid: int, unwind: UnwindRow) -> list[int]:
    """The addresses of a backtrace of which the thread did not know all."""
    frames, _ = _read_frames(data, most)
    _, is_place, has_frame_pointer, _, _ = _HEAD.unpack_from(data)
    at = _HEAD.size + _WORD_BYTES * len(frames)
    try:
        stack_pointer, frame_pointer = struct.unpack_from("<QQ", data, at)
        words = struct.unpack_from(f"<{len(registers)}Q", data, at + 2 * _WORD_BYTES)
        at += _WORD_BYTES * (2 + len(registers))
        n_first, n_last = struct.unpack_from("<II", data, at)
    except struct.error:
        return frames
    at += 8
    own = dict(zip(registers, words, strict=True))
    processor = native_processor()
    definition = processor.definition
    pieces = [
        (own[definition.stack_pointer], data[at : at + n_first]),
        (stack_pointer, data[at + n_first : at + n_first + n_last]),
    ]
    last = {definition.program_counter: frames[-1], definition.stack_pointer: stack_pointer}
    if has_frame_pointer:
        last[processor.architecture.frame_pointer] = frame_pointer
    further = frames[:-1] + unwind(pid, last, pieces, bool(is_place))
    # With all of its registers known, and nothing of what lies deeper.
    whole = unwind(pid, own, pieces, True)
    return max(further, whole, key=len)[:most]


def _read_frames(data: bytes | None, most: int) -> tuple[list[int], bool]:
    """The frames' addresses, and whether the rest is to be found here."""
    if data is None or len(data) < _HEAD.size:
        return [], False
    end, _, _, _, n_frames = _HEAD.unpack_from(data)
    n_there = min(n_frames, most, len(data) // _WORD_BYTES - 1)
    frames = [*struct.unpack_from(f"<{n_there}Q", data, _HEAD.size)]
    return frames, end == BacktraceEnd.ASKS and n_there == n_frames > 0
