"""A session of probes that has a process followed, and recorded, from where a thread comes to a place on.

Runs in the controller, in the thread that owns the session.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from clew.errors import ClewError, ControlError
from clew.sessions.probes.asked import N_NUMBERS
from clew.sessions.probes.backends import BackendChoice
from clew.sessions.probes.probed_target import ProbedTarget
from clew.sessions.probes.session_targets import SessionTargets
from clew.sessions.probes.specs import ProbeSpec, RecordWish, Trigger, TriggerAction

if TYPE_CHECKING:
    from clew.address import Pid
    from clew.sessions.probes.following import Following
    from clew.sessions.probes.probe import ProbePlace
    from clew.sessions.probes.waiting import Waiting

__all__ = ["FollowingSession", "records"]


class FollowingSession(SessionTargets):
    """`record` says where that is recorded which a trigger has followed. One process is, from one event on."""

    def __init__(self, choice: BackendChoice, newest_bytes: int, record: RecordWish | None) -> None:
        super().__init__(choice, newest_bytes)
        self._record = record
        self.following: Following | None = None
        """What follows the process on of which a thread has come to where that was asked for."""
        self.notes: list[str] = []
        """What was done about that, for people."""
        self._followers: dict[Pid, Following] = {}
        self._has_refused = False

    def follow_on(self, waiting: Waiting) -> None:
        """Have the process followed from where a thread waits, with the same probes, unless one is already. Where that
        can't be the probes stay, which is told."""
        if self.following is not None or self._has_refused or self._record is None:
            return
        target, name = waiting.target, self._specs[(waiting.number - 1) // N_NUMBERS].name
        met_ns = time.time_ns()
        try:
            following = self._follow_on(waiting, self._record)
        except ClewError as error:
            self._has_refused = True
            note = f"{name}: process {target.pid} is not followed: {error}"
        else:
            at = datetime.fromtimestamp(met_ns / 1e9).strftime("%H:%M:%S.%f")[:-3]
            note = (
                f"{name}: thread {waiting.tid} of process {target.pid} came there at {at}; the process is followed from"
                f" there on, and recorded in {self._record.output}; its threads were held for"
                f" {following.held_seconds * 1000:,.0f} ms"
            )
        self.notes.append(note)
        self.remark(note)
        found = self._followers.get(target.pid)
        if found is not None:
            self._findings.remarks += found.take_remarks()
            self.left += found.left
            if found.has_taken_out and isinstance(target, ProbedTarget):
                self._let_go_of_taken_out(target, found)
        self.remove(index for index in self._wanted if records(self._specs[index]))

    def _follow_on(self, waiting: Waiting, wish: RecordWish) -> Following:
        target = waiting.target
        if not isinstance(target, ProbedTarget):
            raise ControlError("another session has it")
        if self.guests.in_target(target):
            raise ControlError("other sessions have probes there")
        wanted = [index for index in self._wanted if self._specs[index].has_events]
        specs = [(index, self._specs[index]) for index in wanted if self._is_for(index, target.origins)]
        following = wish.follower.follow(wish, waiting, specs, self.reader, self.images)
        self._followers[target.pid] = following
        following.begin()
        return following

    def _let_go_of_taken_out(self, target: ProbedTarget, following: Following) -> None:
        """The probes of a process are out, which is followed now, if that went well. Its forks' children have them
        anew."""
        left, children = target.leave()
        self.left += left
        self._executing = [one for one in self._executing if one.target is not target]
        self.drain_last(target)
        self.forget(target)
        self.guests.forget(target)
        if following.is_following:
            self.following = following
        elif not target.has_ended():
            children = [target.pid, *children]
        target.release()
        for child in children:
            with self.remarked(f"process {child}: has no probes any more"):
                self.attach(child, target.origins)

    @abstractmethod
    def remove(self, indices: Iterable[int]) -> None:
        """Have these probes nowhere any more, until they are enabled. Raises TargetError, UsageError."""

    def followed_places(self, index: int) -> list[ProbePlace]:
        """Where a probe is in a process that is followed."""
        return [] if self.following is None else self.following.places(index)

    @property
    def recorded(self) -> Path | None:
        """Where what was followed is recorded, once the session is closed."""
        return None if self.following is None else self.following.recorded

    def find_follower(self, pid: Pid) -> Following | None:
        """What follows a process."""
        found = self._followers.get(pid)
        return found if found is not None and (found is self.following or found.wait_status is not None) else None

    def close(self) -> None:
        """Leave what is followed, and all else."""
        if self.following is not None:
            self.left += self.following.close()
        super().close()


def records(spec: ProbeSpec) -> bool:
    """Whether it has a process followed."""
    return isinstance(spec.consequence, Trigger) and spec.consequence.action == TriggerAction.RECORD
