"""Functions that a compiler has cut in pieces: which pieces belong together.

A piece that is seldom executed lies elsewhere, and has a range of its own in the unwind table. Nothing calls it, and no
word points to it: it is jumped to from its function alone. A function that nothing but one other's last jump leads to
looks the same, and is left to the same caller.
"""

from __future__ import annotations

import bisect
from collections.abc import Collection, Sequence

from clew.probing.x86_64.function_code import FunctionCode
from clew.probing.x86_64.kinds import CALLS

__all__ = ["find_parts"]


def find_parts(
    functions: Sequence[FunctionCode], named: Collection[int], pointers: Collection[int]
) -> dict[int, tuple[FunctionCode, ...]]:
    """By the start of each function that has others: all pieces of it but the first. `functions` are sorted; where
    those begin that are `named`, and at what words point to (`pointers`), there are no pieces."""
    starts = [one.start for one in functions]
    owners: dict[int, set[int]] = {}
    whole = {index for index, one in enumerate(functions) if one.start in named or one.start in pointers}
    for index, code in enumerate(functions):
        calls = {target for source, target in code.outgoing if code.kinds[code.index_of[source]] in CALLS}
        for target in code.outside:
            at = bisect.bisect_right(starts, target) - 1
            if at < 0 or target >= functions[at].end:
                continue
            if target in calls:
                whole.add(at)
            else:
                owners.setdefault(at, set()).add(index)
    parts: dict[int, list[FunctionCode]] = {}
    for index in owners:
        owner = _find_owner(index, owners, whole)
        if owner != index:
            parts.setdefault(starts[owner], []).append(functions[index])
    return {start: tuple(found) for start, found in parts.items()}


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
