"""How often a session's target makes calls that descriptions know, and how long they take: added up in the target.

Runs in the controller, in any thread. Nothing is written down call by call, so a million calls cost no more than one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final

from clew.api.captures import capture_of
from clew.api.vocabulary import MAX_ERRNO
from clew.dataclass import dataclass, replace
from clew.sessions.aggregate_table import AggregateWish
from clew.sessions.where import MAX_SYSTEM_CALLS

if TYPE_CHECKING:
    from clew.api.descriptions import Descriptions
    from clew.sessions.api_calls import ApiCall
    from clew.sessions.session import Session

__all__ = ["ApiCount", "ApiCounts", "CallSums"]

_HAS_FAILED: Final = f"retval >= {(1 << 64) - MAX_ERRNO:#x}"
"""As an unsigned number, as the kernel asks (IS_ERR_VALUE): the fewer operations, since each call works it out."""
_DURATION: Final = "duration"


@dataclass(frozen=True)
class ApiCount:
    """Calls of function `name`: how many, how many failed, and how long they took, all and those, in nanoseconds.
    `is_raw`: nobody knows its parameters."""

    name: str
    calls: int
    errors: int
    total_ns: int
    failed_ns: int
    is_raw: bool = False


class ApiCounts:
    """Of the system calls of a session's target, all of them, or those of `filters`."""

    def __init__(self, session: Session, descriptions: Descriptions, filters: Iterable[str] = ()) -> None:
        chosen = descriptions.system_calls_of(set(filters), MAX_SYSTEM_CALLS)
        self._functions = [function for _, function in chosen]
        # What does not return is counted when it begins.
        returning = AggregateWish([_HAS_FAILED], _DURATION, None, 2, has_histogram=False)
        other = AggregateWish([], None, None, 1, has_histogram=False)
        returns = [capture_of(function, descriptions).returns for function in self._functions]
        replacing = [number for number, function in chosen if function.unreturned is not None]
        made = session.add_up_all(
            [
                *(
                    (f"syscall:{number}", returning if has_returned else other, has_returned)
                    for (number, _), has_returned in zip(chosen, returns, strict=True)
                ),
                *((f"syscall:{number}", other, False) for number in replacing),
            ]
        )
        self._aggregates, begun = made[: len(chosen)], made[len(chosen) :]
        self._begun = dict(zip(replacing, begun, strict=True))
        """Of those that return only where they fail: how many began."""
        self._numbers = [number for number, _ in chosen]

    def read(self) -> list[ApiCount]:
        """Those that were made since the beginning, at least once, in the order of their numbers."""
        found = []
        for number, function, aggregate in zip(self._numbers, self._functions, self._aggregates, strict=True):
            rows = aggregate.read().to_pylist()
            failed = [row for row in rows if row.get(_HAS_FAILED)]
            calls, errors = (sum(row["count"] for row in some) for some in (rows, failed))
            if number in self._begun:
                calls = sum(self._begun[number].read()["count"].to_pylist())
            total_ns, failed_ns = (sum(row.get("sum") or 0 for row in some) for some in (rows, failed))
            if calls:
                is_raw = function.parameters is None
                found.append(ApiCount(function.name, calls, errors, total_ns, failed_ns, is_raw))
        return found


class CallSums:
    """Of calls that were read one by one, as functions of libraries are: of those that `choose` leaves."""

    def __init__(self, choose: Callable[[Sequence[ApiCall]], Iterable[ApiCall]]) -> None:
        self._choose = choose
        self._found: dict[str, ApiCount] = {}

    def add(self, calls: Sequence[ApiCall]) -> None:
        """Add up some more."""
        for call in self._choose(calls):
            name, ns = call.function.name, call.duration_ns or 0
            before = self._found.get(name) or ApiCount(name, 0, 0, 0, 0, call.function.parameters is None)
            self._found[name] = replace(
                before,
                calls=before.calls + 1,
                errors=before.errors + call.has_failed,
                total_ns=before.total_ns + ns,
                failed_ns=before.failed_ns + ns * call.has_failed,
            )

    def read(self) -> list[ApiCount]:
        """Those that were made by now."""
        return list(self._found.values())
