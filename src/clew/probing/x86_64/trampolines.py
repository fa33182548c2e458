"""Where the trampoline of a plan may be: the jump has to come to it, and its copy to all that the code refers to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from clew.probing.x86_64.jump_bytes import iter_trampolines
from clew.probing.x86_64.known_instructions import look_at
from clew.probing.x86_64.plans import Displaced, SitePlan

__all__ = ["find_far_reach", "find_place", "find_plan_reach", "find_reach", "iter_places"]

_HALF = 1 << 31
_END = 1 << 47


def find_reach(displaced: Sequence[Displaced], branches: Sequence[Displaced], size_bytes: int) -> range:
    """Addresses at which a copy of up to `size_bytes` reaches what `displaced` refer to, and what is behind them, and
    to which `branches` can lead."""
    address, code = displaced[0].address, b"".join([one.code for one in displaced])
    return _find_reach(address, code, bytes(len(one.code) for one in displaced), branches, size_bytes)


def find_plan_reach(plan: SitePlan, size_bytes: int) -> range:
    """The same of what a plan displaces, and the branches that it changes."""
    return _find_reach(plan.first, plan.code, plan.sizes, plan.branches, size_bytes)


def _find_reach(at: int, code: bytes, sizes: bytes, branches: Sequence[Displaced], size_bytes: int) -> range:
    low = high = at + len(code)
    for branch in branches:
        low, high = min(low, branch.end), max(high, branch.end)
    offset = 0
    for size in sizes:
        distance = look_at(code[offset : offset + size]).distance
        if distance is not None:
            target = at + offset + distance
            if target < low:
                low = target
            elif target > high:
                high = target
        offset += size
    return range(max(high - _HALF + 1, 0), low + _HALF - size_bytes + 1)


def find_far_reach(displaced: Sequence[Displaced], size_bytes: int) -> range:
    """Addresses at which a copy reaches the memory that `displaced` name by its distance. It jumps from anywhere."""
    near = (find_reach((one,), (), size_bytes) for one in displaced if _names_memory(one))
    reach = range(_END)
    for one in near:
        reach = range(max(reach.start, one.start), min(reach.stop, one.stop))
    return reach


def _names_memory(place: Displaced) -> bool:
    known = look_at(place.code)
    return known.names_memory and not known.wraps


def iter_places(plan: SitePlan, free: Iterable[tuple[int, int]], size_bytes: int) -> Iterator[range]:
    """Ranges of addresses for the trampoline of a plan, which has `size_bytes` and is to lie in `free`: ranges of
    addresses, from the first to behind the last. What traps by int3 comes first in each of them."""
    reach = find_plan_reach(plan, size_bytes)
    for start, end in free:
        inside = range(max(start, reach.start), min(end - size_bytes + 1, reach.stop))
        if not inside:
            continue
        if plan.jump is None:
            yield inside
        else:
            yield from iter_trampolines(plan.jump, [(inside.start, inside.stop - 1 + size_bytes)], size_bytes)


def find_place(plan: SitePlan, free: Iterable[tuple[int, int]], size_bytes: int) -> int | None:
    """An address for the trampoline, within the first of these ranges as near as can be; None if there is none."""
    for found in iter_places(plan, free, size_bytes):
        return min(max(plan.patch_address, found.start), found.stop - 1)
    return None
