"""What somebody asks of a session to be taken at a function, read: where, and which values.

Runs in the controller, in any thread. Here, since debugging information may take its time, and threads are stopped
where places are added (`places.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from clew.errors import CaptureError, UsageError
from clew.protocol._constants import MAX_CAPTURE_FIELDS
from clew.sessions.wanted import Wanted
from clew.sessions.where import NOWHERE, Where, parse_where

if TYPE_CHECKING:
    from clew.sessions.target import SessionTarget

__all__ = ["LogWish", "Wishing"]


class LogWish(NamedTuple):
    """A log that is asked for: of calls of the function `where`, or of their returns; None: of what somebody says.

    `tells_left`: of calls, too, that are over without having returned (`CallLog.tells_left`).
    `on_choice`, where images are looked at: `where` is not meant, but what that returns (`choosers.py`), of which is
    told whether it is recorded there.
    """

    where: str | int | Where | None
    capture: str | Iterable[str]
    condition: str | None = None
    has_returned: bool = False
    tells_left: bool = False
    on_choice: Callable[[bool], None] | None = None


class Wishing:
    """Of one session's target."""

    def __init__(self, target: SessionTarget) -> None:
        self._target = target

    def read(
        self,
        where: str | int | Where | None,
        capture: Iterable[str],
        condition: str | None,
        *,
        has_returned: bool = False,
        keeps_types: bool = False,
    ) -> tuple[Where, Wanted]:
        """Where something is to be taken, and what, as far as that is known by now. Raises CaptureError, UsageError."""
        place = _place_of(where)
        return place, self._read_at(place, capture, condition, has_returned=has_returned, keeps_types=keeps_types)

    def read_all(self, wishes: Iterable[LogWish]) -> list[tuple[Where, Wanted]]:
        """The same of logs. Most calls take what others take: that is compiled once, where it has one form
        everywhere."""
        known: dict[tuple[bool, bool, bool, str | None, tuple[str, ...]], Wanted] = {}
        read: list[tuple[Where, Wanted]] = []
        for wish in wishes:
            place, has_returned = _place_of(wish.where), wish.has_returned
            capture = (wish.capture,) if isinstance(wish.capture, str) else tuple(wish.capture)
            if len(capture) > MAX_CAPTURE_FIELDS:
                raise CaptureError(f"{len(capture)} values: a log takes {MAX_CAPTURE_FIELDS} at most")
            key = (place.is_system_call, place.is_ring_operation, has_returned, wish.condition, capture)
            wanted = known.get(key)
            if wanted is None:
                wanted = self._read_at(place, capture, wish.condition, has_returned=has_returned, keeps_types=True)
                if not wanted.is_placed:
                    known[key] = wanted
            read.append((place, wanted))
        return read

    def _read_at(
        self, place: Where, capture: Iterable[str], condition: str | None, *, has_returned: bool, keeps_types: bool
    ) -> Wanted:
        target = self._target
        if place.is_system_call and not keeps_types:
            raise UsageError(f"{place.text}: no thread stops in a system call; it is logged, or added up")
        machine = target.machine(of_system_calls=place.is_system_call, of_rings=place.is_ring_operation)
        wanted = Wanted(capture, condition, machine, target.images, has_returned=has_returned, keeps_types=keeps_types)
        if wanted.is_placed:
            for address in sorted(place.find_in(target.images, target.read_maps())):
                wanted.prepare(target.pid, address)
        if keeps_types:
            wanted.kinds()
        return wanted


def _place_of(where: str | int | Where | None) -> Where:
    return where if isinstance(where, Where) else NOWHERE if where is None else parse_where(where)
