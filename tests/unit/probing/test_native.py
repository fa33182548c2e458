"""Each instruction of real functions, probed by each technique that can be, in a process that runs them.

What is compared is all that a function leaves: registers, flags, its bytes, and every byte of the stack, also below the
stack pointer. How often an instruction runs is told by single-stepping.
"""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest

from clew.probing.x86_64.exits import ExitKind, find_exits, iter_exit_plans
from clew.probing.x86_64.function_code import FunctionCode
from clew.probing.x86_64.jump_bytes import TRAPS, JumpBytes
from clew.probing.x86_64.plans import SitePlan, Technique
from clew.probing.x86_64.sites import iter_plans
from tests.unit.probing.native import Native, apart

SEEDS = range(1, 9)
FUNCTIONS = (
    *("c_leaf", "c_recursion", "c_switch", "c_indirect", "c_tail", "c_floats", "c_global", "c_goto"),
    *("s_loop", "s_flags", "s_calls", "s_double", "s_where", "s_lock", "s_red_zone", "s_empty", "s_short"),
    *("s_strings", "s_tails", "s_hidden", "s_eip"),
)


def check(native: Native, code: FunctionCode, plan: SitePlan, expected: dict[int, int], *, taken: bool = False) -> bool:
    """Probe a site; whether there was room for the trampoline. Compared are outcomes, and counts by seed."""
    wanted = {seed: native.call(code, seed) for seed in SEEDS}
    with native.probe(plan, taken=taken) as copy:
        if copy is None:
            return False
        n = 0
        for seed in SEEDS:
            assert native.call(code, seed) == wanted[seed], (plan, seed)
            n += expected[seed]
            assert native.count == n, (plan, seed)
    for seed in SEEDS:
        assert native.call(code, seed) == wanted[seed], "not as it was"
    return True


@pytest.mark.parametrize("name", FUNCTIONS)
@apart
def test_each_instruction_by_each_technique(native: Native, name: str) -> None:
    code = native.functions[name]
    steps = {seed: Counter(native.steps(code, seed)) for seed in SEEDS}
    used: Counter[Technique] = Counter()
    for index in range(code.n_instructions):
        address = code.starts[index]
        for plan in iter_plans(address, code, native.entries, branches=native.branches):
            expected = {seed: steps[seed][address] for seed in SEEDS}
            used[plan.technique] += check(native, code, plan, expected)
    assert used[Technique.TRAP] == code.n_instructions


@pytest.mark.parametrize("name", FUNCTIONS)
@apart
def test_each_exit(native: Native, name: str) -> None:
    code = native.functions[name]
    steps = {seed: native.steps(code, seed) for seed in SEEDS}
    exits = find_exits(code)
    left = dict.fromkeys(SEEDS, 0)
    for site in exits:
        taken = site.kind == ExitKind.CONDITIONAL_TAIL
        behind = code.starts[code.index_of[site.address] + 1]
        expected = {
            seed: sum(
                at == site.address and not (taken and following == behind)
                for at, following in zip(found, [*found[1:], 0], strict=True)
            )
            for seed, found in steps.items()
        }
        left = {seed: left[seed] + expected[seed] for seed in SEEDS}
        n_planned = 0
        for plan in iter_exit_plans(site.address, code, native.entries, branches=native.branches):
            n_planned += check(native, code, plan, expected, taken=taken)
        assert n_planned
    # What is entered is left once; not so with jumps that may stay in the function, and with calls of its own middle.
    if not code.unknown_jumps and name != "s_where":
        entered = {seed: found.count(code.start) for seed, found in steps.items()}
        assert left == entered


@apart
def test_jump_tables_are_known(native: Native) -> None:
    code = native.functions["c_switch"]
    assert code.tables and not code.unknown_jumps
    n_jumps = 0
    for seed in SEEDS:
        found = native.steps(code, seed)
        for at, following in pairwise(found):
            if at in code.tables:
                n_jumps += 1
                assert following in code.tables[at] and following in code.targets
    assert n_jumps > 100


@pytest.mark.parametrize("value", TRAPS)
@apart
def test_branches_into_a_jump(native: Native, value: int) -> None:
    """A branch that nobody knows of comes to each instruction of a window; each byte traps that may be there."""
    code = native.functions["s_hidden"]
    first = code.starts[code.index_of[code.unknown_jumps[0]] + 1]
    plans = [plan for plan in iter_plans(first, code, native.entries) if plan.technique == Technique.JUMP_GUARDED]
    (plan,) = plans
    assert len(plan.guards) == 2 and plan.jump is not None
    # The last byte, which has most to say about where the trampoline is, stays as it may be.
    allowed = tuple((value,) if index == 1 and values else values for index, values in enumerate(plan.jump.allowed))
    plan = plan._replace(jump=JumpBytes(plan.jump.address, allowed))
    wanted = {seed: native.call(code, seed) for seed in SEEDS}
    ways = [native.steps(code, seed) for seed in SEEDS]
    n_guarded = sum(way[way.index(code.unknown_jumps[0]) + 1] in plan.guards for way in ways)
    assert n_guarded
    with native.probe(plan) as copy:
        assert copy is not None
        for seed in SEEDS:
            assert native.call(code, seed) == wanted[seed]
        assert native.traps == n_guarded
