"""Probes where no jump fits: int3, which threads come to unless the branches that they take are led elsewhere."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clew.probing.x86_64.jump_bytes import JUMP_SIZE
from clew.probing.x86_64.kinds import CALLS, ENDS, FIRST_FIXED
from clew.probing.x86_64.plans import Displaced, SitePlan, Technique
from clew.probing.x86_64.windows import Surroundings, run_of

__all__ = ["plan_branches", "plan_trap"]

MAX_BRANCHES: Final = 16
"""More of them are not changed for one probe."""
MAX_RUN: Final = 16
"""Nor are more instructions copied for one."""


def plan_trap(around: Surroundings, address: int, index: int, reason: str) -> SitePlan:
    """A probe by int3 at instruction `index`; `reason` says why not by a jump."""
    at, run, sizes = run_of(around.code, index, index + 1)
    why = reason or "no trampoline can be where a jump could lead"
    return SitePlan(address, at, Technique.TRAP, why, at, run, sizes, 0, run[:1], None)


def plan_branches(around: Surroundings, address: int, index: int, reason: str) -> Iterator[SitePlan]:
    """A probe at instruction `index` if nothing is known to come to it but by direct branches or calls whose distance
    has four bytes, to it or to what is executed right in front of it."""
    code = around.code
    first = index
    while not around.is_target(code.starts[first]) and first > 0 and code.kinds[first - 1] not in ENDS | CALLS:
        first -= 1
    start = code.starts[first]
    if (first > 0 and code.kinds[first - 1] not in ENDS) or (start in around.entries and start not in around.branches):
        return
    if index - first >= MAX_RUN or any(code.kinds[at] >= FIRST_FIXED for at in range(first, index)):
        return
    if around.find_forbidden(start, code.starts[index + 1]):
        return
    if code.unknown_jumps or any(start in targets for targets in code.tables.values()):
        return
    sources = [code.index_of[source] for source in code.branches.get(start, ())]
    inside = [Displaced(code.starts[at], code.bytes_of(at)) for at in sources]
    branches = (*inside, *around.branches.get(start, ()))
    if not 0 < len(branches) <= MAX_BRANCHES or any(len(branch.code) < JUMP_SIZE for branch in branches):
        return
    if any(around.find_forbidden(branch.address, branch.end) for branch in branches):
        return
    trap = plan_trap(around, address, index, reason)
    _, run, sizes = run_of(code, first, index + 1)
    yield trap._replace(
        technique=Technique.BRANCHES,
        first=start,
        code=run,
        sizes=sizes,
        probe_index=index - first,
        branches=branches,
    )
