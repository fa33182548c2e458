"""Probes in processes, and the events that come of them: one session, in one thread.

Runs in the controller.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from typing import Final

from clew.address import Pid
from clew.dataclass import replace
from clew.errors import ClewError, TargetError, UsageError
from clew.export.probes.event_types import EventBatch, Loss
from clew.probing.leaving import find_children
from clew.probing.probed_process import ProbedProcess
from clew.process.futexes import MAX_WORDS, wait_for_change
from clew.process.identity import read_group
from clew.process.runtime_image import default_runtime_path, load_runtime_image
from clew.process.stopped_process import StoppedProcess
from clew.sessions.aggregate_table import AggregateTable
from clew.sessions.aggregates import Aggregate
from clew.sessions.capture_sink import CaptureSink
from clew.sessions.memory import Images
from clew.sessions.probes.asked import N_NUMBERS, AskedProbe, check_spec
from clew.sessions.probes.backends import AUTO, BackendChoice
from clew.sessions.probes.clockless import clockless_forms
from clew.sessions.probes.event_reader import CapturedOf, EventReader, ReadEvents
from clew.sessions.probes.executions import begin_following, follow_execution
from clew.sessions.probes.findings import Findings
from clew.sessions.probes.hearing import CLOCKLESS_NUMBER, EXECUTION_NUMBER
from clew.sessions.probes.image_code import KnownCode
from clew.sessions.probes.probe_launch import ProbedCommand
from clew.sessions.probes.probed_target import ProbedTarget, Waiting
from clew.sessions.probes.process_machine import make_machine
from clew.sessions.probes.pulse import Pulse
from clew.sessions.probes.session_sums import SessionSums
from clew.sessions.probes.specs import ProbeSpec, Trigger, TriggerAction
from clew.sessions.probes.triggers import pull
from clew.sessions.probes.unwinding import KnownFrames, Unwinding

__all__ = ["ProbeSession"]

MIN_NEWEST_BYTES: Final = 1 << 12
MAX_NEWEST_BYTES: Final = 1 << 26


class ProbeSession:
    """The probes `specs` in the processes that are added, by techniques as `choice` has them. Raises CaptureError where
    one can't be.

    With `newest_bytes` it is a flight recorder: of each thread the newest events, so many bytes, are kept, and read
    gives none but those of a `snapshot`. Where a trigger starts events there are none before it does.
    """

    def __init__(self, specs: Sequence[ProbeSpec], choice: BackendChoice = AUTO, *, newest_bytes: int = 0) -> None:
        if newest_bytes and not MIN_NEWEST_BYTES <= newest_bytes <= MAX_NEWEST_BYTES:
            raise UsageError(f"{newest_bytes} bytes are not between {MIN_NEWEST_BYTES} and {MAX_NEWEST_BYTES}")
        self._choice, self._newest_bytes, self._is_due = choice, newest_bytes, False
        self._image = load_runtime_image(default_runtime_path())
        self.images = Images()
        self._specs: dict[int, ProbeSpec] = {}
        """By index, all that there ever were: events of those that were removed may be to come."""
        self._wanted: list[int] = []
        """Indices of those that are to be in all processes."""
        self._findings = Findings()
        self.sink = CaptureSink()
        self._asking: dict[ProbedTarget, Callable[[int], AskedProbe]] = {}
        """What makes a probe, by its index, one of a process."""
        self.targets: list[ProbedTarget] = []
        self._pulse = Pulse()
        self._known_code, self._known_frames = KnownCode(), KnownFrames()
        self._sums = SessionSums()
        self.left: list[str] = []
        """What stays of probes that were taken out, for people."""
        self.n_events: Counter[int] = Counter()
        """How many came of each probe, by its index."""
        self.n_lost = 0
        self.reader = EventReader(self.images, lambda: self.targets)
        self._executing: list[Waiting] = []
        """Threads that wait for the next reading: until then it is known what addresses of their events are called."""
        self._late_losses: list[Loss] = []
        """Of processes that were left."""
        indices = self.add(specs)
        consequences = [spec.consequence for spec in self._specs.values()]
        if any(isinstance(one, Trigger) and one.action == TriggerAction.START for one in consequences):
            self.remove(index for index in indices if self._specs[index].has_events)

    @property
    def event_indices(self) -> list[int]:
        """Of all probes that have events, whether they are there or not."""
        return [index for index, spec in self._specs.items() if spec.has_events]

    @property
    def next_index(self) -> int:
        """What the next probe's index will be."""
        return len(self._specs)

    def add(self, specs: Iterable[ProbeSpec]) -> list[int]:
        """Have these probes, too, in all processes from now on; their indices. Raises CaptureError, TargetError,
        UsageError: they are in none then."""
        specs = list(specs)
        for spec in specs:
            check_spec(spec)
        indices = list(range(len(self._specs), len(self._specs) + len(specs)))
        for index, spec in zip(indices, specs, strict=True):
            self._specs[index] = spec
            for number in range(index * N_NUMBERS + 1, (index + 1) * N_NUMBERS + 1):
                self.sink.watch(number)
        try:
            self._enable(indices)
        except ClewError:
            with contextlib.suppress(ClewError):
                self.remove(indices)
            raise
        return indices

    def enable(self, indices: Iterable[int]) -> None:
        """Have probes again that were removed. Raises the same."""
        self._enable([index for index in indices if index not in self._wanted])

    def _enable(self, indices: list[int]) -> None:
        self._wanted += indices
        for target in self.targets:
            ask = self._asking[target]
            wanted = [
                ask(index)
                for index in indices
                if self._is_for(index, target.origins) and (target.takes_events or not self._specs[index].has_events)
            ]
            target.change(partial(target.add, wanted))
            self._findings.note(target)
            target.raise_refused()

    def _is_for(self, index: int, origins: frozenset[Pid]) -> bool:
        """Whether a probe is wanted in a process that is, or descends from, those processes."""
        pid = self._specs[index].pid
        return pid is None or pid in origins

    def remove(self, indices: Iterable[int]) -> None:
        """Have these probes nowhere any more, until they are enabled. Raises TargetError, UsageError."""
        gone = set(indices)
        self._wanted = [index for index in self._wanted if index not in gone]
        for target in self.targets:
            target.change(partial(target.remove, gone))

    def remove_all(self) -> None:
        """Have no probe anywhere any more, as far as processes are there still, and are what they were."""
        gone, self._wanted = set(self._wanted), []
        for target in self.targets:
            with contextlib.suppress(TargetError, UsageError):
                target.remove(gone)

    def attach(self, pid: Pid, origins: frozenset[Pid] = frozenset()) -> ProbedTarget:
        """Probe a process that runs, which descends from `origins`. Raises AttachError, InjectionError, TargetError,
        UsageError, CaptureError."""
        return self._begin(ProbedProcess.attach(pid, self._image, self._newest_bytes), origins | {pid})

    def start(self, command: Sequence[str], ignored: Sequence[signal.Signals] = ()) -> ProbedCommand:
        """Start a program, with the probes from its first instruction on; it ignores the signals `ignored`. Raises
        ClewError: it has not run then."""
        return ProbedCommand(self, command, ignored)

    def enter(self, process: StoppedProcess, origins: frozenset[Pid] = frozenset()) -> ProbedTarget:
        """Probe a process that is stopped before its first instruction; it stays so, and is about to run. Raises the
        same."""
        target = self.enter_stopped(process, origins)
        target.let_go()
        return target

    def enter_stopped(self, process: StoppedProcess, origins: frozenset[Pid] = frozenset()) -> ProbedTarget:
        """The same of one that is not to run before it is let go."""
        entered = ProbedProcess.enter(process, self._image, self._newest_bytes)
        return self._begin(entered, origins | {process.pid}, process)

    def detach(self, target: ProbedTarget) -> list[Pid]:
        """Leave a process, and forks' children of it that have its probes: those, by their numbers. What they came to
        until then is to be read still. Raises TargetError: it is as before then, and this may be tried again."""
        left, children = target.leave()
        self.left += left
        self._drain_last(target)
        self._forget(target)
        target.release()
        return children

    def find_children(self) -> dict[Pid, list[Pid]]:
        """Of each process the forks' children that have its probes."""
        return find_children([target.process for target in self.targets])

    def _begin(
        self, process: ProbedProcess, origins: frozenset[Pid], stopped: StoppedProcess | None = None
    ) -> ProbedTarget:
        self.reader.meet(process.pid)
        self._pulse.add(process.shared)
        machine = replace(make_machine(process.pid, self.images), unwinds=True)

        def find_table(probe: AskedProbe) -> AggregateTable:
            return self._sums.find_table(probe, process)

        @cache
        def ask(index: int) -> AskedProbe:
            return AskedProbe(self._specs[index], index, machine, self.images, find_table)

        wanted = [index for index in self._wanted if self._is_for(index, origins)]
        if not process.has_clock:
            self._findings.remarks.append(f"process {process.pid}: may have no time stamps: there can be no events")
            wanted = [index for index in wanted if not self._specs[index].has_events]
        asked = [ask(index) for index in wanted]
        clockless = clockless_forms(machine)
        unwinding = Unwinding(process, self.images, self._known_frames)
        target = ProbedTarget(process, asked, stopped, self._choice, origins, self._known_code, clockless, unwinding)
        target.takes_events = process.has_clock
        self._asking[target] = ask
        self.targets.append(target)
        target.arm()
        self._findings.note(target)
        self.reader.note_images(target)
        target.raise_refused()
        return target

    def sums(self) -> list[tuple[ProbeSpec, Aggregate]]:
        """What is added up, as far as there was a place for it. It can be read when all is over, too."""
        return [(self._specs[index], found) for index, found in sorted(self._sums.found.items())]

    def find_sum(self, index: int) -> Aggregate | None:
        """What a probe adds up; None: there was no place for it yet."""
        return self._sums.found.get(index)

    def take_remarks(self) -> list[str]:
        """What there is to tell people that was not told yet."""
        return self._findings.take_remarks(self.targets)

    def missing(self) -> list[str]:
        """Why probes are in none of the processes, for people."""
        return self._findings.missing

    def read(self) -> EventBatch:
        """The events that have come since, of all threads."""
        return EventBatch([(one.type, one.table) for one in self.read_events()], self.take_losses())

    def read_events(self) -> list[ReadEvents]:
        """The same by probe, without what was lost."""
        self.sink.clock.note()
        executing, self._executing = self._executing, []
        for thread in executing:
            self._follow(thread)
        for target in list(self.targets):
            waiting = target.answer()
            self._findings.note(target)
            self.reader.note_images(target)
            if self._newest_bytes:
                target.rings.make_room()
            elif target.rings.drain(self.sink):
                target.rings.free_slots()
            for thread in waiting:
                if thread.number == EXECUTION_NUMBER:
                    self._executing.append(thread)
                else:
                    self._act(thread)
        if self._newest_bytes and not self._is_due:
            return []
        self._is_due = False
        numbers = sorted(self._findings.forms)
        taken = dict(zip(numbers, self.sink.take_together(numbers), strict=True))
        captured = [
            CapturedOf(index, self._findings.forms[number], one, self._findings.place_names.get(index, {}))
            for number, some in taken.items()
            for index in [(number - 1) // N_NUMBERS]
            for one in some
        ]
        for one in captured:
            self.n_events[one.probe] += len(one.captured.heads)
        return self.reader.read(captured, self.sink.clock)

    @property
    def is_recorder(self) -> bool:
        """Whether it is a flight recorder."""
        return self._newest_bytes != 0

    def snapshot(self) -> None:
        """Have the newest events of all threads read next, as they are now."""
        for target in self.targets:
            target.rings.drain_newest(self.sink, self._newest_bytes)
        self._is_due = True

    def _drain_last(self, target: ProbedTarget) -> None:
        if self._newest_bytes:
            target.rings.drain_newest(self.sink, self._newest_bytes)
        else:
            target.rings.drain(self.sink)

    def _act(self, waiting: Waiting) -> None:
        """Do what is to be done where a thread has come to, and let it go on."""
        try:
            if waiting.number == CLOCKLESS_NUMBER:
                self._end_events(waiting.target)
                return
            trigger = self._specs[(waiting.number - 1) // N_NUMBERS].consequence
            if isinstance(trigger, Trigger):
                pull(self, trigger, waiting)
        finally:
            waiting.target.reply(waiting.slot)

    def _end_events(self, target: ProbedTarget) -> None:
        target.takes_events = False
        self._findings.remarks.append(
            f"process {target.pid}: forbids itself time stamps: there can be no events any more"
        )
        target.change(partial(target.remove, self.event_indices))

    def _follow(self, execution: Waiting) -> None:
        """Have the program that a thread is about to execute probed from its first instruction on."""
        target, tid = execution.target, execution.tid
        try:
            pid = read_group(tid)
        except OSError:
            target.reply(execution.slot)
            return
        is_followed = begin_following(tid)
        target.reply(execution.slot)
        process = follow_execution(pid, tid) if is_followed else None
        if process is None:
            return
        children: list[Pid] = []
        if pid == target.pid:
            # Its other threads went on until it became another program.
            children = target.abandon(process)
            self._drain_last(target)
            self._forget(target)
            target.release()
        with self._remarked(f"process {pid}: executes its program without probes"):
            try:
                self.enter(process, target.origins)
            finally:
                process.detach()
        for child in children:
            with self._remarked(f"process {child}: has no probes any more"):
                self.attach(child, target.origins)

    @contextlib.contextmanager
    def _remarked(self, what: str) -> Iterator[None]:
        """What fails here is told."""
        try:
            yield
        except (ClewError, OSError) as error:
            self._findings.remarks.append(f"{what}: {error}")

    def _forget(self, target: ProbedTarget) -> None:
        """It is about to be let go of: keep what is to be told of it."""
        self._late_losses += self._losses_of(target)
        self._findings.remarks += target.remarks
        self._pulse.remove(target.process.shared)
        self._sums.forget(target.pid)
        self.targets.remove(target)
        del self._asking[target]

    def wait(self, seconds: float) -> None:
        """Wait until a thread wants something, or for so long."""
        if self._executing:
            return
        bells = [(target.bell, target.bell.value) for target in self.targets[:MAX_WORDS]]
        if not bells or not wait_for_change(bells, time.monotonic() + seconds):
            time.sleep(seconds)

    def close(self) -> None:
        """Take all probes out."""
        self._pulse.close()
        for thread in self._executing:
            thread.target.reply(thread.slot)
        for target in self.targets:
            self.left += target.close()
        self.images.close()

    def take_losses(self) -> list[Loss]:
        """What was lost since this was asked last."""
        losses, self._late_losses = self._late_losses, []
        for target in self.targets:
            losses += self._losses_of(target)
        self.n_lost += sum(one.count for one in losses)
        return losses

    def _losses_of(self, target: ProbedTarget) -> list[Loss]:
        lost = target.rings.take_lost()
        return [Loss(time.time_ns(), int(target.pid), int(target.pid), lost)] if lost else []
