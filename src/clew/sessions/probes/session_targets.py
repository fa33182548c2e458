"""The processes of a session of probes: those that it has itself, and those of others, in which it is a guest.

Runs in the controller, in the thread that owns the session.
"""

from __future__ import annotations

import contextlib
import select
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Final

from clew.address import Pid
from clew.errors import ClewError, TargetError
from clew.export.probes.event_types import Loss
from clew.probing.leaving import find_children
from clew.probing.probed_process import ProbedProcess
from clew.process.futexes import MAX_WORDS, wait_for_change
from clew.process.runtime_image import default_runtime_path, load_runtime_image
from clew.process.stopped_process import StoppedProcess
from clew.sessions.aggregate_table import AggregateRoom, AggregateTable
from clew.sessions.capture_sink import CaptureSink
from clew.sessions.memory import Images
from clew.sessions.probes.asked import AskedProbe, Asker
from clew.sessions.probes.backends import BackendChoice
from clew.sessions.probes.clockless import clockless_forms
from clew.sessions.probes.draining import Draining
from clew.sessions.probes.ending import close_session, hand_over
from clew.sessions.probes.event_reader import EventReader
from clew.sessions.probes.findings import Findings
from clew.sessions.probes.hearing import EXECUTION_NUMBER
from clew.sessions.probes.image_code import KnownCode
from clew.sessions.probes.probed_target import ProbedTarget
from clew.sessions.probes.process_machine import make_probed_machine
from clew.sessions.probes.pulse import Pulse
from clew.sessions.probes.session_sums import SessionSums
from clew.sessions.probes.sharing.channel import Channel, Message
from clew.sessions.probes.sharing.guests import Guests
from clew.sessions.probes.sharing.heirs import Heirs
from clew.sessions.probes.sharing.joined_process import JoinedProcess
from clew.sessions.probes.sharing.joined_rings import JoinedRings
from clew.sessions.probes.sharing.joined_target import JoinedTarget
from clew.sessions.probes.sharing.joining import find_owner
from clew.sessions.probes.sharing.meeting import process_locked
from clew.sessions.probes.specs import ProbeSpec
from clew.sessions.probes.target import Target
from clew.sessions.probes.unwinding import KnownFrames, Unwinding
from clew.sessions.probes.waiting import Waiting
from clew.sessions.probes.waiting_threads import follow

__all__ = ["SessionTargets"]

_GUEST_SECONDS: Final = 0.004


