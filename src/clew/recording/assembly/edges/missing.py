"""Executions for which no edge was found yet: what edges that may lead to several versions of code are shared out by.

Runs in the controller, after the target ended. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy.typing as npt

from clew.recording.assembly.blocks.blocks import Blocks

__all__ = ["Missing"]

Array = npt.NDArray[Any]


class Missing:
    """How many executions of each block no edge was found for yet, in one thread."""

    def __init__(self, missing: Array, blocks: Blocks) -> None:
        self._missing, self._blocks = missing, blocks
        # By address, the blocks there that may miss some, in reverse. What misses none is not asked again: every edge
        # to a place that had many versions would ask all of them.
        self._lacking: dict[int, list[int]] = {}

    def take(self, block: int, count: int) -> int:
        """Find edges for at most `count` executions of `block`; for how many."""
        part = max(min(count, int(self._missing[block])), 0)
        self._missing[block] -= part
        return part

    def iter_shares(self, pc: int, count: int) -> Iterator[tuple[int, int]]:
        """Blocks at `pc` and a part of `count` for each, by what it is missing; the last one gets what is left over."""
        if pc not in self._lacking:
            self._lacking[pc] = self._blocks.at(pc)[::-1].tolist()
        lacking = self._lacking[pc]
        while count and lacking:
            block = lacking[-1]
            part = self.take(block, count) if len(lacking) > 1 else count
            count -= part
            if part:
                yield block, part
            if count:
                lacking.pop()
