"""Whether a thread is in made code, or will come back there: where it stands, and what its stack says.

Runs in the controller.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

import numpy as np
import numpy.typing as npt

from clew.address import Tid
from clew.binary.architectures.architecture import FrameShape
from clew.process.maps import read_maps
from clew.process.processors.chosen import processor_of
from clew.process.processors.processor import Registers

__all__ = ["Spans", "find_frames", "is_in"]

_MAX_STACK_BYTES: Final = 8 << 20
_MAX_FRAME_BYTES: Final = 1 << 16
"""What the kernel puts on a stack for a handler, vector registers among it."""

Spans = Sequence[tuple[int, int]]


def find_frames(tid: Tid, registers: Registers, spans: Spans) -> list[int]:
    """The addresses in these spans to which handlers of signals will return that a thread is in: what is on the
    thread's stack is looked through for what the kernel puts there. Any number may be such an address, and what lies
    behind a stack, as the heap does where programs have their stacks in it, has frames of handlers that are over."""
    shape = processor_of(tid).architecture.frame
    if shape is None:
        return []
    pointer = registers.stack_pointer
    start = pointer & -8
    end = next((one.end for one in read_maps(tid) if one.start <= start < one.end), start)  # type: ignore[arg-type]
    try:
        with open(f"/proc/{tid}/mem", "rb", buffering=0) as file:
            data = os.pread(file.fileno(), min(end - start, _MAX_STACK_BYTES), start)
    except OSError:
        return []
    words = np.frombuffer(data[: len(data) // 8 * 8], np.uint64)
    is_led = np.zeros(len(words), bool)
    for first, behind in spans:
        is_led |= (words >= first) & (words < behind)
    found = np.flatnonzero(is_led).tolist()
    return [int(words[index]) for index in found if _is_frame(words, index, start, pointer, shape)]


def _is_frame(words: npt.NDArray[np.uint64], index: int, start: int, pointer: int, shape: FrameShape) -> bool:
    """Whether a word of a stack is what the handler returns to that the thread is in, whose stack pointer is `pointer`:
    it runs on the stack that it interrupted, or on one for signals, of which the frame says where that is."""

    def word(offset: int) -> int:
        return int(words[index + offset]) if 0 <= index + offset < len(words) else 0

    if any(word(offset) & mask != value for offset, mask, value in shape.marks):
        return False
    if 0 < word(shape.stack_pointer) - (start + 8 * index) < _MAX_FRAME_BYTES:
        return True
    return 0 <= pointer - word(shape.stack_start) < word(shape.stack_bytes)


def is_in(address: int, spans: Spans) -> bool:
    """Whether an address is in one of these."""
    return any(start <= address < end for start, end in spans)
