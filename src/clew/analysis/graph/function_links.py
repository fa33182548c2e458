"""Edges between functions, and which edges enter them: of the graph of a process, and of two that are compared.

Pure. Edges are arrays of blocks' indices, -1 for none; what their kinds are called is not known here.
"""

from __future__ import annotations

import numpy as np

from clew.store.columns import Array

__all__ = ["find_entering", "link_functions"]


def link_functions(
    source: Array, target: Array, function: Array, n_functions: int, *, is_call: Array, is_return: Array
) -> tuple[Array, Array, Array, Array]:
    """Edges between functions: `source`, `target`, `is_call`, and by edge which of these it is, or -1.

    `function` is that of each block. Returns are not among them: they lead from a call to behind it, within the
    function that called.
    """
    from_function, to_function = function[source], function[target]
    across = (source >= 0) & (target >= 0) & ~is_return & ((from_function != to_function) | is_call)
    edge = np.flatnonzero(across)
    key = (from_function[edge] * n_functions + to_function[edge]) * 2 + is_call[edge]
    keys, which = np.unique(key, return_inverse=True)
    of_edge = np.full(len(source), -1)
    of_edge[edge] = which
    pair = keys // 2
    return pair // max(n_functions, 1), pair % max(n_functions, 1), (keys % 2).astype(bool), of_edge


def find_entering(
    source: Array, target: Array, function: Array, entry_block: Array, *, comes: Array, is_call: Array
) -> Array:
    """Which edges come to a function's start from another one, or by a call from itself; `comes` are those of kinds
    that may."""
    enters = comes & (target >= 0)
    enters[enters] = entry_block[function[target[enters]]] == target[enters]
    inside = (source >= 0) & (function[source] == function[target])
    found: Array = enters & (~inside | is_call)
    return found
