"""Which function every block is part of.

Runs in the controller. By symbol; where a file has none, by its unwind table; else all code of an image is one.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.analysis.tables.arrays import Array, TraceArrays

__all__ = ["COLUMNS", "NO_OFFSET", "FunctionTable", "group_blocks", "name_function"]

COLUMNS: Final = ("block_id", "pid", "image_id", "offset", "function_offset", "n_instructions")
"""Columns of the blocks that tell of functions."""

NO_OFFSET: Final = np.iinfo(np.uint64).max
"""Where a function starts, if that is not known."""


class FunctionTable:
    """Functions of a trace, one for each process, image and start in it.

    `of_block` has the function (an index) of each row of the blocks. By function: `image` is the row of its image, or
    -1; `offset` where it starts there, u64, NO_OFFSET where that is not known; `first_block` a row of it.
    """

    def __init__(self, arrays: TraceArrays) -> None:
        self._arrays = arrays
        arrays.load("blocks", *COLUMNS)
        image, pid = arrays.block_image, arrays.block_pid
        offset = arrays.numbers("blocks", "function_offset").astype(np.uint64)
        offset = np.where(image >= 0, offset, NO_OFFSET)
        self.of_block, self.first_block = group_blocks(pid, image, offset)
        self.pid: Array = pid[self.first_block]
        self.image: Array = image[self.first_block]
        self.offset: Array = offset[self.first_block]

    def __len__(self) -> int:
        return len(self.first_block)

    def add_up(self, by_block: npt.NDArray[Any]) -> Array:
        """Sums of a number of each block, by function."""
        total = np.zeros(len(self), np.int64)
        np.add.at(total, self.of_block, by_block)
        return total

    def count_entries(self) -> Array:
        """How often control came to where each function starts from another one: calls, and jumps as stubs make."""
        arrays = self._arrays
        comes = arrays.is_kind("call", "indirect_call", "jump", "indirect_jump", "taken", "signal", "fault", "start")
        comes &= arrays.edge_target >= 0
        target, source = arrays.edge_target, arrays.edge_source
        offset = arrays.numbers("blocks", "offset")
        at_start = offset == self.offset[self.of_block]
        comes[comes] = at_start[target[comes]]
        from_inside = np.zeros(len(comes), bool)
        known = comes & (source >= 0)
        from_inside[known] = self.of_block[source[known]] == self.of_block[target[known]]
        # A call from inside is recursion, a jump from inside a loop.
        comes &= ~from_inside | arrays.is_kind("call", "indirect_call")
        entries = np.zeros(len(self), np.int64)
        np.add.at(entries, self.of_block[target[comes]], arrays.edge_executions[comes])
        return entries

    def count_calls(self) -> tuple[Array, Array]:
        """How often each function was called, and how often a call of it returned."""
        arrays = self._arrays
        calls, returns = np.zeros(len(self), np.int64), np.zeros(len(self), np.int64)
        called = arrays.is_kind("call", "indirect_call") & (arrays.edge_target >= 0)
        np.add.at(calls, self.of_block[arrays.edge_target[called]], arrays.edge_executions[called])
        returned = arrays.is_kind("return") & (arrays.callee >= 0)
        np.add.at(returns, self.of_block[arrays.callee[returned]], arrays.edge_executions[returned])
        return calls, returns


def group_blocks(*columns: Array) -> tuple[Array, Array]:
    """Blocks of one function are those that are equal in all `columns`, of which the first matters most.

    By block its function, functions sorted by the columns; by function one of its blocks, the first in their order.
    """
    order = np.lexsort(columns[::-1])
    starts = np.zeros(len(order), bool)
    starts[:1] = True
    for column in columns:
        in_order = column[order]
        starts[1:] |= in_order[1:] != in_order[:-1]
    of_block: Array = np.empty(len(order), np.int64)
    of_block[order] = np.cumsum(starts) - 1
    return of_block, order[starts]


def name_function(symbol: str | None, image: str | None, offset: int) -> str:
    """How a function is called: as in the symbol table, mangled; `sub_` and its offset where it has none.

    An empty symbol is none. `image` is the path of its image, None outside of images; `offset` where it starts there,
    or NO_OFFSET.
    """
    if symbol:
        return symbol
    if image is None:
        return "(outside of images)"
    return "(no function known)" if offset == NO_OFFSET else f"sub_{offset:x}"
