"""Who was the first to call each function, and how many calls deep that was.

Runs in the controller. Pure: knows edges between functions, told by their numbers in the order of discovery.
"""

from __future__ import annotations

import numpy as np

from clew.analysis.tables.arrays import Array

__all__ = ["find_callers"]


def find_callers(
    source: Array, target: Array, is_call: Array, source_first: Array, target_first: Array, discovered: Array
) -> tuple[Array, Array]:
    """By function its first caller, -1 where nobody is known, and its depth.

    By edge: the functions it leads from and to, whether it is a call, and when the two blocks were first executed.
    `discovered` is when each function was.
    """
    n_functions = len(discovered)
    # What was discovered with the function, from what was known by then.
    keep = (target_first == discovered[target]) & (source < target) & (source_first <= target_first)
    edge = np.flatnonzero(keep)
    # Of several the call made by the code that was discovered last.
    edge = edge[np.lexsort((edge, source_first[edge]))]
    caller, by_call = np.full(n_functions, -1), np.zeros(n_functions, bool)
    caller[target[edge]] = source[edge]
    by_call[target[edge]] = is_call[edge]
    depth = np.zeros(n_functions, np.int64)
    for function, (called_by, adds) in enumerate(zip(caller.tolist(), by_call.tolist(), strict=True)):
        if called_by >= 0:
            depth[function] = depth[called_by] + adds
    return caller, depth
