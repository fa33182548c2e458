"""What the runtimes ask of the controller, and who answers it.

Runs in the controller, in one thread. A request comes from the target: its numbers are checked by whoever uses them.
"""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from clew.address import Pid
from clew.process.maps import read_maps
from clew.protocol._constants import RequestKind
from clew.recording.following.awaited_children import AwaitedChildren
from clew.recording.following.executions import Executions
from clew.recording.following.filters_live import LiveFilters
from clew.recording.following.holdings import Holdings
from clew.recording.following.region import FollowedRegion
from clew.recording.following.roster import Roster
from clew.recording.following.tracers import Tracers
from clew.recording.following.unborn import Unborn
from clew.recording.sinks.sink import Fork

if TYPE_CHECKING:
    from clew.recording.drain.request import Request

__all__ = ["Answers"]


class Answers:
    """By what is asked: each of the others answers what is its own."""

    def __init__(
        self,
        roster: Roster,
        filters: LiveFilters,
        unborn: Unborn,
        awaited_children: AwaitedChildren,
        executions: Executions,
        tracers: Tracers,
        holdings: Holdings,
    ) -> None:
        self._roster, self._filters = roster, filters
        self._unborn, self._awaited_children = unborn, awaited_children
        self._executions, self._tracers, self._holdings = executions, tracers, holdings
        self.is_leaving = False
        """Programs that are executed from now on are let be."""

    def answer(self, region: FollowedRegion, request: Request) -> int | None:
        """What a request is answered; None: later."""
        followed = region.process
        if followed is None:
            # A child says first who it is.
            return self._adopt(region, request) if request.kind == RequestKind.ADOPT else 0
        match request.kind:
            case RequestKind.IMAGE_FILTERS:
                start, end = request.arguments[:2]
                with contextlib.suppress(OSError):
                    mapped = [one for one in read_maps(followed.memory_pid) if one.start < end and start < one.end]
                    self._filters.tell(followed.shared, mapped)
                    self._roster.tell_mapped(followed, mapped)
            case RequestKind.FORK:
                if not request.arguments[0]:
                    return self._unborn.expect(followed)
                self._unborn.cancel(followed, request.arguments[0])
            case RequestKind.CHILD:
                return self._awaited_children.answer(followed, request)
            case RequestKind.EXECVE:
                return 0 if self.is_leaving else self._executions.begin(followed, request)
            case RequestKind.EXECVE_FAILED:
                return self._executions.fail(followed, request)
            case RequestKind.MAPPING:
                return followed.tell_mapping(request.slot, request.arguments[0])
            case RequestKind.TRACE | RequestKind.WRITE:
                return self._tracers.answer(followed, request)
            case RequestKind.BORN:
                if followed.drain is not None:
                    followed.drain.take_birth(request.arguments[0])
            case RequestKind.HOLD:
                return self._holdings.of(followed).answer(request)
        return 0

    def _adopt(self, region: FollowedRegion, request: Request) -> int:
        """A child says which process it is, and when it was made: 1 if it is followed."""
        claimed, fork_tsc = request.arguments[:2]
        adopted = self._unborn.adopt(region, Pid(claimed))
        if adopted is None:
            return 0
        followed, parent = adopted
        self._roster.start(followed, time.time_ns(), None, Fork(parent.number, fork_tsc))
        self._holdings.inherit(followed, parent)
        return 1
