"""What is written over the program's code, and what is executed instead: the places that lead to handlers.

Runs in the controller. A patch has a trampoline: a copy of the instructions that it displaces, with a jump to a handler
in front of those that are probed. Several probes may share one.
"""

from __future__ import annotations

import bisect
from collections.abc import Iterator, Mapping
from typing import Final

from clew.dataclass import dataclass
from clew.probing.x86_64.plans import SitePlan
from clew.probing.x86_64.relocation import Inserted, Relocated, relocate

__all__ = ["JUMP_BYTES", "Patch", "Patches", "make_trampoline", "trampoline_bytes"]

JUMP_BYTES: Final = 5
_COPY_BYTES: Final = 40
"""Of one instruction at most: a call that pushes its return address and jumps, with what is inserted in front of it."""


def trampoline_bytes(plan: SitePlan) -> int:
    """How many bytes the trampoline of a plan has at most."""
    return _COPY_BYTES * len(plan.displaced) + 3 * JUMP_BYTES


def make_trampoline(plan: SitePlan, address: int, handlers: Mapping[int, int]) -> tuple[Relocated, dict[int, int]]:
    """The trampoline of a plan at an address: `handlers` are the addresses of those that are in front of displaced
    instructions, by their indices. And where each comes back to. Raises UsageError: it can't be there."""
    resumes: dict[int, int] = {}

    def lead_to(index: int) -> Inserted:
        def make(here: int) -> bytes:
            resumes[index] = here + JUMP_BYTES
            return b"\xe9" + (handlers[index] - resumes[index]).to_bytes(4, "little", signed=True)

        return make

    made = relocate(plan.displaced, address, {index: lead_to(index) for index in handlers})
    return made, resumes


@dataclass
class Patch:
    """One that is in place, or about to be: its plan, its trampoline, and the numbers of its sites by the indices of
    displaced instructions."""

    plan: SitePlan
    trampoline: Relocated
    numbers: dict[int, int]

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
        """Addresses at which a thread may trap, and where it goes on."""
        rows = {
            guard: self.trampoline.starts[self.plan.displaced[index].address]
            for guard, index in self.plan.guards.items()
        }
        if self.plan.jump is None:
            rows[self.start] = self.trampoline.address
        return rows


class Patches:
    """All of a process, by address."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._patches: list[Patch] = []

    def __iter__(self) -> Iterator[Patch]:
        return iter(self._patches)

    def __len__(self) -> int:
        return len(self._patches)

    def at(self, address: int) -> Patch | None:
        """The one over whose bytes an address is."""
        index = bisect.bisect_right(self._starts, address) - 1
        if index >= 0 and address < self._patches[index].end:
            return self._patches[index]
        return None

    def add(self, patch: Patch) -> None:
        """Have one more, which lies over no other."""
        index = bisect.bisect_left(self._starts, patch.start)
        self._starts.insert(index, patch.start)
        self._patches.insert(index, patch)

    def remove(self, patch: Patch) -> None:
        """Have it no more."""
        index = bisect.bisect_left(self._starts, patch.start)
        assert self._patches[index] is patch
        del self._starts[index], self._patches[index]
