"""Where planned probes change bytes, or displace instructions: others keep out of their way, or share with them.

Runs in the controller. Pure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from clew.probing.native import Forbidding, SitePlan

if TYPE_CHECKING:
    from clew.probing.planning import Foreign, Group

__all__ = ["Claims", "Taken"]

_LINE_SHIFT: Final = 4
_TAKEN: Final = "is in the way of another probe"


class Claims:
    """Where bytes are changed, or have to stay what they are, and where instructions are displaced, by which groups."""

    def __init__(self) -> None:
        self._lines: dict[int, Group | tuple[Group, ...]] = {}
        """By so many bytes, each with all that have some of them, the one first that was there first. There may be
        hundreds of thousands."""

    def add(self, group: Group) -> None:
        """Have one more."""
        lines = self._lines
        for line in _lines_of(group.plan):
            known = lines.get(line)
            if known is None:
                lines[line] = group
            else:
                lines[line] = (*known, group) if known.__class__ is tuple else (known, group)  # type: ignore[assignment]

    def remove(self, group: Group) -> None:
        """Have it no more."""
        lines = self._lines
        for line in _lines_of(group.plan):
            left = tuple(one for one in self._at(line) if one is not group)
            if not left:
                del lines[line]
            else:
                lines[line] = left if len(left) > 1 else left[0]

    def _at(self, line: int) -> tuple[Group, ...]:
        known = self._lines.get(line)
        if known is None:
            return ()
        return known if isinstance(known, tuple) else (known,)

    def is_clear(self, start: int, end: int) -> bool:
        """Whether nobody has anything near the bytes from `start` to in front of `end`, as far as a glance tells."""
        first, last = start >> _LINE_SHIFT, end - 1 >> _LINE_SHIFT
        return first not in self._lines and (first == last or (last == first + 1 and last not in self._lines))

    def find(self, start: int, end: int) -> Iterator[Group]:
        """The groups with bytes from `start` to in front of `end`; one may come more than once."""
        lines = self._lines
        for line in range(start >> _LINE_SHIFT, (end - 1 >> _LINE_SHIFT) + 1):
            if line in lines:
                for group in self._at(line):
                    if _claims(group.plan, start, end):
                        yield group

    def find_displacing(self, address: int) -> Group | None:
        """The group that displaces the instruction at an address."""
        if address >> _LINE_SHIFT not in self._lines:
            return None
        groups = self._at(address >> _LINE_SHIFT)
        return next((one for one in groups if one.plan.find_displaced(address) is not None), None)


def _lines_of(plan: SitePlan) -> Iterable[int]:
    start, end = min(plan.patch_address, plan.first), max(plan.patch_end, plan.displaced_end)
    lines = range(start >> _LINE_SHIFT, (end - 1 >> _LINE_SHIFT) + 1)
    if not plan.branches:
        return lines
    found = set(lines)
    for one in plan.branches:
        found.update(range(one.address >> _LINE_SHIFT, (one.end - 1 >> _LINE_SHIFT) + 1))
    return found


def _claims(plan: SitePlan, start: int, end: int) -> bool:
    """Whether a plan has bytes that are changed, or have to stay what they are, from `start` to in front of `end`."""
    if plan.patch_address < end and start < plan.patch_end:
        return True
    return any(one.address < end and start < one.end for one in plan.branches)


class Taken(Forbidding):
    """What may not be touched for a site: what is not what its file has, and what groups have, but for some."""

    __slots__ = ("_but_for", "_claims", "_foreign")

    def __init__(self, foreign: Sequence[Foreign], claims: Claims, but_for: Sequence[Group] = ()) -> None:
        self._foreign, self._claims, self._but_for = foreign, claims, but_for

    def find(self, start: int, end: int) -> str | None:
        for one in self._foreign:
            if start < one.end and one.start < end:
                return one.reason
        if self._claims.is_clear(start, end):
            return None
        return _TAKEN if any(one not in self._but_for for one in self._claims.find(start, end)) else None
