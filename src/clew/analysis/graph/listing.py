"""The blocks of a process in the order of their addresses, and what stands between them: gaps, heads of functions.

Pure. A listing numbers blocks by their places in it; a place's block is an index of the graph.
"""

from __future__ import annotations

import numpy as np

from clew.analysis.code.functions import NO_OFFSET
from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.tables.arrays import Array

__all__ = ["LABEL", "NEW_FUNCTION", "NEW_IMAGE", "Listing"]

NEW_IMAGE, NEW_FUNCTION, LABEL = 1, 2, 4
"""Bits of a place's flags: an image's code begins there, or a function's; a branch leads there."""


class Listing:
    """The listing of a process' blocks, by image and address.

    By place: `block`, its index in the graph; `flags`; `gap_bytes` (u64), bytes in front of it that were not executed,
    0 in front of an image's first block; `n_rows`, how many instructions it has, 1 at least.
    """

    def __init__(self, graph: ProcessGraph) -> None:
        image = graph.image[graph.function]
        # Images by their lowest addresses; what lies outside of all of them among them, by its own.
        lowest = np.full(len(graph.images) + 1, np.iinfo(np.uint64).max, np.uint64)
        np.minimum.at(lowest, image, graph.app_pc)
        key = np.where(image >= 0, lowest[image], graph.app_pc)
        self.block: Array = np.lexsort((graph.code_version, graph.app_pc, image, key))
        pc, size = graph.app_pc[self.block], graph.size_bytes[self.block].astype(np.uint64)
        function, image = graph.function[self.block], image[self.block]
        n = len(self.block)
        is_new_image, is_new_function = np.ones(n, bool), np.ones(n, bool)
        is_new_image[1:] = image[1:] != image[:-1]
        is_new_function[1:] = is_new_image[1:] | (function[1:] != function[:-1])
        end = np.maximum.accumulate(pc + size) if n else pc
        self.gap_bytes: Array = np.zeros(n, np.uint64)
        follows = np.flatnonzero(~is_new_image)
        self.gap_bytes[follows] = np.where(pc[follows] > end[follows - 1], pc[follows] - end[follows - 1], 0)
        flags = np.where(is_new_image, NEW_IMAGE, 0) | np.where(is_new_function, NEW_FUNCTION, 0)
        self.flags: Array = flags | np.where(self._find_labels(graph)[self.block], LABEL, 0)
        self.n_rows: Array = np.maximum(graph.n_instructions[self.block], 1)

    def __len__(self) -> int:
        return len(self.block)

    @staticmethod
    def _find_labels(graph: ProcessGraph) -> Array:
        """By block whether a branch leads there, other than a call or a jump to where its function starts."""
        is_label = np.zeros(graph.n_blocks, bool)
        is_branch = graph.arrays.is_kind("jump", "taken", "indirect_jump") & (graph.target >= 0)
        is_label[graph.target[is_branch]] = True
        is_start = graph.entry_block[graph.function] == np.arange(graph.n_blocks)
        found: Array = is_label & ~(is_start & (graph.offset[graph.function] != NO_OFFSET))
        return found
