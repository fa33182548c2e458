"""Plans for several probes at once: those that lie close to each other share a patch, or keep out of each other's way.

Runs in the controller. Pure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Final

from clew.probing.x86_64.exits import plan_exit
from clew.probing.x86_64.function_code import FunctionCode
from clew.probing.x86_64.plans import SitePlan, Technique
from clew.probing.x86_64.sites import ALL_TECHNIQUES, plan_site
from clew.probing.x86_64.windows import Forbidden

__all__ = ["Planning"]

_TAKEN: Final = "another probe's jump is there"


class Planning:
    """The patches of a process so far. `techniques` are those that may be used."""

    def __init__(self, techniques: Collection[Technique] = ALL_TECHNIQUES) -> None:
        self._techniques = techniques
        self._plans: dict[int, SitePlan] = {}
        """By the addresses of all instructions that are displaced."""
        self._taken: list[SitePlan] = []

    def plan(
        self, address: int, code: FunctionCode, entries: Collection[int] = frozenset(), *, is_exit: bool = False
    ) -> tuple[SitePlan, int]:
        """A plan that displaces the instruction at an address, new or not, and the instruction's index in it. `is_exit`:
        it ends the function. Raises UsageError where there can be none."""
        known = self._plans.get(address)
        if known is not None and (index := known.find_index(address)) is not None:
            return known, index
        forbidden = [Forbidden(one.patch_address, one.patch_end, _TAKEN) for one in self._near(code)]
        make = plan_exit if is_exit else plan_site
        plan = make(address, code, entries, self._techniques, forbidden)
        # Behind an endbr64, which stays where it is.
        probed = plan.displaced[plan.probe_index].address
        shared = self._plans.get(probed)
        if shared is not None and (index := shared.find_index(probed)) is not None:
            return shared, index
        self._taken.append(plan)
        for one in plan.displaced:
            self._plans.setdefault(one.address, plan)
        return plan, plan.probe_index

    def forget(self, plans: Iterable[SitePlan]) -> None:
        """Those are there no more."""
        for plan in plans:
            self._taken.remove(plan)
            for one in plan.displaced:
                if self._plans.get(one.address) is plan:
                    del self._plans[one.address]

    def _near(self, code: FunctionCode) -> list[SitePlan]:
        """Those that may be in the way of another one in a function."""
        end = code.start + len(code.code)
        return [one for one in self._taken if one.patch_address < end and one.patch_end > code.start - 16]
