"""Which bytes are to be patched for a probe at an instruction, by which technique.

The order is that of `Technique`: what costs a thread least comes first. Whether an address for the trampoline is free
is not known here, so there is more than one plan: `iter_plans` gives them all, the best first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Final

from clew.errors import UsageError
from clew.probing.x86_64.function_code import FunctionCode
from clew.probing.x86_64.kinds import FIRST_FIXED, Kind
from clew.probing.x86_64.plans import Displaced, SitePlan, Technique
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
    "ALL_TECHNIQUES",
    "check_probed",
    "find_instruction",
    "find_probed",
    "iter_plans",
    "iter_plans_at",
    "plan_site",
]

ALL_TECHNIQUES: Final = frozenset(Technique)


def plan_site(
    address: int,
    code: FunctionCode,
    entries: AbstractSet[int] = frozenset(),
    techniques: Collection[Technique] = ALL_TECHNIQUES,
    forbidden: Sequence[Forbidden] | Forbidding = (),
    branches: Mapping[int, Sequence[Displaced]] = NO_BRANCHES,
) -> SitePlan:
    """The best plan for a probe at `address`. Raises UsageError where there can be none."""
    for plan in iter_plans(address, code, entries, techniques, forbidden, branches):
        return plan
    raise UsageError(f"{address:#x}: none of the techniques that are allowed can be used here")


def iter_plans(
    address: int,
    code: FunctionCode,
    entries: AbstractSet[int] = frozenset(),
    techniques: Collection[Technique] = ALL_TECHNIQUES,
    forbidden: Sequence[Forbidden] | Forbidding = (),
    branches: Mapping[int, Sequence[Displaced]] = NO_BRANCHES,
) -> Iterator[SitePlan]:
    """Plans for a probe at `address`, the best first.

    `entries` are addresses that other code leads to: inside of the function, and behind it. What is planned already,
    and what runs in restartable sequences, is `forbidden`. `branches` are those of other code, calls too, by where they
    lead, to addresses that are known for nothing else. Raises UsageError where no instruction begins, or where
    none can be displaced.
    """
    around = Surroundings(code, entries, forbidden, branches)
    return iter_plans_at(around, address, find_probed(address, around), techniques)


def iter_plans_at(
    around: Surroundings, address: int, index: int, techniques: Collection[Technique]
) -> Iterator[SitePlan]:
    """The same where it is known that the probe runs in front of instruction `index`."""
    window = grow_window(around, index, index)
    assert window is not None  # It has the instruction itself, which may be displaced.
    plan = plan_jump(around, window, address, index)
    if plan is not None and plan.technique in techniques:
        yield plan
    if Technique.JUMP_PUNNED in techniques:
        yield from plan_puns(around, window, address, index)
    if Technique.BRANCHES in techniques:
        yield from plan_branches(around, address, index, window.reason)
    if Technique.TRAP in techniques:
        yield plan_trap(around, address, index, window.reason)


def find_instruction(
    address: int,
    code: FunctionCode,
    entries: AbstractSet[int] = frozenset(),
    forbidden: Sequence[Forbidden] | Forbidding = (),
) -> int:
    """The address of the instruction in front of which a probe at `address` runs: it is behind an endbr64 there. Who
    has planned a probe already asks its plan by this address (`SitePlan.find_index`). Raises UsageError as
    `iter_plans`."""
    return code.starts[find_probed(address, Surroundings(code, entries, forbidden, NO_BRANCHES))]


def find_probed(address: int, around: Surroundings) -> int:
    """The index of the instruction in front of which a probe at `address` runs.

    That is the one at the address, or the one behind an endbr64 there, which stays where it is: an indirect branch has
    to come to one where the processor minds it. If something branches behind it, it is displaced all the same, because
    those executions are none of it. Raises UsageError if there is no such instruction, or if it can't be displaced.
    """
    code = around.code
    index = code.locate(address)
    if (
        code.kinds[index] == Kind.ENDBR
        and index + 1 < code.n_instructions
        and not around.is_target(code.starts[index + 1])
    ):
        index += 1
    check_probed(address, around, index)
    return index


def check_probed(address: int, around: Surroundings, index: int) -> None:
    """Raises UsageError if instruction `index`, which a probe at `address` runs in front of, can't be displaced."""
    code = around.code
    at = code.starts[index]
    if code.kinds[index] >= FIRST_FIXED:
        raise UsageError(f"{address:#x}: the instruction at {at:#x} {code.fixed[at]}")
    why = around.find_forbidden(at, code.starts[index + 1])
    if why:
        raise UsageError(f"{address:#x}: the instruction at {at:#x} {why}")
