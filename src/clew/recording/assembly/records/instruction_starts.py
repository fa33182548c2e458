"""Which bytes of code start an instruction, one bit each, and how many of them do in front of any byte.

Runs in the controller, after the target ended. Pure.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["InstructionStarts"]

Array = npt.NDArray[Any]

_ONES = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1).sum(axis=1, dtype=np.uint8)
"""How many bits are set in each byte."""


class InstructionStarts:
    """A string of bits: those of a byte count from the least significant one up.

    The number of set bits is kept for each byte of the string only, an eighth of what one for each bit would take.
    """

    def __init__(self, bits: Array) -> None:
        """`bits`, u8: eight bits each."""
        # One byte more: a place right behind the end may be asked for.
        self._bits = np.concatenate((bits, [np.uint8(0)]))
        self._before = np.zeros(len(self._bits), np.uint32)
        np.cumsum(_ONES[bits], out=self._before[1:], dtype=np.uint32)

    def count_before(self, at: Array) -> Array:
        """How many bits are set in front of the bits `at`, i64; shape (n,), i64."""
        byte = at >> 3
        below = ((1 << (at & 7)) - 1).astype(np.uint8)
        counted: Array = self._before[byte] + _ONES[self._bits[byte] & below].astype(np.int64)
        return counted

    def is_set(self, at: Array) -> Array:
        """Which of the bits `at`, i64, are set; shape (n,), bool."""
        found: Array = (self._bits[at >> 3] >> (at & 7).astype(np.uint8)) & 1 != 0
        return found
