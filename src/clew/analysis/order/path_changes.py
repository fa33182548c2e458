"""What a path changes of the code as it goes: which block an address holds, and which way branches are expected to go.

Pure, and on whole arrays: a just-in-time compiler makes as many changes as code.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.analysis.tables.arrays import spans

__all__ = ["Changes", "HeldCode", "find_turned"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Changes:
    """What events change, in their order: of which event (`row`, an index), what it does (`action`, of `Action`), to
    which block or slot (`subject`) and what that has from then on (`value`)."""

    row: Array
    action: Array
    subject: Array
    value: Array

    def __len__(self) -> int:
        return len(self.row)


class HeldCode:
    """What addresses hold once a path says that it executes a fragment's code.

    `later` are fragments (i64, rising), with start and end (u64) and version (u32) of their code; blocks are given by
    their addresses (u64, rising), versions (u32) and slots (i64), -1 where an address holds but one.
    """

    def __init__(self, later: tuple[Array, Array, Array, Array], pc: Array, version: Array, slot: Array) -> None:
        self._fragment, self._start, self._end, self._version = later
        self._pc = pc[np.flatnonzero(np.append(True, pc[1:] != pc[:-1]))] if len(pc) else pc
        has_slot = np.flatnonzero(slot >= 0)
        # One number for version and address: those of one version lie together.
        key = self._key(version[has_slot], np.searchsorted(self._pc, pc[has_slot]))
        order = np.argsort(key, kind="stable")
        self._keys, self._block, self._slot = key[order], has_slot[order], slot[has_slot][order]

    def _key(self, version: Array, place: Array) -> Array:
        key: Array = version.astype(np.int64) * (len(self._pc) + 1) + place
        return key

    def find(self, fragment_id: Array) -> tuple[Array, Array, Array]:
        """For each of `fragment_id` (i64), in their order: its index, a slot, and the block that this holds then."""
        at = np.searchsorted(self._fragment, fragment_id)
        known = np.flatnonzero(at < len(self._fragment))
        known = known[self._fragment[at[known]] == fragment_id[known]]
        at = at[known]
        version = self._version[at]
        low, high = (
            np.searchsorted(self._keys, self._key(version, np.searchsorted(self._pc, bound[at])))
            for bound in (self._start, self._end)
        )
        length = np.maximum(high - low, 0)
        held = spans(low, length)
        return np.repeat(known, length), self._slot[held], self._block[held]


def find_turned(branches: tuple[Array, Array], address: Array, is_taken: Array) -> tuple[Array, Array, Array]:
    """For each of `address` (u64), in their order: its index, a block that ends there, and whether that is expected to
    be taken from then on, if it was as `is_taken` (by block) says.

    `branches` are addresses of last instructions, rising, and the blocks that they are of.
    """
    branch_pc, block = branches
    low = np.searchsorted(branch_pc, address)
    n = np.searchsorted(branch_pc, address, "right") - low
    row, turned = np.repeat(np.arange(len(address)), n), block[spans(low, n)]
    # How often each was turned up to here.
    order = np.argsort(turned, kind="stable")
    ordered = turned[order]
    first = np.flatnonzero(np.append(True, ordered[1:] != ordered[:-1])) if len(ordered) else order
    times = np.zeros(len(turned), np.int64)
    times[order] = np.arange(len(ordered)) - np.repeat(first, np.diff(np.append(first, len(ordered)))) + 1
    return row, turned, is_taken[turned] ^ (times & 1).astype(np.uint8)
