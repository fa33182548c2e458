"""Functions that a compiler has cut in pieces: which pieces belong together.

A piece that is seldom executed lies elsewhere, and has a range of its own in the unwind table. Nothing calls it, and no
word points to it: it is jumped to from its function alone. A function that nothing but one other's last jump leads to
looks the same, and is left to the same caller.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np

from clew.probing.x86_64.functions import Functions, Leads

__all__ = ["find_parts"]


def find_parts(
    functions: Functions, led: Leads, named: Collection[int], pointers: Collection[int]
) -> dict[int, list[int]]:
    """By the number of each function that has others: those of all pieces of it but the first. `led` is what leads from
    one to another; where those begin that are `named`, and at what words point to (`pointers`), there are no pieces."""
    starts = functions.starts
    if not len(starts):
        return {}
    at = np.searchsorted(starts, led.targets, "right") - 1
    is_inside = (at >= 0) & (led.targets < functions.ends[at])
    whole = set(at[is_inside & led.calls].tolist())
    whole |= {number for number, start in enumerate(starts.tolist()) if start in named or start in pointers}
    owners: dict[int, set[int]] = {}
    rows = is_inside & ~led.calls
    for piece, number in zip(at[rows].tolist(), led.functions[rows].tolist(), strict=True):
        if piece not in whole:
            owners.setdefault(piece, set()).add(number)
    parts: dict[int, list[int]] = {}
    for number in owners:
        owner = _find_owner(number, owners, whole)
        if owner != number:
            parts.setdefault(owner, []).append(number)
    return parts


def _find_owner(index: int, owners: dict[int, set[int]], whole: Collection[int]) -> int:
    """The function that a piece belongs to in the end; itself if it is none."""
    seen = {index}
    while index not in whole:
        found = owners.get(index, set()) - seen
        if len(found) != 1 or owners[index] - found - seen:
            break
        (index,) = found
        seen.add(index)
    return index
