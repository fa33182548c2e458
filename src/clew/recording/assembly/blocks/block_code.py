"""The code of basic blocks.

Runs in the controller, after the target ended. Pure. Once it is known where the code of each block lies among that of
the fragments, neither these nor the pieces that they were cut into are asked for any more.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass
from clew.recording.assembly.arrays.keys import gather, spans
from clew.recording.assembly.arrays.tallies import narrow
from clew.recording.assembly.blocks.blocks import CutBlocks
from clew.recording.assembly.records.records import Fragments

__all__ = ["BlockCode"]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class BlockCode:
    """`code`, u8, is that of all fragments. Block i has the parts `part_first[i]` up to `part_first[i + 1]` of it, each
    of so many bytes from `start` on.
    """

    code: Array
    part_first: Array
    start: Array
    size_bytes: Array

    @classmethod
    def find(cls, fragments: Fragments, cut: CutBlocks) -> BlockCode:
        """Where the code of the blocks of `cut` is."""
        parts, pieces = cut.parts, cut.code
        fragment, start_pc = pieces.fragment[parts], pieces.start_pc[parts]
        start = fragments.code_at[fragment] + (start_pc - fragments.app_pc[fragment]).astype(np.int64)
        return cls(fragments.code, cut.part_first, narrow(start), narrow(pieces.end_pc[parts] - start_pc))

    def gather(self, blocks: Array) -> tuple[Array, Array]:
        """The code of some blocks (indices), one after the other, u8; and where each one's begins and the last one's
        ends, i64.
        """
        n_parts = self.part_first[blocks + 1] - self.part_first[blocks]
        parts = spans(self.part_first[blocks], n_parts)
        size = self.size_bytes[parts].astype(np.int64)
        first_part = np.concatenate([[0], np.cumsum(n_parts)])
        return gather(self.code, self.start[parts], size), np.concatenate([[0], np.cumsum(size)])[first_part]
