"""Names of instructions: address and version of the code in one number.

Runs in the controller. Pure.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from clew.protocol._constants import ARCHITECTURES

__all__ = [
    "VSYSCALL_END",
    "VSYSCALL_START",
    "KeySpace",
    "gather",
    "is_kernel_call",
    "is_vsyscall",
    "sorted_unique",
    "spans",
]

Array = npt.NDArray[Any]

_GATHERED_AT_ONCE = 1 << 17
"""Elements whose indices are in memory at a time."""

_PAGE_BYTES = ARCHITECTURES["x86_64"].page_bytes
VSYSCALL_START = 0xFFFFFFFFFF600000
VSYSCALL_END = VSYSCALL_START + _PAGE_BYTES
"""The page of old system calls that the kernel runs by itself, at an address of its own."""


def is_vsyscall(pc: Array) -> Array:
    """Whether a call of `pc` is one of the old system calls; any other address of their page faults."""
    entries: Array = np.isin(pc, np.uint64(VSYSCALL_START) + np.array([0, 0x400, 0x800], np.uint64))
    return entries


def is_kernel_call(pc: Array) -> Array:
    """Whether the kernel executes what a program calls at `pc` by itself, and returns."""
    return is_vsyscall(pc)


class KeySpace:
    """Keys of instructions: u64, the address below, the code's version above.

    The vsyscall page lies far above user space; in keys it takes the place of the last page below a power of two, where
    nothing can be mapped. Programs that branch to that page itself, or have `NOWHERE_PC` as a target, have larger keys.
    """

    def __init__(self, highest_pc: int) -> None:
        """Room for every address up to `highest_pc`, which is under 2^57, and for `max_versions` versions."""
        pc_bits = next((bits for bits in range(47, 57) if highest_pc < (1 << bits) - _PAGE_BYTES), 57)
        self.max_versions = 1 << (64 - pc_bits)
        self._pc_bits, self._pc_mask = np.uint64(pc_bits), np.uint64((1 << pc_bits) - 1)
        self._vsyscall_place = np.uint64((1 << pc_bits) - VSYSCALL_END + VSYSCALL_START)

    def key(self, version: Array, pc: Array) -> Array:
        """Keys of the instructions at `pc`, in code of version `version`."""
        low = np.where(pc < np.uint64(VSYSCALL_START), pc, pc - np.uint64(VSYSCALL_START) + self._vsyscall_place)
        keys: Array = (version.astype(np.uint64) << self._pc_bits) | (low & self._pc_mask)
        return keys

    def pc(self, key: Array) -> Array:
        """Addresses of `key`."""
        low = key & self._pc_mask
        high = low - self._vsyscall_place + np.uint64(VSYSCALL_START)
        addresses: Array = np.where(low < self._vsyscall_place, low, high)
        return addresses

    def version(self, key: Array) -> Array:
        """Versions of `key`, i64."""
        versions: Array = (key >> self._pc_bits).astype(np.int64)
        return versions


def spans(start: Array, length: Array) -> Array:
    """Indices start[0], start[0] + 1, ..., start[1], ...: `length[i]` of them from each `start[i]`; i64."""
    some = length > 0
    if not some.all():
        start, length = start[some], length[some]
    if not len(start):
        return np.zeros(0, np.int64)
    ends = np.cumsum(length)
    # Steps from each index to the next, added up in place: one array of this size instead of three.
    steps = np.ones(int(ends[-1]), np.int64)
    steps[0] = start[0]
    steps[ends[:-1]] = start[1:] - start[:-1] - length[:-1] + 1
    indices: Array = np.cumsum(steps, out=steps)
    return indices


def gather(data: Array, start: Array, length: Array) -> Array:
    """The elements of `data` at `spans(start, length)`, shape (n,).

    Piece by piece: the indices of all of them would be eight times as long as bytes are.
    """
    ends = np.cumsum(length)
    gathered = np.empty(int(ends[-1]) if len(ends) else 0, data.dtype)
    first = done = 0
    while first < len(ends):
        last = max(int(np.searchsorted(ends, done + _GATHERED_AT_ONCE, "right")), first + 1)
        inside = slice(first, last)
        end = int(ends[last - 1])
        gathered[done:end] = data[spans(start[inside], length[inside])]
        first, done = last, end
    return gathered


def sorted_unique(*values: Array) -> Array:
    """The different ones of `values`, sorted.

    Sorting beats the hashing of np.unique on what is nearly sorted; and np.unique imports numpy.ma, for 10 ms.
    """
    together = np.sort(np.concatenate(values), kind="stable")
    if not len(together):
        return together
    different = np.ones(len(together), bool)
    different[1:] = together[1:] != together[:-1]
    unique: Array = together[different]
    return unique
