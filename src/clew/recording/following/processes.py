"""All processes of a recording: children are adopted, ends noticed, and who asks is answered.

Runs in the controller, in one thread. What is asked comes from the target and is checked: a process number counts only
if that process maps the shared memory it speaks through. How the runtime gets into a program is not known here.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from clew.address import Pid
from clew.dataclass import replace
from clew.process.identity import maps_file, maps_region, read_parent
from clew.process.linux import PROT_EXEC
from clew.process.maps import Mapping, read_maps
from clew.process.runtime_image import RuntimeImage
from clew.process.shared_layout import SharedLayout
from clew.process.shared_memory import HeaderSettings
from clew.process.stopped_process import StoppedProcess
from clew.process.waiting import release_abandoned
from clew.protocol._constants import Mode, ReleaseReason
from clew.recording.following.answers import Answers
from clew.recording.following.awaited_children import AwaitedChildren
from clew.recording.following.budget import Budget
from clew.recording.following.entering import Entering
from clew.recording.following.executions import Executions
from clew.recording.following.filters_live import LiveFilters
from clew.recording.following.followed import FollowedProcess
from clew.recording.following.holdings import Holdings
from clew.recording.following.interventions import Interventions
from clew.recording.following.region import FollowedRegion
from clew.recording.following.roster import OnCode, Roster
from clew.recording.following.snapshot import Snapshots
from clew.recording.following.statistics import Statistics
from clew.recording.following.tracers import Tracers
from clew.recording.following.unborn import Unborn
from clew.recording.journal.sink import JournalSink
from clew.recording.options.filters import Filter, FilterSet
from clew.recording.sinks.sink import Fork, Identity, Sink

if TYPE_CHECKING:
    from clew.process.attach import Attachment
    from clew.recording.drain.request import Request
    from clew.recording.following.changed_code import ChangedCode

__all__ = ["Processes"]

UNHEARD_POLL_SECONDS: Final = 0.002
LOOK_AFTER_SECONDS: Final = 0.1
"""At code that may have changed: of a process that ends before that nobody is told in time."""

MAX_WARNINGS: Final = 20


class Processes:
    """Those that are followed now. The first one is added by `add`; the others come by themselves.

    What they bring goes to `journal`, and then to the other `sinks`.
    """

    def __init__(
        self,
        journal: JournalSink,
        image: RuntimeImage,
        settings: HeaderSettings,
        filters: FilterSet,
        sinks: Sequence[Sink] = (),
    ) -> None:
        self._filters = LiveFilters(filters)
        self._roster = Roster(journal, sinks, settings.mode, self._answer, self._note_birth, self._warn)
        self._exits = self._roster.exits
        self._executions = Executions(self._lose_program)
        self._entering = Entering(image, settings, self._filters, self._roster, self._executions, self._lose_program)
        self._interventions = Interventions(self._roster, self._executions, self.poll)
        self.holdings = Holdings(self._interventions.bring_in)
        """Which of their threads are stopped."""
        self._budget = Budget(settings.budget)
        self._unborn = Unborn(self._roster.meet, self._roster.forget, self._warn, self._lose_child)
        self._awaited_children = AwaitedChildren(self._roster, self._unborn)
        self._tracers = Tracers(
            self._find,
            self._is_coming,
            self.holdings.is_held,
            self._release,
            self._interventions.distrust,
            self._find_sharer,
            self._interventions.let_task_go,
            self._warn,
        )
        self._answers = Answers(
            self._roster,
            self._filters,
            self._unborn,
            self._awaited_children,
            self._executions,
            self._tracers,
            self.holdings,
        )
        self._changed_code: ChangedCode | None = None
        self._look_from = time.monotonic() + LOOK_AFTER_SECONDS
        self.warnings: list[str] = []
        self.n_unfollowed_programs = 0
        self.n_unfollowed_children = 0
        """Of those that were to be followed when they were made."""

    def __len__(self) -> int:
        """How many are followed, or may be about to."""
        return len(self._roster.live) + self.n_unsettled + len(self._exits)

    @property
    def live(self) -> list[FollowedProcess]:
        """Those that have the runtime in them, in the order in which they came."""
        return [one for one in self._roster.live if not one.is_released]

    def tell_starts_to(self, on_start: OnCode) -> None:
        """Have `on_start` told of each process that is followed from now on, before it runs, and of its code."""
        self._roster.on_start.append(on_start)

    def tell_code_to(self, on_code: OnCode) -> None:
        """Have `on_code` told of all code that is mapped from now on, before any thread executes it."""
        self._roster.on_code.append(on_code)
        for followed in self.live:
            followed.shared.ask_about_images()

    @property
    def statistics(self) -> Statistics:
        """The runtimes' own numbers of those that are followed no more."""
        return self._roster.statistics

    @property
    def n_unsettled(self) -> int:
        """How many children are about to be born, and how many threads about to execute a program."""
        self._unborn.forget_stillborn(are_others_live=bool(self._roster.live))
        return len(self._unborn) + len(self._executions)

    @property
    def exit_status(self) -> dict[Pid, int | None]:
        """Wait status of the processes that ended; None where the kernel did not tell."""
        return self._exits.status

    @property
    def cpu_seconds(self) -> float:
        """User and system time of the processes that were waited for here, were left, or run unfollowed."""
        return self._exits.cpu_seconds

    def is_running(self, pid: Pid) -> bool:
        """Whether process `pid` is followed now, or was and is awaited."""
        return self._roster.is_live(pid) or self._exits.is_awaited(pid)

    def is_kept(self, pid: Pid) -> bool:
        """Whether process `pid` has ended, and another tracer of it has not let it go yet."""
        return self._roster.is_kept(pid)

    def add(self, process: StoppedProcess, layout: SharedLayout, heap_bytes: int, *, is_paused: bool = False) -> int:
        """Put the runtime into a stopped process and follow it; its pidfd. Raises ClewError, OSError if it is gone."""
        parent_pid = read_parent(process.pid)
        pidfd = os.pidfd_open(process.pid)
        return self._entering.inject(process, layout, heap_bytes, parent_pid, pidfd, is_paused=is_paused)

    def add_attached(
        self, attachment: Attachment, identity: Identity, mappings: list[Mapping], pidfd: int, start_ns: int
    ) -> None:
        """Follow a process that has the runtime already. It may have ended meanwhile."""
        region = self._roster.meet(attachment.shared, attachment.plan)
        followed = FollowedProcess(region, identity, pidfd, attachment.written_pages)
        self._roster.start(followed, start_ns, [one for one in mappings if one.protection & PROT_EXEC], None)

    def advance(self) -> None:
        """Do what came up while the rings were emptied, of threads that are stopped or want to trace others."""
        self.holdings.advance(self._roster.live)
        self._tracers.advance()
        self._look_at_code()

    def watch(self, fd: int) -> None:
        """Have `poll` return when there is something to read."""
        self._roster.watch(fd)

    def forget(self, fd: int) -> None:
        """No longer."""
        self._roster.forget_watched(fd)

    def drain_all(self) -> None:
        """Take what is there, without waiting."""
        self.poll(0)

    def poll(self, delay_seconds: float) -> int:
        """Wait up to `delay_seconds`, or until one ends; then take what is there. How many bytes of records came."""
        delay_seconds = min(delay_seconds, self._executions.delay_seconds, self._tracers.delay_seconds)
        self._awaited_children.forget_ended()
        delay_seconds = min(delay_seconds, self._awaited_children.delay_seconds)
        if not self._roster.is_heard(len(self._unborn)):
            delay_seconds = min(delay_seconds, UNHEARD_POLL_SECONDS)
        ended = self._roster.wait(delay_seconds)
        release_abandoned()
        live = self._roster.live
        self._budget.share(live)
        moved_bytes = 0
        for region in [*(followed.region for followed in live), *self._unborn]:
            # What one asks may end another: a region that is not used after all.
            if region.process in live or region in self._unborn:
                moved_bytes += self._roster.drain(region)
        self._bury_stillborn()
        self._entering.follow(is_leaving=self._answers.is_leaving)
        for followed in ended:
            if followed in live and followed is not self._interventions.being_left:
                self._roster.note_end(followed)
        for followed in list(live):
            if followed.failure is not None and followed is not self._interventions.being_left:
                self._roster.lose(followed)
        for region in self._unborn:
            if region.failure is not None:
                self._warn(f"a child can't be followed: {region.failure}")
                self._unborn.discard(region, is_unused=False)
        return moved_bytes

    def begin_leaving(self) -> None:
        """From now on what executes a program leaves by that; what is born is followed, so that it can be left."""
        self._answers.is_leaving = True
        self.end_pause()
        self.holdings.release(self._roster.live)

    def detach(
        self,
        followed: FollowedProcess,
        patience_seconds: float,
        is_given_up: Callable[[], bool],
        reason: ReleaseReason = ReleaseReason.DETACH,
    ) -> float:
        """Take the runtime out of one of them; for how many seconds it was stopped or was on its way out.

        For another `reason` than that clew was told to, it is a loss, and its end is waited for still.

        Raises TargetError, and it goes on as before, if that can't be done within `patience_seconds`, or `is_given_up`
        says so.
        """
        return self._interventions.detach(followed, patience_seconds, is_given_up, reason)

    @property
    def mode(self) -> Mode:
        """What is recorded of them now."""
        return self._entering.settings.mode

    @property
    def tells_accesses(self) -> bool:
        """Whether accesses to memory are told beside the order."""
        return self._entering.settings.tells_accesses

    def set_mode(self, mode: Mode, *, tells_accesses: bool = False) -> None:
        """Modes counts and full: which of them it is from now on; full may tell of accesses to memory, too.

        All threads must be stopped.
        """
        self._entering.settings = replace(self._entering.settings, mode=mode, tells_accesses=tells_accesses)
        self._roster.set_mode(mode, self._unborn, tells_accesses=tells_accesses)

    def add_filter(self, item: Filter, is_included: bool) -> int:
        """From now on what `item` holds is recorded or not. All threads must be stopped.

        In how many pieces of code of those that run it holds something.
        """
        self._filters.add(item, is_included)
        n_places = 0
        for followed in self.live:
            with contextlib.suppress(OSError):
                n_places += self._filters.change(followed.shared, read_maps(followed.memory_pid))
        # A child that did not speak yet has the mappings of its parent.
        for shared, pid in self._unborn.regions():
            with contextlib.suppress(OSError):
                self._filters.change(shared, read_maps(pid))
        return n_places

    @property
    def budget(self) -> int | None:
        """Mode full: how many bytes of paths a second they may record; None: all of them."""
        return self._budget.bytes

    def set_budget(self, budget: int) -> None:
        """Mode full: how many bytes of paths a second they may record from now on, all together."""
        self._entering.settings = replace(self._entering.settings, budget=budget)
        self._budget.set(budget, self._roster.live)

    def _look_at_code(self) -> None:
        """Have the runtimes know of code that another changed."""
        if self._answers.is_leaving or time.monotonic() < self._look_from:
            return
        if self._changed_code is None:
            from clew.recording.following.changed_code import ChangedCode

            self._changed_code = ChangedCode(self._have_carried_out)
        self._changed_code.look([one for one in self.live if not one.has_ended])

    def _have_carried_out(self, followed: FollowedProcess) -> None:
        """Have all threads carry out what they were told, soon. Raises TargetError."""
        # A stopped thread does so before it goes on.
        if not (self.holdings.is_held(followed) or self._executions.is_under_way(followed.pid)):
            self._interventions.bring_in(followed)

    def _release(self, followed: FollowedProcess, patience_seconds: float, reason: ReleaseReason) -> None:
        """Take the runtime out of one that is to run its own code. Raises TargetError."""
        if self.holdings.is_held(followed):
            # Whoever holds it had time to let it go; natively its tracer would not wait either.
            self.holdings.of(followed).release()
        self.detach(followed, patience_seconds, lambda: False, reason)

    def _find(self, pid: Pid) -> FollowedProcess | None:
        return next((one for one in self.live if one.pid == pid and not one.has_ended), None)

    def _find_sharer(self, pid: Pid) -> FollowedProcess | None:
        """Whose memory task `pid` shares, and is none of its threads."""
        return next((one for one in self.live if maps_region(pid, one.shared)), None)

    def _is_coming(self, pid: Pid) -> bool:
        """Whether process `pid` may be followed, as a child or as another program, but is not yet."""
        if self._executions.is_under_way(pid):
            return True
        return self._find(pid) is None and any(maps_file(pid, one.shared.file) for one in self._unborn)

    def bury_orphans(self) -> None:
        """Wait for what ended as a child of this process and is not followed: descendants whose parents are gone."""
        self._exits.bury_orphans(
            lambda pid: self._roster.is_live(pid) or self._executions.is_under_way(pid) or self._unborn.is_known(pid)
        )

    def refresh_names(self) -> None:
        """Note what the kernel calls the threads: those that are killed can't say it themselves."""
        for followed in self._roster.live:
            followed.attempt(lambda drain: drain.refresh_names())

    def settle_ended(self) -> None:
        """Finish the processes that have ended, and whose memory nobody shares any more."""
        self._roster.settle_ended()

    def write_snapshot(self, snapshots: Snapshots) -> None:
        """Keep the counters of all that run now."""
        snapshots.write(self._roster.live)

    def leave(self) -> None:
        """Finish what is there; the processes go on."""
        self._executions.give_up()
        for followed in list(self._roster.live):
            self._exits.note_left(followed.pid)
            self._roster.finish(followed, goes_on=True)
        self._roster.close()
        if self._filters.left_out:
            self._warn("more ranges to include or exclude than the runtime's table holds; some were left out")

    def end_pause(self) -> None:
        """Let a first process that waits before its first instruction go on."""
        for followed in self._roster.live:
            followed.shared.end_pause()

    def _answer(self, region: FollowedRegion, request: Request) -> int | None:
        """What a request is answered; None: later."""
        return self._answers.answer(region, request)

    def _note_birth(self, region: FollowedRegion, child: int, number: int) -> None:
        if region.process is not None:
            self._unborn.note_birth(region.process, child, number)

    def _bury_stillborn(self) -> None:
        """Tell of the children that were killed before they spoke."""
        for child, followed in self._unborn.take_stillborn():
            waited_in_vain = child.waited_in_vain()
            self._roster.bury(followed, child.born_ns, Fork(child.parent.number, 0))
            status = self._exits.status[followed.pid]
            if waited_in_vain:
                self._lose_child("a child ran unfollowed: clew had no time for it")
            elif status is not None and os.WIFEXITED(status):
                # It could not do so before it spoke.
                self._lose_child("a child ran unfollowed: it found no place for what is recorded")

    def _lose_child(self, message: str) -> None:
        self.n_unfollowed_children += 1
        self._warn(message)

    def _lose_program(self, message: str) -> None:
        self.n_unfollowed_programs += 1
        self._warn(message)

    def _warn(self, message: str) -> None:
        if len(self.warnings) < MAX_WARNINGS and message not in self.warnings:
            self.warnings.append(message)
