"""Where the trampoline of a plan may be: the jump has to come to it, and its copy to all that the code refers to."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from iced_x86 import Decoder, Register

from clew.probing.x86_64.jump_bytes import iter_trampolines
from clew.probing.x86_64.kinds import Kind, find_kind
from clew.probing.x86_64.plans import Displaced, SitePlan

__all__ = ["find_far_reach", "find_place", "find_reach", "iter_places"]

_DIRECT = frozenset((Kind.CALL, Kind.JUMP, Kind.CONDITIONAL))
_HALF = 1 << 31
_END = 1 << 47


def find_reach(displaced: Sequence[Displaced], branches: Sequence[Displaced], size_bytes: int) -> range:
    """Addresses at which a copy of up to `size_bytes` reaches what `displaced` refer to, and what is behind them, and
    to which `branches` can lead."""
    ends = [displaced[-1].end, *(branch.end for branch in branches)]
    low, high = min(ends), max(ends)
    for place in displaced:
        one = Decoder(64, place.code, ip=place.address).decode()
        if find_kind(one) in _DIRECT:
            target = one.near_branch_target
        elif one.is_ip_rel_memory_operand and int(one.memory_base) == Register.RIP:
            target = one.ip_rel_memory_address
        else:
            continue
        low, high = min(low, target), max(high, target)
    return range(max(high - _HALF + 1, 0), low + _HALF - size_bytes + 1)


def find_far_reach(displaced: Sequence[Displaced], size_bytes: int) -> range:
    """Addresses at which a copy reaches the memory that `displaced` name by its distance. It jumps from anywhere."""
    near = (find_reach((one,), (), size_bytes) for one in displaced if _names_memory(one))
    reach = range(_END)
    for one in near:
        reach = range(max(reach.start, one.start), min(reach.stop, one.stop))
    return reach


def _names_memory(place: Displaced) -> bool:
    one = Decoder(64, place.code, ip=place.address).decode()
    return one.is_ip_rel_memory_operand and int(one.memory_base) == Register.RIP


def iter_places(plan: SitePlan, free: Iterable[tuple[int, int]], size_bytes: int) -> Iterator[range]:
    """Ranges of addresses for the trampoline of a plan, which has `size_bytes` and is to lie in `free`: ranges of
    addresses, from the first to behind the last. What traps by int3 comes first in each of them."""
    reach = find_reach(plan.displaced, plan.branches, size_bytes)
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
