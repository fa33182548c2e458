"""What a session has done with translated code: made anew, or made ahead.

Runs in the controller: asked for in any thread, done in the one that owns the target.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from clew.errors import ControlError, UsageError
from clew.process.linux import PROT_EXEC
from clew.process.maps import read_maps
from clew.protocol._constants import MAX_PREFETCHED, Mode
from clew.recording.options.filters import EVERYTHING, CodeMapping, Filter, FilterSet, parse_filters

if TYPE_CHECKING:
    from clew.recording.control.commands import Control
    from clew.recording.following.followed import FollowedProcess
    from clew.sessions.target import SessionTarget
    from clew.sessions.transforms.transformers import Transformers

__all__ = ["have_all_recorded", "invalidate", "prefetch"]

PREFETCH_SECONDS: Final = 5.0
"""How long threads may take to look at what is to be translated."""


def invalidate(target: SessionTarget, where: str | Iterable[str] | None, transformers: Transformers | None) -> None:
    """Have what was translated of some code go out of use, in all processes. Raises FilterError, ControlError."""
    texts = [where] if isinstance(where, str) else list(where or ())
    filters = (EVERYTHING,) if where is None else parse_filters(texts)
    n_ranges = 0

    def tell(followed: FollowedProcess) -> None:
        nonlocal n_ranges
        ranges = _find_ranges(followed, filters)
        if not ranges:
            return
        n_ranges += len(ranges)
        if transformers is not None:
            transformers.forget(followed, ranges)
        followed.shared.orders.tell_invalidated(ranges)
        followed.shared.give_directive()

    def steps(control: Control) -> Iterator[bool | None]:
        control.refuse_in_region("invalidate")

        def change() -> None:
            for followed in control.processes.live:
                tell(followed)

        for _ in control.changing(lambda: control.processes.live, change):
            yield None
        yield True

    target.run(steps)
    if not n_ranges:
        raise ControlError(f"{', '.join(texts)}: nothing that is loaded is called so")


def _find_ranges(followed: FollowedProcess, filters: tuple[Filter, ...]) -> list[tuple[int, int]]:
    if EVERYTHING in filters:
        return [(0, (1 << 64) - 1)]
    try:
        mappings = read_maps(followed.memory_pid)
    except OSError:
        # It has just ended.
        return []
    pieces = [CodeMapping.of(one) for one in mappings if one.protection & PROT_EXEC]
    finder = FilterSet((), ())
    return [(start, end) for item in filters for piece in pieces for start, end, _ in finder.rows_of(item, True, piece)]


def prefetch(target: SessionTarget, addresses: Sequence[int]) -> None:
    """Have blocks translated by a thread of the first process. Raises UsageError, ControlError."""
    for address in addresses:
        if not 0 <= address < 1 << 64:
            raise UsageError(f"{address!r}: no address")

    def steps(control: Control) -> Iterator[bool | None]:
        mode = control.processes.mode
        if mode in (Mode.COVERAGE, Mode.REGION):
            raise ControlError(f"mode {mode.name.lower()} has code only that is executed: nothing is translated ahead")
        followed = control.find({"pid": target.pid})
        holding = control.processes.holdings.of(followed)
        orders, left = followed.shared.orders, addresses
        deadline = time.monotonic() + PREFETCH_SECONDS

        def may_wait() -> bool:
            return not holding.is_held and followed in control.processes.live and time.monotonic() < deadline

        while left:
            n_told = orders.tell_ahead(left)
            left = left[n_told:]
            if n_told:
                followed.shared.give_directive()
                if not holding.is_held:
                    holding.bring_in()
                deadline = time.monotonic() + PREFETCH_SECONDS
            elif not may_wait():
                raise ControlError(f"{len(left)} addresses are too many: {MAX_PREFETCHED} may wait for a thread")
            yield None
        while orders.n_waiting and may_wait():
            yield None
        yield True

    target.run(steps)


def have_all_recorded(target: SessionTarget) -> None:
    """Have all recorded that is in the rings now, of a process that is still there."""

    def steps(control: Control) -> Iterator[bool | None]:
        control.find({"pid": target.pid})
        # A look at the rings may be under way; behind the next one everything is there.
        yield None
        yield None
        yield True

    target.run(steps)
