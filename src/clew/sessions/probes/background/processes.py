"""The processes of a session: put into and taken out of each, children of forks and executed programs among them.

Runs in the controller, in the thread that owns the session.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Any

from clew.address import Pid
from clew.errors import AttachError, ClewError, ControlError
from clew.process.identity import iter_threads, read_stat
from clew.sessions.probes.background.arrivals import Arrivals
from clew.sessions.probes.background.members import Member, Members
from clew.sessions.probes.probe_session import ProbeSession
from clew.sessions.probes.target import Target

__all__ = ["SessionProcesses"]


class SessionProcesses:
    """Those of the session `probes`. `tell` is given what fails where nobody asked for it."""

    def __init__(self, probes: ProbeSession, tell: Callable[[str], None]) -> None:
        self._probes, self._tell = probes, tell
        self._members = Members()
        self._arrivals = Arrivals(probes)
        self._half_left: list[Target] = []
        """Those that could not be left: some of the probes may be there, and none is of use."""

    @property
    def targets(self) -> list[Target]:
        """Those that have their probes."""
        return [target for target in self._probes.targets if target not in self._half_left]

    @property
    def is_busy(self) -> bool:
        """Whether there are some that have probes, or are about to."""
        return bool(self._probes.targets) or self._arrivals.is_busy

    def __contains__(self, pid: Pid) -> bool:
        return pid in self._members

    def has(self, pid: Pid) -> bool:
        """Whether a process is one of them, children of forks included."""
        targets = self._probes.targets
        return pid in self._members or any(pid == target.pid or target.shares_with(pid) for target in targets)

    def add(self, pid: Pid) -> Member:
        """Have one more, which has no probes yet. Raises ControlError if there is none."""
        return self._members.add(pid)

    def attach(self, member: Member) -> None:
        """Have one have its probes. Raises ClewError."""
        found = next((target for target in self._probes.targets if target.pid == member.pid), None)
        if found is None:
            self._probes.attach(member.pid, member.origins)
        elif found in self._half_left:
            raise AttachError(member.pid, f"process {member.pid}: has no probes until it could be stopped")

    def attach_all(self) -> list[str]:
        """Have all have their probes; why some don't. Raises ControlError if none has, and there are some."""
        # Some could not be left the last time.
        failures = self.leave_all()
        members = self._members.living()
        refusals: list[str] = []
        for member in members:
            with _told(refusals.append):
                self.attach(member)
        if members and len(refusals) == len(members):
            raise ControlError("; ".join(refusals))
        return failures + refusals

    def leave_all(self) -> list[str]:
        """Have none have probes; why some do still."""
        failures: list[str] = []
        for target in list(self._probes.targets):
            with _told(failures.append):
                self._leave(target)
        return failures

    def remove(self, pid: Pid) -> None:
        """Have one no more. Raises ClewError."""
        if self._probes.targets:
            self.split_families()
        for target in list(self._probes.targets):
            if target.pid == pid:
                self._leave(target)
        self._members.remove(pid)

    def arrive(self, pid: Pid, mask: list[int], *, is_probed: bool) -> bool:
        """Have one more that is about to execute its program; whether it is followed into that (`Arrivals.begin`)."""
        self._members.add(pid)
        return is_probed and self._arrivals.begin(pid, mask)

    def advance(self) -> None:
        """Go on with those that have arrived."""
        for text in self._arrivals.advance():
            self._tell(text)

    def split_families(self) -> None:
        """Have each stand for itself: changes reach a process alone, and not forks' children that have its probes."""
        children = self._probes.find_children()
        for target in self.targets:
            if children[target.pid]:
                self._renew(target)

    def look_after(self, *, is_active: bool) -> None:
        """Let go of those that have ended, and leave those that could not be left before; forks' children that outlive
        them stand for themselves, and all have probes that are to have some."""
        for target in list(self._probes.targets):
            if target.has_ended() or (target in self._half_left and not _has_stuck_thread(target.pid)):
                with _told(self._tell):
                    if is_active:
                        self._renew(target)
                    else:
                        self._leave(target)
        self._note_executed()

    def describe(self, *, is_active: bool) -> list[dict[str, Any]]:
        """What is told of them."""
        self._note_executed()
        probed = {target.pid for target in self.targets}
        children = self._probes.find_children()
        for target in self.targets:
            for pid in children[target.pid]:
                with contextlib.suppress(ControlError):
                    probed.add(self._members.add(pid, target.origins).pid)
        members = self._members.living()
        return [one.describe() | {"is_probed": is_active and one.pid in probed} for one in members]

    def _renew(self, target: Target) -> None:
        """Leave a process and forks' children of it that have its probes; those that there are still get their own."""
        started = time.monotonic()
        members = [member for member in self._leave(target, keeps_guests=True) if not member.has_ended]
        for member in members:
            with _told(self._tell):
                self.attach(member)
        if members:
            pids = ", ".join(str(member.pid) for member in members)
            seconds = time.monotonic() - started
            self._tell(
                f"process {pids}: nothing was told for {seconds:.2f} s, while forks' children got their own probes"
            )

    def _leave(self, target: Target, *, keeps_guests: bool = False) -> list[Member]:
        """Take the probes out of a process and forks' children of it; those of them that there are still. With
        `keeps_guests` these are about to get them again, and guests theirs."""
        try:
            pids = [target.pid, *self._probes.detach(target, keeps_guests=keeps_guests)]
        except ClewError:
            if target not in self._half_left:
                self._half_left.append(target)
            raise
        if target in self._half_left:
            self._half_left.remove(target)
        found = []
        for pid in pids:
            with contextlib.suppress(ControlError):
                found.append(self._members.add(pid, target.origins))
        return found

    def _note_executed(self) -> None:
        """Programs that were executed by children are processes of the session, too."""
        for target in self._probes.targets:
            if not target.has_ended():
                with contextlib.suppress(ControlError):
                    self._members.add(target.pid, target.origins)
        self._members.forget_ended()


def _has_stuck_thread(pid: Pid) -> bool:
    """Whether a thread waits in the kernel for something that no signal ends, and could not be stopped."""
    try:
        return any(read_stat(Pid(tid))[:1] == [b"D"] for tid in iter_threads(pid))
    except OSError:
        return False


@contextlib.contextmanager
def _told(tell: Callable[[str], object]) -> Iterator[None]:
    """What fails here is told, and no more."""
    try:
        yield
    except ClewError as error:
        tell(error.message)
