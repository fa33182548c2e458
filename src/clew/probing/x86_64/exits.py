"""Where a function is left, and how each of these places is probed.

A return is one byte, so a jump needs room: padding behind it, or the instructions in front of it, which are displaced
together with it and executed in front of the probe. No return address is ever replaced.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final, NamedTuple

from clew.enumeration import IntEnum
from clew.errors import UsageError
from clew.probing.x86_64.function_code import FunctionCode
from clew.probing.x86_64.kinds import CALLS, ENDS, Kind
from clew.probing.x86_64.plans import Displaced, SitePlan, Technique
from clew.probing.x86_64.sites import ALL_TECHNIQUES, find_probed
from clew.probing.x86_64.stack_checks import find_stack_check
from clew.probing.x86_64.traps import plan_branches, plan_trap
from clew.probing.x86_64.windows import (
    NO_BRANCHES,
    Forbidden,
    Forbidding,
    Surroundings,
    grow_window,
    plan_jump,
    plan_puns,
)

__all__ = [
    "ExitKind",
    "ExitSite",
    "find_all_exits",
    "find_exits",
    "iter_exit_plans",
    "iter_exit_plans_at",
    "plan_exit",
    "plan_exits",
]


_RETURN: Final = bytes((Kind.RETURN,))


class ExitKind(IntEnum):
    """How a function is left."""

    RETURN = 1
    TAIL = 2
    """By a jump to a function, itself included."""
    CONDITIONAL_TAIL = 3
    """By such a branch if it is taken; the probe belongs where it is (`inserted_taken` of `relocate`)."""
    INDIRECT_TAIL = 4
    """By an indirect jump. Where it leads decides whether the function is left: no table of it is known."""


class ExitSite(NamedTuple):
    """An instruction by which a function is left, or may be."""

    address: int
    kind: ExitKind


def find_exits(code: FunctionCode, parts: Sequence[tuple[int, int]] = ()) -> list[ExitSite]:
    """Where a function is left. Branches to its other `parts`, each from an address to behind the last, stay in it.

    Calls that do not return are none, and neither is what only faults.
    """
    found, at = [], code.kinds.find(_RETURN, 0, code.n_instructions)
    while at >= 0:
        found.append(ExitSite(code.starts[at], ExitKind.RETURN))
        at = code.kinds.find(_RETURN, at + 1, code.n_instructions)
    found += [ExitSite(address, ExitKind.INDIRECT_TAIL) for address in code.unknown_jumps]
    check = find_stack_check(code)
    for address, target in code.leaving:
        # Its stack was moved, and it begins anew: it was not left.
        begins_anew = check is not None and address == check.again
        if begins_anew or any(start <= target < end for start, end in parts):
            continue
        is_jump = code.kinds[code.index_of[address]] == Kind.JUMP
        found.append(ExitSite(address, ExitKind.TAIL if is_jump else ExitKind.CONDITIONAL_TAIL))
    return sorted(found, key=lambda site: site.address)


def find_all_exits(code: FunctionCode, parts: Sequence[FunctionCode] = ()) -> list[tuple[FunctionCode, ExitSite]]:
    """Where a function is left whose other pieces are `parts`, each with the piece that it is in."""
    pieces = [code, *parts]
    return [
        (one, site)
        for one in pieces
        for site in find_exits(one, [(other.start, other.end) for other in pieces if other is not one])
    ]


def plan_exits(
    code: FunctionCode,
    entries: AbstractSet[int] = frozenset(),
    techniques: Collection[Technique] = ALL_TECHNIQUES,
    forbidden: Sequence[Forbidden] | Forbidding = (),
    branches: Mapping[int, Sequence[Displaced]] = NO_BRANCHES,
    parts: Sequence[tuple[int, int]] = (),
) -> list[tuple[ExitSite, SitePlan]]:
    """The exits of a function, each with its best plan. Raises UsageError where one can't be probed at all."""
    return [(site, plan_exit(site.address, code, entries, techniques, forbidden)) for site in find_exits(code, parts)]


def plan_exit(
    address: int,
    code: FunctionCode,
    entries: AbstractSet[int] = frozenset(),
    techniques: Collection[Technique] = ALL_TECHNIQUES,
    forbidden: Sequence[Forbidden] | Forbidding = (),
    branches: Mapping[int, Sequence[Displaced]] = NO_BRANCHES,
) -> SitePlan:
    """The best plan for a probe at an exit. Raises UsageError where there can be none."""
    for plan in iter_exit_plans(address, code, entries, techniques, forbidden, branches):
        return plan
    raise UsageError(f"{address:#x}: none of the techniques that are allowed can be used here")


def iter_exit_plans(
    address: int,
    code: FunctionCode,
    entries: AbstractSet[int] = frozenset(),
    techniques: Collection[Technique] = ALL_TECHNIQUES,
    forbidden: Sequence[Forbidden] | Forbidding = (),
    branches: Mapping[int, Sequence[Displaced]] = NO_BRANCHES,
) -> Iterator[SitePlan]:
    """Plans for a probe at the instruction at `address`, the best first, as `iter_plans` gives them; a patch may also
    begin in front of the instruction."""
    around = Surroundings(code, entries, forbidden, branches)
    return iter_exit_plans_at(around, address, find_probed(address, around), techniques)


def iter_exit_plans_at(
    around: Surroundings, address: int, index: int, techniques: Collection[Technique]
) -> Iterator[SitePlan]:
    """The same where it is known that the probe runs in front of instruction `index`."""
    windows = []
    for first in _iter_firsts(around, index):
        window = grow_window(around, first, index)
        if window is None:
            break
        windows.append(window)
        plan = plan_jump(around, window, address, index)
        if plan is not None:
            # Those that would begin earlier displace more and allow nothing else.
            if plan.technique in techniques:
                yield plan
            break
    if Technique.JUMP_PUNNED in techniques:
        puns = [plan for window in windows for plan in plan_puns(around, window, address, index)]
        yield from sorted(puns, key=lambda plan: -(plan.jump.n_choices if plan.jump is not None else 0))
    reason = windows[-1].reason
    if Technique.BRANCHES in techniques:
        yield from plan_branches(around, address, index, reason)
    if Technique.TRAP in techniques:
        yield plan_trap(around, address, index, reason)


def _iter_firsts(around: Surroundings, index: int) -> Iterator[int]:
    """Instructions with which a patch may begin whose probe is at instruction `index`: from there back, as far as one
    leads to the next."""
    code = around.code
    yield index
    while index > 0:
        index -= 1
        if code.kinds[index] in ENDS or code.kinds[index] in CALLS or code.kinds[index] == Kind.ENDBR:
            return
        yield index
