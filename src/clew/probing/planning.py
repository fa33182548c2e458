"""Plans for several probes at once: those that lie close to each other share a patch, or keep out of each other's way.

Runs in the controller. Pure.
"""

from __future__ import annotations

import bisect
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from clew.errors import UsageError
from clew.probing.x86_64.exits import iter_exit_plans
from clew.probing.x86_64.function_code import FunctionCode
from clew.probing.x86_64.plans import Displaced, SitePlan, Technique
from clew.probing.x86_64.sites import ALL_TECHNIQUES, iter_plans
from clew.probing.x86_64.windows import Forbidden

__all__ = ["Planning"]

_NO_BRANCHES: Final[Mapping[int, Sequence[Displaced]]] = {}
_LONGEST_PATCH: Final = 32
_TAKEN: Final = "another probe's jump is there"


class Planning:
    """The patches of a process so far. `techniques` are those that may be used."""

    def __init__(self, techniques: Collection[Technique] = ALL_TECHNIQUES) -> None:
        self._techniques = techniques
        self._plans: dict[int, SitePlan] = {}
        """By the addresses of all instructions that are displaced."""
        self._taken: list[SitePlan] = []
        """By their addresses, which are `_starts`."""
        self._starts: list[int] = []

    def plan(
        self,
        address: int,
        code: FunctionCode,
        entries: Collection[int] = frozenset(),
        branches: Mapping[int, Sequence[Displaced]] = _NO_BRANCHES,
        *,
        is_exit: bool = False,
        without: Collection[Technique] = (),
    ) -> tuple[SitePlan, int]:
        """A plan that displaces the instruction at an address, new or not, and the instruction's index in it.

        `is_exit`: it ends the function. Techniques of `without` are not used. Raises UsageError where there can be
        none.
        """
        known = self._plans.get(address)
        if known is not None and (index := known.find_index(address)) is not None:
            return known, index
        forbidden = [Forbidden(one.patch_address, one.patch_end, _TAKEN) for one in self._near(code)]
        techniques = [one for one in self._techniques if one not in without]
        if is_exit:
            plans = iter_exit_plans(address, code, entries, techniques, forbidden, branches)
        else:
            plans = iter_plans(address, code, entries, techniques, forbidden)
        plan = next(filter(self._is_harmless, plans), None)
        if plan is None:
            raise UsageError(f"{address:#x}: none of the techniques that are allowed can be used here")
        # Behind an endbr64, which stays where it is.
        probed = plan.displaced[plan.probe_index].address
        shared = self._plans.get(probed)
        if shared is not None and (index := shared.find_index(probed)) is not None:
            return shared, index
        at = bisect.bisect_left(self._starts, plan.patch_address)
        self._starts.insert(at, plan.patch_address)
        self._taken.insert(at, plan)
        for one in plan.displaced:
            self._plans.setdefault(one.address, plan)
        return plan, plan.probe_index

    def forget(self, plans: Iterable[SitePlan]) -> None:
        """Those are there no more."""
        for plan in plans:
            at = bisect.bisect_left(self._starts, plan.patch_address)
            del self._starts[at], self._taken[at]
            for one in plan.displaced:
                if self._plans.get(one.address) is plan:
                    del self._plans[one.address]

    def _is_harmless(self, plan: SitePlan) -> bool:
        """Whether no branches are led past another probe, which would keep threads from it."""
        return not plan.branches or not any(one.address in self._plans for one in plan.displaced)

    def _near(self, code: FunctionCode) -> list[SitePlan]:
        """Those that may be in the way of another one in a function."""
        first = bisect.bisect_left(self._starts, code.start - _LONGEST_PATCH)
        return self._taken[first : bisect.bisect_left(self._starts, code.start + len(code.code))]
