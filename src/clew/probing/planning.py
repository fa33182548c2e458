"""Plans for several probes at once: those that lie close to each other share a patch, or keep out of each other's way.

Runs in the controller. Pure. What is planned later may have to change what was planned before: a longer run of
instructions is displaced then, for the probes of both, or the earlier one has to do with less.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from clew.errors import UsageError
from clew.probing.claims import Claims, Taken
from clew.probing.native import (
    ALL_TECHNIQUES,
    JUMP_SIZE,
    TRAPS,
    Displaced,
    FunctionCode,
    ImageCode,
    JumpBytes,
    SitePlan,
    Surroundings,
    Technique,
    check_probed,
    find_probed,
    grow_window,
    iter_exit_plans_at,
    iter_plans_at,
    plan_jump,
    run_of,
)
from clew.process.capture_table import CaptureRow

__all__ = ["Foreign", "Group", "Planning", "Site"]

_REACH_BYTES: Final = 256
"""No plan displaces anything that is farther from where it is probed: 16 instructions of 15 bytes."""
_SHARED: Final = "other probes are right beside it"
_OTHERS: Final = "somebody else's jump is there"


class Foreign(NamedTuple):
    """Where memory is not what the file has; `jump` is what it has there if that is a jump that another session may
    have put there."""

    start: int
    end: int
    reason: str
    jump: Displaced | None


class Site:
    """A place that is to be probed: the instruction at an address of `code`, which belongs to `image`, and what is
    captured in front of it. `is_exit`: it ends the function; only if it branches, where it `is_taken`. `foreign` is
    where memory is not what the file has. Raises UsageError where the instruction can't be displaced."""

    __slots__ = (
        "address",
        "at",
        "code",
        "foreign",
        "group",
        "image",
        "is_exit",
        "is_taken",
        "number",
        "rows",
        "without",
    )

    def __init__(
        self,
        address: int,
        code: FunctionCode,
        image: ImageCode,
        *,
        is_exit: bool = False,
        is_taken: bool = False,
        foreign: Sequence[Foreign] = (),
    ) -> None:
        self.address, self.code, self.image = address, code, image
        self.is_exit, self.is_taken = is_exit, is_taken
        self.foreign = foreign
        self.number = find_probed(address, Surroundings(code, image.entries, (), image.branches))
        at = code.starts[self.number]
        self.at = address if at == address else at
        """The instruction that is displaced for it: behind one that marks a place to branch to, which stays."""
        self.rows: Sequence[CaptureRow] = ()
        """As what place they are captured is not theirs to say: their `pc` is left out."""
        self.without: frozenset[Technique] = _NONE
        """Techniques that were found not to do."""
        self.group: Group | None = None
        """Where it is planned."""

    @property
    def pc(self) -> int:
        """What captures know it by. A branch that is taken is another place than the branch itself."""
        return self.address + self.is_taken

    @property
    def order(self) -> tuple[bool, int]:
        """Which is first of several in front of one instruction: a function begins before it ends."""
        return self.is_exit, self.address


_NONE: Final[frozenset[Technique]] = frozenset()


class Group:
    """Sites that share a patch, those of one instruction in the order in which they are come to."""

    __slots__ = ("plan", "sites")

    def __init__(self, plan: SitePlan, sites: tuple[Site, ...]) -> None:
        self.plan, self.sites = plan, sites

    def index_of(self, site: Site) -> int:
        """The index of a site's instruction among those that the plan displaces."""
        index = self.plan.find_index(site.at)
        assert index is not None
        return index


