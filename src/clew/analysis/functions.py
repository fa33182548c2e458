"""Which function every block is part of.

Runs in the controller. By symbol; where a file has none, by its unwind table; else all code of an image is one.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from clew.analysis.arrays import Array, TraceArrays, find_rows, to_numpy

__all__ = ["FunctionTable"]

_NO_FUNCTION = np.iinfo(np.uint64).max


class FunctionTable:
    """Functions of a trace, one for each process, image and start in it.

    `of_block` has the function (an index) of each row of the blocks. By function: `image` is the row of its image, or
    -1; `offset` where it starts there, u64, the highest number where that is not known; `first_block` a row of it.
    """

    def __init__(self, arrays: TraceArrays) -> None:
        self._arrays = arrays
        image_ids = to_numpy(arrays.trace.images["image_id"])
        image = find_rows(image_ids, to_numpy(arrays.blocks["image_id"]))
        offset = to_numpy(arrays.blocks["function_offset"]).astype(np.uint64)
        offset = np.where(image >= 0, offset, _NO_FUNCTION)
        order = np.lexsort((offset, image, arrays.block_pid))
        starts = np.ones(len(order), bool)
        for column in (offset, image, arrays.block_pid):
            if len(order):
                starts[1:] &= column[order][1:] == column[order][:-1]
        starts[1:] = ~starts[1:]
        number = np.cumsum(starts) - 1
        self.of_block: Array = np.empty(len(order), np.int64)
        self.of_block[order] = number
        self.first_block: Array = order[starts]
        self.pid: Array = arrays.block_pid[self.first_block]
        self.image: Array = image[self.first_block]
        self.offset: Array = offset[self.first_block]

    def __len__(self) -> int:
        return len(self.first_block)

    def name(self, function: int) -> str:
        """How it is called, mangled as in the symbol table; `sub_` and its offset where it has no symbol."""
        symbol = self._arrays.blocks["symbol"][int(self.first_block[function])].as_py()
        if symbol is not None:
            return str(symbol)
        if self.image[function] < 0:
            return "(outside of images)"
        if self.offset[function] == _NO_FUNCTION:
            return "(no function known)"
        return f"sub_{int(self.offset[function]):x}"

    def image_path(self, function: int) -> str | None:
        """Path of its image; None outside of images."""
        row = int(self.image[function])
        return None if row < 0 else str(self._arrays.trace.images["path"][row].as_py())

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
        offset = to_numpy(arrays.blocks["offset"])
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
