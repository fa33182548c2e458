"""What is written over the program's code, and what is executed instead: the places that lead to handlers.

Runs in the controller. A patch has a trampoline: a copy of the instructions that it displaces, with jumps to handlers
in front of those that are probed. Several probes may share one.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from clew.dataclass import dataclass
from clew.probing.native import Inserted, Relocated, SitePlan, relocate
from clew.probing.planning import Group

__all__ = ["JUMP_BYTES", "Led", "Patch", "Patches", "make_trampoline", "trampoline_bytes"]

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
    return _COPY_BYTES * len(plan.displaced) + _LED_BYTES * n_led + 3 * _FAR_BYTES


def make_trampoline(plan: SitePlan, address: int, handlers: Sequence[Led]) -> tuple[Relocated, list[int]]:
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

    inserted: tuple[dict[int, list[int]], dict[int, list[int]]] = {}, {}
    for number, led in enumerate(handlers):
        inserted[led.is_taken].setdefault(led.number, []).append(number)
    both = [{index: lead_to(chosen) for index, chosen in one.items()} for one in inserted]
    return relocate(plan.displaced, address, *both), resumes


@dataclass(frozen=True)
class Patch:
    """One that is in place, or was, or is about to be: the group that it is for, its trampoline, and where this leads
    to handlers (`led`)."""

    group: Group
    trampoline: Relocated
    led: tuple[int, ...]

    @property
    def plan(self) -> SitePlan:
        return self.group.plan

    @property
    def start(self) -> int:
        return self.plan.patch_address

    @property
    def end(self) -> int:
        return self.plan.patch_end

    def writes(self) -> list[tuple[int, bytes]]:
        """What is written over the code, by address: the way back that is closed last comes first."""
        target = self.trampoline.address
        led = [(one.end - 4, (target - one.end).to_bytes(4, "little", signed=True)) for one in self.plan.branches]
        return [(self.start, self.plan.patch(target)), *led]

    def originals(self) -> list[tuple[int, bytes]]:
        """What was there."""
        led = [(one.end - 4, one.code[-4:]) for one in self.plan.branches]
        return [*led, (self.start, self.plan.original)]

    def traps(self) -> dict[int, int]:
        """Addresses at which a thread may trap, and where it goes on: all instructions within the patch, for it may
        trap at any of them while that is being written."""
        starts, start, end = self.trampoline.starts, self.start, self.end
        rows = {address: target for address, target in starts.items() if start <= address < end}
        for guard, index in self.plan.guards.items():
            rows[guard] = starts[self.plan.displaced[index].address]
        return rows


class Patches:
    """All of a process, by address."""

    def __init__(self) -> None:
        self._starts: list[int] = []
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

    def change(self, gone: Iterable[Patch], made: Iterable[Patch]) -> None:
        """Have some no more, and others instead; none lies over another one."""
        left = set(map(id, gone))
        patches = [one for one in self._patches if id(one) not in left] if left else self._patches
        self._patches = sorted([*patches, *made], key=_start_of)
        self._starts = [one.start for one in self._patches]
        self._branching = {one.start: one for one in self._patches if one.plan.branches}


def _start_of(patch: Patch) -> int:
    return patch.start