class SessionTargets(ABC):
    """Of a session, with techniques as `choice` has them; a flight recorder with `newest_bytes`."""

    def __init__(self, choice: BackendChoice, newest_bytes: int) -> None:
        self._choice, self._newest_bytes = choice, newest_bytes
        self._image = load_runtime_image(default_runtime_path())
        self.images = Images()
        self._specs: dict[int, ProbeSpec] = {}
        """By index, all that there ever were: events of those that were removed may be to come."""
        self._wanted: list[int] = []
        """Indices of those that are to be in all processes."""
        self._findings = Findings()
        self.sink = CaptureSink()
        self._draining = Draining(self.sink, newest_bytes, self._findings.forms, self._has_guests)
        self._asking: dict[Target, Callable[[int], AskedProbe]] = {}
        """What makes a probe, by its index, one of a process."""
        self.targets: list[Target] = []
        self.pulse = Pulse()
        self.guests = Guests(self)
        self._heirs = Heirs(self)
        self._n_indices = 0
        self._known_code, self._known_frames = KnownCode(), KnownFrames()
        self._sums = SessionSums()
        self.left: list[str] = []
        """What stays of probes that were taken out, for people."""
        self.reader = EventReader(self.images, lambda: self.targets)
        self._executing: list[Waiting] = []
        """Threads that wait for the next reading: until then it is known what addresses of their events are called."""
        self._late_losses: list[Loss] = []
        """Of processes that were left."""

    @property
    def owned(self) -> list[ProbedTarget]:
        """The processes that this session has itself."""
        return [target for target in self.targets if isinstance(target, ProbedTarget)]

    @property
    def room(self) -> AggregateRoom:
        """Where there is room for tables, in all of them."""
        return self._sums.room

    def take_index(self) -> int:
        """One that no probe has had, guests' among them."""
        self._n_indices += 1
        return self._n_indices - 1

    def has(self, pid: Pid) -> bool:
        """Whether a process has probes of this session."""
        return any(pid == target.pid or target.shares_with(pid) for target in self.targets)

    def find_spec(self, index: int) -> ProbeSpec | None:
        """What a probe was asked for as; None: there was none, or it is a guest's."""
        return self._specs.get(index)

    def _is_for(self, index: int, origins: frozenset[Pid]) -> bool:
        """Whether a probe is wanted in a process that is, or descends from, those processes."""
        pid = self._specs[index].pid
        return pid is None or pid in origins

    def attach(self, pid: Pid, origins: frozenset[Pid] = frozenset()) -> Target:
        """Probe a process that runs, which descends from `origins`; another session may have it. Raises AttachError,
        InjectionError, TargetError, UsageError, CaptureError."""
        origins |= {pid}
        found = find_owner(pid, self._choice, self.guests.advance)
        if found is None:
            with process_locked(pid):
                found = find_owner(pid, self._choice, self.guests.advance)
                if found is None:
                    self.guests.listen()
                    process = ProbedProcess.attach(pid, self._image, self._newest_bytes)
        if found is not None:
            return self._join(pid, origins, *found)
        target = self._begin(process, origins)
        self.guests.arrive(target)
        return target

    def enter(
        self, process: StoppedProcess, origins: frozenset[Pid] = frozenset(), before: ProbedTarget | None = None
    ) -> ProbedTarget:
        """Probe a process that is stopped before its first instruction; it stays so, and is about to run. `before`:
        which one has executed it. Raises the same."""
        target = self.enter_stopped(process, origins)
        if before is not None:
            self.guests.follow(before, target)
        target.let_go()
        return target

    def enter_stopped(self, process: StoppedProcess, origins: frozenset[Pid] = frozenset()) -> ProbedTarget:
        """The same of one that is not to run before it is let go."""
        self.guests.listen()
        entered = ProbedProcess.enter(process, self._image, self._newest_bytes)
        return self._begin(entered, origins | {process.pid}, process)

    def detach(self, target: Target, *, keeps_guests: bool = False) -> list[Pid]:
        """Leave a process, and forks' children of it that have its probes: those, by their numbers. What they came to
        until then is to be read still. Guests go on there without this session; with `keeps_guests` they are in what
        of these it attaches to again. Raises TargetError: it is as before then, and this may be tried again."""
        self._let_executing_go([target])
        children: list[Pid] = []
        is_handed_over = False
        for other in [] if keeps_guests else hand_over(self, [target]):
            if other is not target:
                # It has the same guests: this session is one of them now.
                self.forget(other)
                other.release()
                self.attach(other.pid, other.origins)
            is_handed_over = True
        if not is_handed_over:
            left, children = target.leave()
            self.left += left
        self.drain_last(target)
        self.forget(target)
        if isinstance(target, ProbedTarget):
            if keeps_guests:
                self.guests.move(target, [target.pid, *children])
            self.guests.forget(target)
        target.release()
        if self.owned:
            self.guests.listen()
        return children

    def find_children(self) -> dict[Pid, list[Pid]]:
        """Of each process the forks' children that have its probes, as far as they are to be seen to."""
        return {target.pid: [] for target in self.targets} | find_children([one.process for one in self.owned])

    def make_probe(
        self,
        target: ProbedTarget,
        spec: ProbeSpec,
        index: int,
        find_table: Callable[[AskedProbe], AggregateTable],
        asker: Asker,
    ) -> AskedProbe:
        """A guest's probe in a process."""
        return AskedProbe(spec, index, make_probed_machine(target.pid, self.images), self.images, find_table, asker)

    def _begin(
        self, process: ProbedProcess, origins: frozenset[Pid], stopped: StoppedProcess | None = None
    ) -> ProbedTarget:
        self.reader.meet(process.pid)
        self.pulse.add(process.shared)
        asker = Asker(self._choice)

        def find_table(probe: AskedProbe) -> AggregateTable:
            return self._sums.find_table(probe, process.shared.aggregates)

        ask = self._make_ask(process.pid, find_table, asker)
        wanted = self._find_wanted(process.pid, origins, takes_events=process.has_clock)
        clockless = clockless_forms(make_probed_machine(process.pid, self.images))
        asked = [ask(index) for index in wanted]
        unwinding = Unwinding(process, self.images, self._known_frames)
        target = ProbedTarget(process, asked, asker, stopped, origins, self._known_code, clockless, unwinding)
        target.takes_events = process.has_clock
        self._asking[target] = ask
        self.targets.append(target)
        target.arm()
        self._note(target)
        asker.raise_refused()
        return target

    def _join(self, pid: Pid, origins: frozenset[Pid], channel: Channel, joined: Message) -> JoinedTarget:
        """Have the probes in a process that another session has."""
        asker = Asker(self._choice)

        def have_table(probe: AskedProbe, process: JoinedProcess) -> AggregateTable:
            return self._sums.find_table(probe, process.tables)

        def find_table(_probe: AskedProbe) -> AggregateTable:
            raise TargetError(pid, f"process {pid}: another session has it")

        rings = JoinedRings(self._newest_bytes)
        try:
            self.reader.meet(pid)
            target = JoinedTarget(channel, pid, joined, asker, rings, have_table, self.guests.advance)
        except BaseException:
            channel.close()
            raise
        ask = self._make_ask(pid, find_table, asker)
        self._asking[target] = ask
        self.targets.append(target)
        wanted = self._find_wanted(pid, origins, takes_events=target.takes_events)
        target.change(partial(target.add, [ask(index) for index in wanted]))
        self._note(target)
        return target

    def _find_wanted(self, pid: Pid, origins: frozenset[Pid], *, takes_events: bool) -> list[int]:
        """The probes that are wanted in a process, and can be there."""
        wanted = [index for index in self._wanted if self._is_for(index, origins)]
        if not takes_events:
            self._findings.remarks.append(f"process {pid}: may have no time stamps: there can be no events")
            wanted = [index for index in wanted if not self._specs[index].has_events]
        return wanted

    def _make_ask(
        self, pid: Pid, find_table: Callable[[AskedProbe], AggregateTable], asker: Asker
    ) -> Callable[[int], AskedProbe]:
        machine = make_probed_machine(pid, self.images)

        @cache
        def ask(index: int) -> AskedProbe:
            return AskedProbe(self._specs[index], index, machine, self.images, find_table, asker)

        return ask

    def _note(self, target: Target) -> None:
        self._findings.note(target)
        self.reader.note_images(target)

    def _let_executing_go(self, targets: Sequence[Target]) -> None:
        """Threads of these processes that are about to execute a program are not followed into that."""
        for thread in self._executing:
            if thread.target in targets:
                thread.target.reply(thread.slot)
        self._executing = [thread for thread in self._executing if thread.target not in targets]

    def _has_guests(self, target: ProbedTarget) -> bool:
        return bool(self.guests.in_target(target))

    @contextlib.contextmanager
    def remarked(self, what: str) -> Iterator[None]:
        """What fails here is told."""
        try:
            yield
        except (ClewError, OSError) as error:
            self._findings.remarks.append(f"{what}: {error}")

    def remark(self, text: str) -> None:
        """Have people told something."""
        self._findings.remarks.append(text)

    def forget(self, target: Target) -> None:
        """It is about to be let go of: keep what is to be told of it."""
        self._late_losses += self._losses_of(target)
        self._findings.remarks += target.remarks
        if isinstance(target, ProbedTarget):
            self.pulse.remove(target.process.shared)
        for tables in target.tables:
            self._sums.forget(tables)
        self.targets.remove(target)
        del self._asking[target]

    def remove_from(self, targets: Iterable[Target]) -> None:
        """Have this session's probes no more in some processes. Raises TargetError, UsageError."""
        for target in targets:
            target.change(partial(target.remove, set(self._specs)))

    def keep_only(self, targets: Sequence[Target]) -> None:
        """This is a copy of the session, for these processes alone, and has no probes of its own."""
        for target in self.targets:
            if target not in targets:
                # The other one has it; nothing of it is mapped here.
                target.release()
        self.targets = list(targets)
        self._wanted.clear()
        self._known_frames.begin_anew()
        self._heirs.close()
        self._executing.clear()

    def wait(self, seconds: float) -> None:
        """Wait until a thread wants something, or for so long."""
        if self._executing:
            return
        if self.guests:
            # They wait for answers, and fill the same rings.
            seconds = min(seconds, _GUEST_SECONDS)
        bells = [(target.bell, target.bell.value) for target in self.owned[:MAX_WORDS]]
        joined = [target for target in self.targets if isinstance(target, JoinedTarget) and target.fileno() >= 0]
        if not bells and joined:
            select.select(joined, [], [], seconds)
        elif not bells or not wait_for_change(bells, time.monotonic() + seconds):
            time.sleep(seconds)

    def advance(self) -> None:
        """See to threads that wait, take what all have written, and see to guests. Raises ClewError."""
        executing, self._executing = self._executing, []
        for thread in executing:
            follow(self, thread)
        for target in list(self.targets):
            waiting = target.answer()
            self._note(target)
            self._draining.drain(target)
            for thread in waiting:
                if thread.number == EXECUTION_NUMBER:
                    self._executing.append(thread)
                elif not self.guests.hold(thread):
                    self.act(thread)
        self.guests.advance()
        self._heirs.advance()

    @abstractmethod
    def act(self, waiting: Waiting) -> None:
        """Do what is to be done where a thread has come to, and let it go on."""

    def drain(self, targets: Iterable[Target]) -> None:
        """Have in the sink what these have come to by now."""
        for target in targets:
            self._draining.drain(target)

    def drain_last(self, target: Target) -> None:
        """Have what a process came to be there to be read, which is about to be let go of."""
        self._draining.drain_last(target)

    def catch_up(self) -> None:
        """Have all there to be read that has come by now, where another session has the process."""
        for target in self.targets:
            if isinstance(target, JoinedTarget):
                target.catch_up()

    def close(self) -> None:
        """Take all probes out. Guests' stay: the processes go on with these."""
        self._let_executing_go(self.targets)
        self._heirs.close()
        close_session(self)
        self.images.close()

    def _losses_of(self, target: Target) -> list[Loss]:
        lost = target.rings.take_lost()
        return [Loss(time.time_ns(), int(target.pid), int(target.pid), lost)] if lost else []
