"""Probes in processes, and the events that come of them: one session, in one thread.

Runs in the controller.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Sequence
from functools import cache

from clew.address import Pid
from clew.errors import TargetError, UsageError
from clew.export.probes.event_types import EventBatch, Loss
from clew.probing.probed_process import ProbedProcess
from clew.process.identity import read_group
from clew.process.runtime_image import default_runtime_path, load_runtime_image
from clew.process.stopped_process import StoppedProcess
from clew.sessions.aggregate_table import AggregateRoom, AggregateTable
from clew.sessions.aggregates import Aggregate
from clew.sessions.capture_sink import CaptureSink
from clew.sessions.memory import Images
from clew.sessions.probes.asked import N_NUMBERS, AskedProbe, check_spec
from clew.sessions.probes.backends import AUTO, BackendChoice
from clew.sessions.probes.event_forms import EventForm
from clew.sessions.probes.event_reader import CapturedOf, EventReader, ReadEvents
from clew.sessions.probes.executions import begin_following, follow_execution
from clew.sessions.probes.probe_launch import ProbedCommand
from clew.sessions.probes.probed_target import Execution, ProbedTarget
from clew.sessions.probes.process_machine import make_machine
from clew.sessions.probes.pulse import Pulse
from clew.sessions.probes.specs import ProbeSpec

__all__ = ["ProbeSession"]


class ProbeSession:
    """The probes `specs` in the processes that are added, by techniques as `choice` has them. Raises CaptureError where
    one can't be."""

    def __init__(self, specs: Sequence[ProbeSpec], choice: BackendChoice = AUTO) -> None:
        self._choice = choice
        self._image = load_runtime_image(default_runtime_path())
        self.images = Images()
        self._specs: dict[int, ProbeSpec] = {}
        """By index, all that there ever were: events of those that were removed may be to come."""
        self._wanted: list[int] = []
        """Indices of those that are to be in all processes."""
        self._forms: dict[int, EventForm] = {}
        self.sink = CaptureSink()
        self._asking: dict[ProbedTarget, Callable[[int], AskedProbe]] = {}
        """What makes a probe, by its index, one of a process."""
        self.targets: list[ProbedTarget] = []
        self._pulse = Pulse()
        self._room = AggregateRoom()
        self._sums: dict[int, tuple[AggregateTable, Aggregate]] = {}
        self._tabled: set[tuple[int, Pid]] = set()
        """Which processes have which of the tables."""
        self._told: set[str] = set()
        self._place_names: dict[int, dict[int, str]] = {}
        """By index and address, of places that a pattern means."""
        self._missing: dict[str, str] = {}
        self._were_found: set[str] = set()
        """Places, as they were asked for."""
        self.left: list[str] = []
        """What stays of probes that were taken out, for people."""
        self._reader = EventReader(self.images, self._first_name)
        self.add(specs)

    @property
    def next_index(self) -> int:
        """What the next probe's index will be."""
        return len(self._specs)

    def add(self, specs: Iterable[ProbeSpec]) -> list[int]:
        """Have these probes, too, in all processes from now on; their indices. Raises CaptureError, TargetError,
        UsageError."""
        specs = list(specs)
        for spec in specs:
            check_spec(spec)
        indices = list(range(len(self._specs), len(self._specs) + len(specs)))
        for index, spec in zip(indices, specs, strict=True):
            self._specs[index] = spec
            for number in range(index * N_NUMBERS + 1, (index + 1) * N_NUMBERS + 1):
                self.sink.watch(number)
        self._enable(indices)
        return indices

    def enable(self, indices: Iterable[int]) -> None:
        """Have probes again that were removed. Raises the same."""
        self._enable([index for index in indices if index not in self._wanted])

    def _enable(self, indices: list[int]) -> None:
        self._wanted += indices
        for target in self.targets:
            ask = self._asking[target]
            target.add(ask(index) for index in indices)
            self._note_forms(target)
            _raise_refused(target)

    def remove(self, indices: Iterable[int]) -> None:
        """Have these probes nowhere any more, until they are enabled. Raises TargetError, UsageError."""
        gone = set(indices)
        self._wanted = [index for index in self._wanted if index not in gone]
        for target in self.targets:
            target.remove(gone)

    def remove_all(self) -> None:
        """Have no probe anywhere any more, as far as processes are there still, and are what they were."""
        gone, self._wanted = set(self._wanted), []
        for target in self.targets:
            with contextlib.suppress(TargetError, UsageError):
                target.remove(gone)

    def attach(self, pid: Pid) -> ProbedTarget:
        """Probe a process that runs. Raises AttachError, InjectionError, TargetError, UsageError, CaptureError."""
        return self._begin(ProbedProcess.attach(pid, self._image))

    def start(self, command: Sequence[str]) -> ProbedCommand:
        """Start a program, with the probes from its first instruction on. Raises ClewError: it has not run then."""
        return ProbedCommand(self, command)

    def enter(self, process: StoppedProcess) -> ProbedTarget:
        """Probe a process that is stopped before its first instruction; it stays so, and is about to run. Raises the
        same."""
        target = self.enter_stopped(process)
        target.let_go()
        return target

    def enter_stopped(self, process: StoppedProcess) -> ProbedTarget:
        """The same of one that is not to run before it is let go."""
        return self._begin(ProbedProcess.enter(process, self._image), process)

    def _begin(self, process: ProbedProcess, stopped: StoppedProcess | None = None) -> ProbedTarget:
        self._reader.meet(process.pid)
        self._pulse.add(process.shared)
        machine = make_machine(process.pid, self.images)

        def find_table(probe: AskedProbe) -> AggregateTable:
            table = self._find_table(probe)
            if (probe.index, process.pid) not in self._tabled:
                self._tabled.add((probe.index, process.pid))
                table.have_in(process.shared.aggregates)
            return table

        @cache
        def ask(index: int) -> AskedProbe:
            return AskedProbe(self._specs[index], index, machine, self.images, find_table)

        target = ProbedTarget(process, map(ask, self._wanted), stopped, self._choice)
        self._asking[target] = ask
        self.targets.append(target)
        target.arm()
        self._note_forms(target)
        _raise_refused(target)
        return target

    def _find_table(self, probe: AskedProbe) -> AggregateTable:
        """Where a probe adds up, the same in all processes. Raises UsageError, CaptureError."""
        wish = probe.spec.wish
        assert wish is not None
        if probe.index not in self._sums:
            table = self._room.make(wish, probe.wanted_sum.kinds())
            self._sums[probe.index] = table, Aggregate(table, probe.spec.where, wish, lambda: None)
        return self._sums[probe.index][0]

    def sums(self) -> list[tuple[ProbeSpec, Aggregate]]:
        """What is added up, as far as there was a place for it. It can be read when all is over, too."""
        return [(self._specs[index], found) for index, (_, found) in sorted(self._sums.items())]

    def find_sum(self, index: int) -> Aggregate | None:
        """What a probe adds up; None: there was no place for it yet."""
        found = self._sums.get(index)
        return None if found is None else found[1]

    def _note_forms(self, target: ProbedTarget) -> None:
        """What is taken, as far as there are places for it by now. It is of the same types in all processes."""
        self._missing.update(target.missing)
        for index, names in target.place_names.items():
            self._place_names.setdefault(index, {}).update(names)
        for probe in target.found:
            self._were_found.add(probe.spec.where)
            for number, form in probe.forms().items():
                self._forms.setdefault(number, form)

    def take_remarks(self) -> list[str]:
        """What there is to tell people that was not told yet."""
        found = [text for target in self.targets for text in target.remarks]
        new = [text for text in dict.fromkeys(found) if text not in self._told]
        self._told.update(new)
        return new

    def missing(self) -> list[str]:
        """Why probes are in none of the processes, for people."""
        return [text for where, text in self._missing.items() if where not in self._were_found]

    def read(self) -> EventBatch:
        """The events that have come since, of all threads."""
        return EventBatch([(one.type, one.table) for one in self.read_events()], self.take_losses())

    def read_events(self) -> list[ReadEvents]:
        """The same by probe, without what was lost."""
        self.sink.clock.note()
        for target in list(self.targets):
            executions = target.answer()
            self._note_forms(target)
            if target.drain(self.sink):
                target.free_slots()
            for execution in executions:
                self._follow(execution)
        numbers = sorted(self._forms)
        taken = dict(zip(numbers, self.sink.take_together(numbers), strict=True))
        captured = [
            CapturedOf(index, self._forms[number], one, self._place_names.get(index, {}))
            for number, some in taken.items()
            for index in [(number - 1) // N_NUMBERS]
            for one in some
        ]
        return self._reader.read(captured, self.sink.clock)

    def _follow(self, execution: Execution) -> None:
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
        if pid == target.pid:
            # What was in its rings is read.
            self._pulse.remove(target.process.shared)
            self._tabled = {one for one in self._tabled if one[1] != target.pid}
            target.abandon(process)
            self._forget(target)
        self.enter(process)
        process.detach()

    def _forget(self, target: ProbedTarget) -> None:
        self.targets.remove(target)
        del self._asking[target]

    def wait(self, seconds: float) -> None:
        """Wait until a thread wants something, or for so long."""
        if self.targets:
            self.targets[0].wait(seconds)
        else:
            time.sleep(seconds)

    def close(self) -> None:
        """Take all probes out."""
        self._pulse.close()
        for target in self.targets:
            self.left += target.close()
        self.images.close()

    def _first_name(self, tid: int) -> bytes:
        """What a thread was called when it came to a probe first; empty: nobody knows."""
        return next(filter(None, (target.first_name(tid) for target in self.targets)), b"")

    def take_losses(self) -> list[Loss]:
        """What was lost since this was asked last."""
        losses = []
        for target in self.targets:
            lost = target.take_lost()
            if lost:
                losses.append(Loss(time.time_ns(), int(target.pid), int(target.pid), lost))
        return losses


def _raise_refused(target: ProbedTarget) -> None:
    """Raises UsageError where places can't be as they have to be."""
    refused, target.refused = target.refused, []
    if refused:
        others = f" (and {len(refused) - 1} others)" if len(refused) > 1 else ""
        raise UsageError(f"{refused[0]}{others}")
