"""What is written over the program's code, and what is executed instead: the places that lead to handlers.

Runs in the controller. A patch has a trampoline: a copy of the instructions that it displaces, with jumps to handlers
in front of those that are probed. Several probes may share one.
"""

from __future__ import annotations

import bisect
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from clew.probing.native import Inserted, Origin, Relocated, SitePlan, relocate
from clew.probing.planning import Group, Site

__all__ = ["JUMP_BYTES", "Led", "Patch", "Patches", "Trampoline", "make_trampoline", "trampoline_bytes"]

JUMP_BYTES: Final = 5
_COPY_BYTES: Final = 40
"""Of one instruction at most: a call that pushes its return address and jumps."""
_FAR_BYTES: Final = 14
"""Of a jump to an address that a jump with a distance does not lead to."""
_LED_BYTES: Final = JUMP_BYTES + _FAR_BYTES
"""To a handler, and back to where a branch that is taken leads."""


class Led(NamedTuple):
    """A handler is led to in front of displaced instruction `number`; `is_taken`: where it branches."""

    number: int
    is_taken: bool
    handler: int


def trampoline_bytes(plan: SitePlan, n_led: int) -> int:
    """How many bytes the trampoline of a plan has at most that leads to so many handlers."""
    return _COPY_BYTES * len(plan.sizes) + _LED_BYTES * n_led + 3 * _FAR_BYTES


def make_trampoline(
    plan: SitePlan, address: int, handlers: Sequence[Led], *, has_origins: bool = False
) -> tuple[Relocated, list[int]]:
    """The trampoline of a plan at an address, and where each handler comes back to. Of several at one place the first
    comes first. Raises UsageError: it can't be there."""
    resumes = [0] * len(handlers)

    def lead_to(chosen: Sequence[int]) -> Inserted:
        def make(here: int) -> bytes:
            code = b""
            for number in chosen:
                here += JUMP_BYTES
                resumes[number] = here
                code += b"\xe9" + (handlers[number].handler - here).to_bytes(4, "little", signed=True)
            return code

        return make

    inserted: tuple[dict[int, Inserted], dict[int, Inserted]] = {}, {}
    if len(handlers) == 1:
        inserted[handlers[0].is_taken][handlers[0].number] = lead_to((0,))
    else:
        chosen: dict[tuple[bool, int], list[int]] = {}
        for number, led in enumerate(handlers):
            chosen.setdefault((led.is_taken, led.number), []).append(number)
        for (is_taken, index), numbers in chosen.items():
            inserted[is_taken][index] = lead_to(numbers)
    return relocate(plan.displaced, address, *inserted, has_origins=has_origins), resumes


class Trampoline(NamedTuple):
    """One that was made, of which what takes room is left out, since it can be made again: the group that it was made
    for, where it is and how many bytes it has, how far in it the copy of each displaced instruction begins (`offsets`),
    and where its handlers are."""

    group: Group
    address: int
    n_bytes: int
    offsets: tuple[int, ...]
    handlers: tuple[Led, ...]

    def find_origin(self, address: int) -> Origin | None:
        """Where the program is whose thread is at an address of it; None outside of it."""
        if not self.address <= address < self.address + self.n_bytes:
            return None
        copy, _ = make_trampoline(self.plan, self.address, self.handlers, has_origins=True)
        return copy.find_origin(address)

    def find_led(self) -> list[int]:
        """Where it leads to its handlers."""
        return [one - JUMP_BYTES for one in make_trampoline(self.plan, self.address, self.handlers)[1]]

    @property
    def plan(self) -> SitePlan:
        return self.group.plan

    def does_for(self, group: Group) -> bool:
        """Whether another group has the same copy with the same handlers."""
        if self.group is group:
            return True
        one, two = self.group.plan, group.plan
        return (
            (one.patch_address, one.first, one.code, one.sizes, one.jump)
            == (two.patch_address, two.first, two.code, two.sizes, two.jump)
            and len(self.group.sites) == len(group.sites)
            and all(map(_is_same, self.group.sites, group.sites))
        )


class Patch(NamedTuple):
    """One that is in place, or was, or is about to be: the group that it is for, and its trampoline."""

    group: Group
    trampoline: Trampoline

    @property
    def plan(self) -> SitePlan:
        return self.group.plan

    @property
    def start(self) -> int:
        return self.group.plan.patch_address

    @property
    def end(self) -> int:
        return self.group.plan.patch_end

    def writes(self) -> list[tuple[int, bytes]]:
        """What is written over the code, by address: the way back that is closed last comes first."""
        plan, target = self.group.plan, self.trampoline.address
        written = [(plan.patch_address, plan.patch(target))]
        if plan.branches:
            written += [(one.end - 4, (target - one.end).to_bytes(4, "little", signed=True)) for one in plan.branches]
        return written

    def originals(self) -> list[tuple[int, bytes]]:
        """What was there."""
        plan = self.group.plan
        if not plan.branches:
            return [(plan.patch_address, plan.original)]
        led = [(one.end - 4, one.code[-4:]) for one in plan.branches]
        return [*led, (plan.patch_address, plan.original)]

    def traps(self) -> list[tuple[int, int]]:
        """Addresses at which a thread may trap, and where it goes on: all instructions within the patch, for it may
        trap at any of them while that is being written."""
        plan, (_, target, _, offsets, _) = self.group.plan, self.trampoline
        start, at = plan.patch_address, plan.first
        if len(offsets) == 1:
            return [(at, target + offsets[0])]
        end = plan.patch_end
        rows = []
        for size, offset in zip(plan.sizes, offsets, strict=True):
            if start <= at < end:
                rows.append((at, target + offset))
            at += size
        return rows


class Patches:
    """All of a process, by address."""

    def __init__(self) -> None:
        self._starts = array("Q")
        self._patches: list[Patch] = []
        self._branching: dict[int, Patch] = {}
        """Those that change branches elsewhere."""

    def __iter__(self) -> Iterator[Patch]:
        return iter(self._patches)

    def __len__(self) -> int:
        return len(self._patches)

    def undo(self, address: int, found: bytes) -> bytes:
        """Memory at an address, without what is written there for these."""
        index = bisect.bisect_right(self._starts, address) - 1
        chosen = self._patches[max(index, 0) : bisect.bisect_left(self._starts, address + len(found))]
        result = bytearray(found)
        for patch in [*chosen, *self._branching.values()]:
            for start, data in patch.originals():
                first, end = max(start, address), min(start + len(data), address + len(found))
                if first < end:
                    result[first - address : end - address] = data[first - start : end - start]
        return bytes(result)

    def find(self, start: int) -> Patch:
        """The one at an address, which there is."""
        return self._patches[bisect.bisect_left(self._starts, start)]

    def change(self, gone: Iterable[Patch], made: Iterable[Patch]) -> None:
        """Have some no more, and others instead; none lies over another one."""
        left = {id(one.group) for one in gone}
        patches = [one for one in self._patches if id(one.group) not in left] if left else self._patches
        self._patches = sorted([*patches, *made], key=_start_of)
        self._starts = array("Q", [one.start for one in self._patches])
        self._branching = {one.start: one for one in self._patches if one.plan.branches}


def _is_same(site: Site, other: Site) -> bool:
    """Whether two sites lead to the same handler."""
    places = [(one.at, one.is_taken, one.pc, tuple(one.rows)) for one in (site, other)]
    return places[0] == places[1]


def _start_of(patch: Patch) -> int:
    return patch.start
