"""What is taken of a call's stack: some registers, and bytes from the stack pointer on.

Runs in the controller. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from clew.dataclass import dataclass

__all__ = ["N_PIECES", "StackSample", "stack_sample"]

N_PIECES: Final = 5
"""Of the stack: the rest of a page and whole pages, each of which can be read as a whole, or not at all."""


@dataclass(frozen=True)
class StackSample:
    """The registers, None where that failed, and the bytes from the stack pointer on.

    `return_pc`: where a function goes back to; None of a system call.
    """

    stack_pointer: int | None
    frame_pointer: int | None
    return_pc: int | None
    data: bytes


def stack_sample(fields: Sequence[Any], is_function: bool) -> StackSample:
    """Out of what was captured (CallStacks.expressions), in its order."""
    data = b""
    for piece in fields[2 : 2 + N_PIECES]:
        if not isinstance(piece, bytes):
            break
        data += piece
    return StackSample(fields[0], fields[1], fields[2 + N_PIECES] if is_function else None, data)
