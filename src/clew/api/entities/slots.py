"""What references stand for, at any time: a table of descriptors, or of handles, with its history.

Runs in the controller. Calls are told when they return, and what one of them names is what held when it began: another
thread may have closed it meanwhile, and opened something else under its number.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Hashable, Iterator
from typing import Final

from clew.dataclass import dataclass

__all__ = ["Slot", "Slots"]

_MOST_KEPT: Final = 128
_LEFT: Final = 32
"""So many changes of a reference are left of its history when there are more than _MOST_KEPT."""


@dataclass(frozen=True)
class Slot:
    """A reference stands for an entity; `closes_on_exec`: not any more when the process executes another program."""

    entity_id: int
    closes_on_exec: bool = False


class Slots:
    """References by key. Times are nanoseconds; changes may come in any order of them."""

    def __init__(self) -> None:
        self._changes: dict[Hashable, tuple[list[int], list[Slot | None]]] = {}
        self._gone_ns: dict[Hashable, int] = {}
        """When who had `key` stand for nothing was done with that, the last one."""

    def set(self, key: Hashable, time_ns: int, slot: Slot | None, gone_ns: int = 0) -> None:
        """From `time_ns` on `key` stands for `slot`; None: for nothing, at `gone_ns` at the latest. Of one time the
        last change holds."""
        if slot is None:
            self._gone_ns[key] = max(self._gone_ns.get(key, 0), gone_ns, time_ns)
        times, slots = self._changes.setdefault(key, ([], []))
        at = bisect_right(times, time_ns)
        times.insert(at, time_ns)
        slots.insert(at, slot)
        if len(times) > _MOST_KEPT:
            del times[:-_LEFT], slots[:-_LEFT]

    def get(self, key: Hashable, time_ns: int) -> Slot | None:
        """What `key` stands for at a time."""
        found = self._changes.get(key)
        at = 0 if found is None else bisect_right(found[0], time_ns)
        return found[1][at - 1] if found is not None and at else None

    def last(self, key: Hashable, time_ns: int) -> Slot | None:
        """What `key` stood for last, up to a time: who closes something may still be at it, as long as that takes."""
        times, slots = self._changes.get(key, ([], []))
        if time_ns > self._gone_ns.get(key, time_ns):
            return None
        before = reversed(slots[: bisect_right(times, time_ns)])
        return next((slot for slot in before if slot is not None), None)

    def items(self, time_ns: int) -> Iterator[tuple[Hashable, Slot]]:
        """All that stands for something at a time."""
        for key in self._changes:
            slot = self.get(key, time_ns)
            if slot is not None:
                yield key, slot

    def copy(self, time_ns: int, *, over_exec: bool = False) -> Slots:
        """The references of a process that starts with those that are here at a time; of a program, with those that
        stay when it is executed."""
        made = Slots()
        for key, slot in self.items(time_ns):
            if not (over_exec and slot.closes_on_exec):
                made.set(key, time_ns, slot)
        return made