class Planning:
    """The patches of a process as they are to be. `techniques` are those that may be used."""

    def __init__(self, techniques: Collection[Technique] = ALL_TECHNIQUES) -> None:
        self._techniques = techniques
        self._claims = Claims()
        self._made: dict[int, Group] = {}
        self._gone: dict[int, Group] = {}
        """By their identities: what is not in place yet, and what is but should not be."""

    def add(self, site: Site) -> None:
        """Plan one more. Raises UsageError where there can be none; nothing is changed then."""
        known = self._claims.find_displacing(site.at)
        is_allowed = known is not None and known.plan.technique not in site.without
        if known is not None and is_allowed and known.plan.find_index(site.at) is not None:
            self._replace([known], known.plan, site)
            return
        techniques = self._techniques
        if site.without:
            techniques = [one for one in techniques if one not in site.without]
        plan, why = None, f"{site.address:#x}: none of the techniques that are allowed can be used here"
        try:
            for one in self._iter_plans(site, techniques):
                if self._is_harmless(one):
                    plan = one
                    break
        except UsageError as error:
            why = error.message
        if plan is None or plan.technique > Technique.JUMP_PADDING:
            merged = self._merge(site, techniques)
            if merged is not None:
                self._replace(*merged, site)
                return
        if plan is not None:
            self._replace([], plan, site)
        elif Technique.TRAP in site.without:
            raise UsageError(self._why_trap(site, why))
        elif Technique.TRAP not in techniques or not self._make_room(site):
            raise UsageError(why)

    def remove(self, sites: Iterable[Site]) -> None:
        """Have these no more."""
        for site in sites:
            group, site.group = site.group, None
            if group is not None:
                self._drop(group)
                rest = tuple(one for one in group.sites if one is not site)
                if rest:
                    self._keep(Group(group.plan, rest))

    def forget(self, groups: Iterable[Group]) -> None:
        """The code of these is not there any more."""
        for group in groups:
            self._drop(group)
            self._gone.pop(id(group), None)
            for site in group.sites:
                site.group = None

    def changes(self) -> tuple[list[Group], list[Group]]:
        """What is to be put in place, and what is to be no more, since that was confirmed last."""
        return list(self._made.values()), list(self._gone.values())

    def confirm(self) -> None:
        """All of that is done."""
        self._made.clear()
        self._gone.clear()

    def plan_again(self, groups: Iterable[Group]) -> list[tuple[Site, str]]:
        """Find others for groups for which there is no room, by techniques that need less; sites for which there is
        none, and why."""
        refused: list[tuple[Site, str]] = []
        for group in groups:
            if group.plan.technique == Technique.JUMP_PUNNED:
                without = frozenset((Technique.JUMP_PUNNED,))
            else:
                without = frozenset(Technique) - {Technique.TRAP}
            self._drop(group)
            for site in group.sites:
                site.group = None
            if group.plan.technique == Technique.TRAP:
                refused += [
                    (site, f"{site.at:#x}: there is no room where a copy of it could be") for site in group.sites
                ]
                continue
            for site in group.sites:
                site.without |= without
                try:
                    self.add(site)
                except UsageError as error:
                    refused.append((site, error.message))
        return refused

    def _why_trap(self, site: Site, why: str) -> str:
        """Why there is no plan for a site that may not trap."""
        try:
            plan = next(self._iter_plans(site, [Technique.TRAP]), None)
        except UsageError:
            plan = None
        return why if plan is None else f"{site.address:#x}: it would trap: {plan.reason}"

    def _iter_plans(self, site: Site, techniques: Collection[Technique]) -> Iterator[SitePlan]:
        if site.foreign:
            jump = next((one for one in site.foreign if one.jump is not None and one.start == site.at), None)
            if jump is not None and jump.jump is not None:
                return iter([_plan_over(site, jump.jump)] if Technique.JUMP in techniques else [])
        image = site.image
        around = Surroundings(site.code, image.entries, Taken(site.foreign, self._claims), image.branches)
        check_probed(site.address, around, site.number)
        iterate = iter_exit_plans_at if site.is_exit else iter_plans_at
        return iterate(around, site.address, site.number, techniques)

    def _merge(self, site: Site, techniques: Collection[Technique]) -> tuple[list[Group], SitePlan] | None:
        """Groups beside a site, and a jump that does for them and for it."""
        code, starts = site.code, site.code.starts
        near = self._near(site.at - _REACH_BYTES, site.at + _REACH_BYTES)
        near.sort(key=lambda one: one.plan.patch_address)
        beside = [one for one in near if one.plan.patch_address < site.at + JUMP_SIZE and _is_run(one.plan, code)]
        before = [one for one in beside if one.plan.patch_address < site.at][-2:]
        behind = [one for one in beside if one.plan.patch_address >= site.at]
        for chosen in (before[-1:], behind[:1], before[-1:] + behind, before + behind):
            if not chosen:
                continue
            numbers = [site.number, *(code.index_of[one] for group in chosen for one in group.plan.starts)]
            first, last = min(numbers), max(numbers)
            forbidden = Taken(site.foreign, self._claims, chosen)
            around = Surroundings(code, site.image.entries, forbidden, site.image.branches)
            if around.find_forbidden(starts[first], starts[last + 1]):
                continue
            window = grow_window(around, first, last)
            plan = None if window is None else plan_jump(around, window, site.address, site.number)
            if plan is None or plan.technique not in techniques:
                continue
            # Of padding behind the last instruction nothing is displaced.
            if plan.find_index(site.at) is not None and _does_for(plan, chosen):
                return chosen, plan
        return None

    def _make_room(self, site: Site) -> bool:
        """Have a site trap, and what is in its way have to do with less; whether that could be."""
        number, code = site.number, site.code
        start, end = code.starts[number], code.starts[number + 1]
        if any(one.start < end and start < one.end for one in site.foreign):
            return False
        in_way = {id(one): one for one in self._near(start, end)}
        known = self._claims.find_displacing(start)
        if known is not None:
            in_way[id(known)] = known
        sites = [one for group in in_way.values() for one in group.sites]
        if any(Technique.TRAP in one.without for one in sites):
            return False
        for group in in_way.values():
            self._drop(group)
        _, run, sizes = run_of(code, number, number + 1)
        trap = SitePlan(site.address, start, Technique.TRAP, _SHARED, start, run, sizes, 0, run[:1], None)
        self._replace([], trap, site)
        for one in sites:
            one.group = None
            self.add(one)
        return True

    def _replace(self, groups: Sequence[Group], plan: SitePlan, site: Site) -> None:
        """Have one group with a plan, for the sites of others and one more."""
        for group in groups:
            self._drop(group)
        sites = [site, *(one for group in groups for one in group.sites)]
        if len(sites) > 1:
            sites.sort(key=lambda one: (one.at, one.order))
        self._keep(Group(plan, tuple(sites)))

    def _keep(self, group: Group) -> None:
        self._made[id(group)] = group
        for site in group.sites:
            site.group = group
        self._claims.add(group)

    def _drop(self, group: Group) -> None:
        if self._made.pop(id(group), None) is None:
            self._gone[id(group)] = group
        self._claims.remove(group)

    def _is_harmless(self, plan: SitePlan) -> bool:
        """Whether no branches are led past another probe, which would keep threads from it, and none of them is
        displaced itself."""
        if not plan.branches:
            return True
        is_changed = any(self._near(one.address, one.end) for one in plan.branches)
        return not is_changed and not any(self._claims.find_displacing(one) is not None for one in plan.starts)

    def _near(self, start: int, end: int) -> list[Group]:
        """Those with bytes from `start` to in front of `end`."""
        return list({id(group): group for group in self._claims.find(start, end)}.values())


def _is_run(plan: SitePlan, code: FunctionCode) -> bool:
    """Whether a plan displaces instructions of a function, and changes nothing else."""
    return not plan.branches and all(one in code.index_of for one in plan.starts)


def _does_for(plan: SitePlan, groups: Iterable[Group]) -> bool:
    sites = [site for group in groups for site in group.sites]
    return all(plan.technique not in one.without and plan.find_index(one.at) is not None for one in sites)


def _plan_over(site: Site, jump: Displaced) -> SitePlan:
    """A jump over one that somebody else has put there. Threads may come to its distance's bytes, and trap there for
    those."""
    allowed = JumpBytes(jump.address, (TRAPS,) * (JUMP_SIZE - 1))
    sizes = bytes((len(jump.code),))
    return SitePlan(
        site.address, jump.address, Technique.JUMP, _OTHERS, jump.address, jump.code, sizes, 0, jump.code, allowed
    )
