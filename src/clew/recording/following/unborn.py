"""Children that are about to be made: a region of the shared memory for each, until the child speaks through it.

Runs in the controller. What is asked comes from the target and is checked: a process number counts only if that process
maps the region.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import time
from collections.abc import Callable, Iterator
from typing import Final

from clew.address import Pid
from clew.dataclass import dataclass, replace
from clew.errors import ClewError
from clew.process.identity import is_ending, is_mapped, maps_region, read_parent, read_stat
from clew.process.injection_plan import InjectionPlan
from clew.process.shared_memory import SharedMemory
from clew.process.tasks import find_child_inside, find_process
from clew.protocol._constants import FULL_WAIT_SECONDS
from clew.recording.following.followed import FollowedProcess, read_identity
from clew.recording.following.region import FollowedRegion

__all__ = ["Unborn"]

STILLBORN_INTERVAL_SECONDS: Final = 0.05
PID_END: Final = 1 << 22
"""PID_MAX_LIMIT of the kernel."""


@dataclass
class Child:
    """One that did not speak yet. Its parent told its `pid` if that is not 0; `pidfd` is -1 if it was gone by then."""

    region: FollowedRegion
    parent: FollowedProcess
    asked_at: float
    pid: Pid = Pid(0)
    pidfd: int = -1
    born_ns: int = 0

    def close(self) -> None:
        """Let go of its pidfd."""
        if self.pidfd >= 0:
            os.close(self.pidfd)
            self.pidfd = -1

    def waited_in_vain(self) -> bool:
        """Whether it went on natively because nobody answered it: it says so in its region."""
        return self.region.shared.status_u32("unanswered") != 0

    def has_ended(self) -> bool:
        """Whether it is known to have ended."""
        if self.pidfd < 0:
            return self.pid != 0
        poll = select.poll()
        poll.register(self.pidfd, select.POLLIN)
        return bool(poll.poll(0))


class Unborn:
    """Those that did not speak yet, by their regions. `make` makes what follows one, `forget` ends what that began;
    `warn` takes lines for people, `lose` is told of those that can't be followed though they are there.
    """

    def __init__(
        self,
        make: Callable[[SharedMemory, InjectionPlan], FollowedRegion],
        forget: Callable[[SharedMemory], None],
        warn: Callable[[str], None],
        lose: Callable[[str], None],
    ) -> None:
        self._make = make
        self._forget = forget
        self._warn = warn
        self._lose = lose
        self._children: dict[SharedMemory, Child] = {}
        self._look_at = 0.0

    def __len__(self) -> int:
        return len(self._children)

    def __contains__(self, region: FollowedRegion) -> bool:
        return region.shared in self._children

    def __iter__(self) -> Iterator[FollowedRegion]:
        return iter([child.region for child in self._children.values()])

    def regions(self) -> list[tuple[SharedMemory, Pid]]:
        """The regions of all, each with the process in whose copy of memory they begin."""
        return [(shared, child.parent.memory_pid) for shared, child in self._children.items()]

    def expect(self, parent: FollowedProcess) -> int:
        """The number of a region for a child of `parent`; 0: there is none left."""
        try:
            shared = parent.shared.fork()
        except ClewError as error:
            self._warn(f"a child of process {parent.pid} runs unfollowed: {error.message}")
            return 0
        self._children[shared] = Child(self._make(shared, parent.plan), parent, time.monotonic())
        return shared.region

    def cancel(self, parent: FollowedProcess, region: int) -> None:
        """The fork for which `parent` asked for a region has failed."""
        if (child := self._find(parent, region)) is not None:
            self.discard(child.region)

    def note_birth(self, parent: FollowedProcess, region: int, number: int) -> None:
        """`parent` says that it made process `number`, which is to begin in a region."""
        child = self._find(parent, region)
        if child is not None and not child.pid:
            pid = find_child_inside(parent.pid, number) if parent.has_own_namespace else Pid(number)
            if pid is not None:
                self._note_pid(child, pid)

    def _note_pid(self, child: Child, pid: Pid) -> None:
        if not 0 < pid < PID_END:
            return
        try:
            pidfd = os.pidfd_open(pid)
        except ProcessLookupError:
            pidfd = -1
        except OSError:
            return  # A thread's number.
        # Of one that was buried since nothing more can be known.
        fields = read_stat(pid) if pidfd >= 0 else []
        if fields and int(fields[1]) not in (child.parent.pid, child.parent.who.parent_pid, os.getpid()):
            os.close(pidfd)
            return
        child.pid, child.pidfd, child.born_ns = pid, pidfd, time.time_ns()

    def is_known(self, pid: Pid) -> bool:
        """Whether `pid` is one of them, as far as their parents told."""
        return any(child.pid == pid for child in self._children.values())

    def take_stillborn(self) -> list[tuple[Child, FollowedProcess]]:
        """Those that ended before they spoke, and who they were, as far as that is known: their pidfd is that one's."""
        stillborn = [child for child in self._children.values() if child.pid and child.has_ended()]
        for child in stillborn:
            del self._children[child.region.shared]
        return [(child, self._bear(child)) for child in stillborn]

    def _bear(self, child: Child) -> FollowedProcess:
        """One that is not there to be asked: as its parent."""
        who = replace(child.parent.who, pid=child.pid, parent_pid=child.parent.pid)
        return FollowedProcess(child.region, who, child.pidfd, {})

    def _find(self, parent: FollowedProcess, region: int) -> Child | None:
        """Who is to begin in a region of its parent's file."""
        for shared, child in self._children.items():
            if shared.region == region and shared.file is parent.shared.file:
                return child
        return None

    def adopt(self, region: FollowedRegion, claimed: Pid) -> tuple[FollowedProcess, FollowedProcess] | None:
        """It speaks, and says that it is process `claimed`: it, and its parent.

        None: it can't be followed, or has ended.
        """
        child = self._children.get(region.shared)
        if child is None:
            return None
        try:
            # In a namespace of its own it knows itself by another number.
            pid = claimed if maps_region(claimed, region.shared) else find_process(region.shared)
            if pid is None:
                raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
            if child.pid != pid:
                child.close()
                child.pid, child.pidfd = pid, os.pidfd_open(pid)
            who = read_identity(pid, self._find_maker(child, pid))
            if not maps_region(pid, region.shared):
                raise ProcessLookupError(errno.ESRCH, os.strerror(errno.ESRCH))
        except OSError as error:
            self._refuse(child, claimed, error)
            return None
        del self._children[region.shared]
        n_counters = 0
        if region.drain is not None:
            region.drain.tell_process(who.pid, who.name)
            n_counters = int(region.drain.status()["counters_used"])
        followed = FollowedProcess(region, who, child.pidfd, child.parent.written_pages, n_counters)
        return followed, child.parent

    def _refuse(self, child: Child, claimed: Pid, error: OSError) -> None:
        """It can't be adopted, for an `error`: if it has ended it is among the stillborn."""
        if not child.pid and not child.parent.has_ended:
            child.parent.attempt(lambda drain: drain.take_births())
        if is_ending(child.pid or claimed):
            if not child.pid and not child.parent.has_own_namespace:
                self._note_pid(child, claimed)
            return
        reason = "the kernel does not let it be looked at" if error.errno == errno.ESRCH else error
        self._lose(f"a child runs unfollowed: {reason}")
        # It goes on natively, and has the region mapped.
        self.discard(child.region, is_unused=False)

    def _find_maker(self, child: Child, pid: Pid) -> Pid:
        """Who made a child: its parent may have ended since, and then the kernel names who adopted it."""
        parent = child.parent
        present = read_parent(pid)
        # A task that shares the parent's memory, as a vfork's child, is no process of its own here.
        is_maker = present and present != parent.pid and maps_region(present, parent.shared)
        return present if is_maker else parent.pid

    def discard(self, region: FollowedRegion, *, is_unused: bool = True) -> None:
        """Nobody will come: the region is nobody's if it `is_unused`."""
        self._children.pop(region.shared).close()
        self._forget(region.shared)
        region.close_drain()
        region.shared.close(is_unused=is_unused)

    def forget_stillborn(self, *, are_others_live: bool) -> None:
        """Those that never came, and are not known to have ended: never made by a parent that was killed, or gone on
        natively.
        """
        now = time.monotonic()
        if not self._children or now < self._look_at:
            return
        # Where it can't be told they are waited for.
        with contextlib.suppress(OSError):
            for shared, child in list(self._children.items()):
                is_late = now - child.asked_at > 2 * FULL_WAIT_SECONDS
                if is_late and not is_mapped(shared.file, shared.offset):
                    if child.pid and not child.has_ended():
                        self._lose("a child runs unfollowed: it found no place for what is recorded")
                    self.discard(child.region)
                elif not (child.pid or are_others_live or is_mapped(shared.file)):
                    self.discard(child.region)
        self._look_at = time.monotonic() + STILLBORN_INTERVAL_SECONDS
