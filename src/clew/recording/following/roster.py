"""Who is followed now, and how those end.

Runs in the controller, in one thread.
"""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from clew.address import Pid
from clew.process.descriptor_limit import DescriptorLimit
from clew.process.doorbell import MAX_BELLS, Doorbell
from clew.process.identity import maps_region
from clew.process.injection_plan import InjectionPlan
from clew.process.maps import Mapping
from clew.process.processors.chosen import native_processor
from clew.process.shared_memory import SharedMemory
from clew.protocol._constants import Mode
from clew.recording.following.exits import Exits
from clew.recording.following.followed import FollowedProcess
from clew.recording.following.region import FollowedRegion
from clew.recording.following.statistics import Statistics
from clew.recording.journal.sink import JournalSink, ProcessJournal
from clew.recording.sinks.sink import Fork, Identity, ProcessEnd, ProcessSink, ProcessStart, Sink

if TYPE_CHECKING:
    from clew.recording.drain.request import Request

__all__ = ["OnCode", "Roster"]

OnCode = Callable[[FollowedProcess, list[Mapping]], None]
"""Is told of executable mappings of a process, in the recording's one thread, before any thread executes them."""


class Roster:
    """Those that are followed, what wakes the controller for them, and what is known of those that ended.

    `answer` is asked for what comes as a request through a region; None: later. `note_birth` takes the region through
    which it comes, and the region's number and the process id of each child that is made. What comes of them goes to
    `journal`, and then to the other `sinks`. `warn` takes lines for people.
    """

    def __init__(
        self,
        journal: JournalSink,
        sinks: Sequence[Sink],
        mode: Mode,
        answer: Callable[[FollowedRegion, Request], int | None],
        note_birth: Callable[[FollowedRegion, int, int], None],
        warn: Callable[[str], None],
    ) -> None:
        self._journal, self._sinks = journal, sinks
        self._warn = warn
        self._mode = mode
        self._has_paths = mode == Mode.FULL
        self._answer = answer
        self._note_birth = note_birth
        self._n_met = 0
        self._doorbell = Doorbell()
        self._descriptors = DescriptorLimit()
        self._poll = select.poll()
        self._poll.register(self._doorbell.fd, select.POLLIN)
        self._by_pidfd: dict[int, FollowedProcess] = {}
        self.exits = Exits(self._poll)
        self.statistics = Statistics()
        self.live: list[FollowedProcess] = []
        """Those that are followed now, in the order in which they came."""
        self._kept: list[FollowedProcess] = []
        self.on_start: list[OnCode] = []
        self.on_code: list[OnCode] = []
        """Are told of the code of a program that begins, and of what a process maps."""

    def is_live(self, pid: Pid) -> bool:
        """Whether process `pid` is followed now."""
        return any(process.pid == pid and not process.has_ended for process in self.live)

    def is_kept(self, pid: Pid) -> bool:
        """Whether process `pid` has ended, and another tracer of it has not let it go yet."""
        return any(process.pid == pid for process in self._kept)

    def is_heard(self, n_others: int) -> bool:
        """Whether each of them, and `n_others` to come, can wake who waits."""
        return self._doorbell.is_working and len(self.live) + n_others <= MAX_BELLS

    def wait(self, delay_seconds: float) -> list[FollowedProcess]:
        """Wait up to `delay_seconds`, or until one rings or ends: those that have ended."""
        ready = [fd for fd, _ in self._poll.poll(delay_seconds * 1000)]
        if self._doorbell.fd in ready:
            self._doorbell.answer()
        self.exits.note_ready(ready)
        ended = [self._by_pidfd[fd] for fd in ready if fd in self._by_pidfd]
        for followed in ended:
            if self.exits.is_kept(followed.pid):
                # As whoever waits for it natively; it is asked for again each time.
                self._kept.append(followed)
                self._poll.unregister(followed.pidfd)
        return [one for one in [*ended, *self._kept] if one not in self._kept or not self.exits.is_kept(one.pid)]

    def watch(self, fd: int) -> None:
        """Have `wait` return when there is something to read."""
        self._poll.register(fd, select.POLLIN)

    def forget_watched(self, fd: int) -> None:
        """No longer."""
        self._poll.unregister(fd)

    def meet(self, shared: SharedMemory, plan: InjectionPlan) -> FollowedRegion:
        """What one speaks through, or is about to."""
        region = FollowedRegion(*self._open_next(), shared, plan, self._mode)
        self._doorbell.watch(shared)
        return region

    def _open_next(self) -> tuple[ProcessJournal, ProcessSink]:
        """The journal of the next process, and what gives it, and others, what that brings."""
        number = self._n_met
        self._n_met += 1
        journal = self._journal.open_process(number)
        if not self._sinks:
            return journal, journal
        # Most recordings have the journal alone.
        from clew.recording.sinks.fan_out import fan_out

        return journal, fan_out(journal, self._sinks, number, self._warn)

    def forget(self, shared: SharedMemory) -> None:
        """Who was to speak through `shared` will not."""
        self._doorbell.forget(shared)

    def start(
        self, followed: FollowedProcess, start_ns: int, mappings: list[Mapping] | None, fork: Fork | None
    ) -> None:
        """Follow one, with the executable `mappings` or from a fork."""
        # Not before there is a process to follow: one that is started here has the limit as it was.
        self._descriptors.lift()
        followed.tell_start(start_ns, mappings, fork)
        self.live.append(followed)
        self._watch(followed, followed.pidfd)
        for tell in self.on_start:
            tell(followed, mappings or [])
        if self.on_code:
            followed.shared.ask_about_images()
        self.tell_mapped(followed, mappings or [])

    def tell_mapped(self, followed: FollowedProcess, mappings: list[Mapping]) -> None:
        """Code was mapped, and a thread waits until that is told."""
        for tell in self.on_code:
            tell(followed, mappings)

    def drain(self, region: FollowedRegion) -> int:
        """Take what is there, and answer: how many bytes of records came."""
        if region.drain is None:
            # Late: the target runs already while this is imported.
            from clew.recording.drain.drain import Drain

            who = region.process and region.process.who
            region.drain = Drain(
                region.shared,
                region.sink,
                who.pid if who else Pid(0),
                process_name=who.name if who else "",
                answer=lambda request: self._answer(region, request),
                mode=self._mode,
                note_birth=lambda child, number: self._note_birth(region, child, number),
                has_paths=self._has_paths,
            )
        return region.attempt(lambda drain: drain.poll())

    def set_mode(self, mode: Mode, unborn: Iterable[FollowedRegion], *, tells_accesses: bool) -> None:
        """Modes counts and full: which of them it is from now on, of those that did not speak yet, too; and whether
        full tells of accesses to memory.

        All threads must be stopped.
        """
        self._mode = mode
        self._has_paths |= mode == Mode.FULL
        for region in [*(followed.region for followed in self.live), *unborn]:
            if region.drain is not None and self._has_paths:
                region.drain.take_paths()
            region.shared.set_records_order(mode == Mode.FULL, tells_accesses=tells_accesses)

    def take_pidfd(self, followed: FollowedProcess) -> int:
        """No longer hear of its end by its pidfd, which is the caller's from now on."""
        pidfd, followed.pidfd = followed.pidfd, -1
        if followed in self._kept:
            self._kept.remove(followed)
        else:
            self._poll.unregister(pidfd)
        del self._by_pidfd[pidfd]
        return pidfd

    def note_end(self, followed: FollowedProcess) -> None:
        """It has ended: learn how."""
        if not followed.has_ended:
            self._learn_end(followed)
        self.settle(followed)

    def bury(self, followed: FollowedProcess, start_ns: int, fork: Fork) -> None:
        """Tell of a child that has ended before it began."""
        followed.tell_start(start_ns, None, fork, has_ended=True)
        self._learn_end(followed)
        self._doorbell.forget(followed.shared)
        followed.finish(goes_on=False)
        if followed.pidfd >= 0:
            os.close(followed.pidfd)

    def tell_ended(self, identity: Identity, start_ns: int, status: int) -> None:
        """Tell of a process, or of the program that one executes, which ended before the runtime was in it."""
        _, sink = self._open_next()
        sink.begin(ProcessStart(identity, native_processor().architecture.name, self._mode, start_ns, [], None, None))
        sink.end(ProcessEnd(time.time_ns(), *_parse_status(status), is_lost=False, warnings=[]))

    def _learn_end(self, followed: FollowedProcess) -> None:
        status = self.exits.collect(followed.pid, followed.pidfd)
        if status is None:
            followed.warnings.append(f"how process {followed.pid} ended is not known: somebody else waited for it")
            followed.note_end(None, None)
        else:
            followed.note_end(*_parse_status(status))

    def settle(self, followed: FollowedProcess) -> None:
        """Finish a process that has ended, or follow on where another one shares its memory, until that one ends."""
        survivor = followed.find_survivor()
        if followed.pidfd >= 0:
            os.close(self.take_pidfd(followed))
        try:
            if survivor is not None:
                self._watch(followed, os.pidfd_open(survivor))
                followed.memory_pid = survivor
                return
        except OSError as error:
            followed.warnings.append(f"what shares the memory of process {followed.pid} goes on unfollowed: {error}")
        self.finish(followed, goes_on=survivor is not None)

    def settle_ended(self) -> None:
        """Finish the processes that have ended, and whose memory nobody shares any more."""
        for followed in list(self.live):
            if followed.has_ended and not maps_region(followed.memory_pid, followed.shared):
                self.settle(followed)

    def lose(self, followed: FollowedProcess) -> None:
        """End the following of a process whose drain has failed; it goes on, and soon takes clew for gone."""
        pidfd = self.take_pidfd(followed)
        self.finish(followed, goes_on=True)
        self.exits.wait_for(followed.pid, pidfd)

    def finish(self, followed: FollowedProcess, *, goes_on: bool = False) -> None:
        """Take the rest of what it recorded, and follow it no more."""
        self.drain(followed.region)
        self._doorbell.forget(followed.shared)
        status = followed.finish(goes_on=goes_on)
        if status is not None:
            self.statistics.add(status, followed.n_inherited_counters)
        self.live.remove(followed)
        if followed.pidfd >= 0:
            os.close(self.take_pidfd(followed))

    def close(self) -> None:
        """Nobody is followed any more."""
        self._doorbell.close()
        self._descriptors.restore()

    def _watch(self, followed: FollowedProcess, pidfd: int) -> None:
        """Hear of the end of the process that `pidfd` is of."""
        followed.pidfd = pidfd
        self._by_pidfd[pidfd] = followed
        self._poll.register(pidfd, select.POLLIN)


def _parse_status(status: int) -> tuple[int | None, int | None]:
    """Exit code and signal of a wait status, one of which is None."""
    return (None, os.WTERMSIG(status)) if os.WIFSIGNALED(status) else (os.WEXITSTATUS(status), None)
