"""Functions in the order in which they were discovered: their blocks, where they are entered, who called them first.

Runs in the controller. Pure: knows blocks and edges of one process as arrays, of a trace or of what runs.
"""

from __future__ import annotations

import numpy as np

from clew.analysis.tables.arrays import Array

__all__ = ["Discovery"]


class Discovery:
    """Functions, numbered in the order in which they were discovered.

    `of_block` is a number of each block's function in any order, `n_functions` their number; by block `app_pc` is its
    address, `version` that of its code, and `first` when it was first executed, by whatever clock.

    By block: `function`. By function: `number`, what `of_block` has for it, and `discovered`, when the first of its
    blocks was executed. `order` has the blocks function by function and by place within one; those of function f are
    the ones from `first_block[f]` up to `first_block[f + 1]` there.
    """

    def __init__(self, of_block: Array, n_functions: int, app_pc: Array, version: Array, first: Array) -> None:
        discovered = np.full(n_functions, np.iinfo(first.dtype).max, first.dtype)
        np.minimum.at(discovered, of_block, first)
        self.number: Array = np.lexsort((np.arange(n_functions), discovered))
        rank = np.empty(n_functions, np.int64)
        rank[self.number] = np.arange(n_functions)
        self.discovered: Array = discovered[self.number]
        self.function: Array = rank[of_block]
        self.order: Array = np.lexsort((version, app_pc, self.function))
        self.first_block: Array = np.searchsorted(self.function[self.order], np.arange(n_functions + 1))
        self._app_pc, self._first = app_pc, first

    def find_entries(self, start: Array, is_known: Array) -> Array:
        """By function the block at which it is entered: that at its address `start`, of several versions the first.

        Where there is none, or the start `is_known` not to be, the one with the lowest address.
        """
        entry: Array = self.order[self.first_block[:-1]]
        function = self.function[self.order]
        is_at = (self._app_pc[self.order] == start[function]) & is_known[function]
        at = np.flatnonzero(is_at)[::-1]
        entry[function[at]] = self.order[at]
        return entry

    def find_callers(self, source: Array, target: Array, is_across: Array, is_call: Array) -> tuple[Array, Array]:
        """By function its first caller, -1 where nobody is known, and how many calls deep that was.

        By edge: the blocks it leads from and to, -1 for none; whether it may lead from one function to another other
        than by returning, and whether it is a call.
        """
        edge = np.flatnonzero((source >= 0) & (target >= 0) & is_across)
        source, target, is_call = source[edge], target[edge], is_call[edge]
        source_first, target_first = self._first[source], self._first[target]
        source, target = self.function[source], self.function[target]
        # What was discovered with the function, from what was known by then.
        keep = (target_first == self.discovered[target]) & (source < target) & (source_first <= target_first)
        edge = np.flatnonzero(keep)
        # Of several the call made by the code that was discovered last.
        edge = edge[np.lexsort((edge, source_first[edge]))]
        n_functions = len(self.discovered)
        caller, by_call = np.full(n_functions, -1), np.zeros(n_functions, bool)
        caller[target[edge]] = source[edge]
        by_call[target[edge]] = is_call[edge]
        depth = np.zeros(n_functions, np.int64)
        for function, (called_by, adds) in enumerate(zip(caller.tolist(), by_call.tolist(), strict=True)):
            if called_by >= 0:
                depth[function] = depth[called_by] + adds
        return caller, depth
