"""Probes in processes, and the events that come of them: one session, in one thread.

Runs in the controller.
"""

from __future__ import annotations

import contextlib
import signal
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from clew.errors import ClewError, ControlError, TargetError, UsageError
from clew.export.probes.event_types import EventBatch, Loss
from clew.sessions.aggregates import Aggregate
from clew.sessions.probes.asked import N_NUMBERS, check_spec
from clew.sessions.probes.backends import AUTO, BackendChoice
from clew.sessions.probes.event_reader import CapturedOf, ReadEvents
from clew.sessions.probes.following_session import FollowingSession, records
from clew.sessions.probes.probe_launch import ProbedCommand
from clew.sessions.probes.specs import ProbeSpec, RecordWish, Trigger, TriggerAction
from clew.sessions.probes.waiting import Waiting
from clew.sessions.probes.waiting_threads import act

if TYPE_CHECKING:
    from clew.sessions.probes.event_forms import EventForm

__all__ = ["ProbeSession"]

MIN_NEWEST_BYTES: Final = 1 << 12
MAX_NEWEST_BYTES: Final = 1 << 26


class ProbeSession(FollowingSession):
    """The probes `specs` in the processes that are added, by techniques as `choice` has them. Raises CaptureError where
    one can't be.

    With `newest_bytes` it is a flight recorder: of each thread the newest events, so many bytes, are kept, and read
    gives none but those of a `snapshot`. Where a trigger starts events there are none before it does. `record` says
    where that is recorded which a trigger has followed.
    """

    def __init__(
        self,
        specs: Sequence[ProbeSpec],
        choice: BackendChoice = AUTO,
        *,
        newest_bytes: int = 0,
        record: RecordWish | None = None,
    ) -> None:
        if newest_bytes and not MIN_NEWEST_BYTES <= newest_bytes <= MAX_NEWEST_BYTES:
            raise UsageError(f"{newest_bytes} bytes are not between {MIN_NEWEST_BYTES} and {MAX_NEWEST_BYTES}")
        super().__init__(choice, newest_bytes, record)
        self._is_due = False
        self.n_events: Counter[int] = Counter()
        """How many came of each probe, by its index."""
        self.n_lost = 0
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
        return self._n_indices

    def add(self, specs: Iterable[ProbeSpec]) -> list[int]:
        """Have these probes, too, in all processes from now on; their indices. Raises CaptureError, TargetError,
        UsageError: they are in none then."""
        specs = list(specs)
        for spec in specs:
            check_spec(spec)
        if any(map(records, specs)):
            if self._record is None:
                raise UsageError("where what is followed is to be recorded is not said")
            self._record.follower.prepare()
        indices = [self.take_index() for _ in specs]
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
            target.asker.raise_refused()
        if self.following is not None:
            with contextlib.suppress(ControlError):
                for index in indices:
                    if self._specs[index].has_events:
                        self.following.enable(index, self._specs[index])
            self._findings.remarks += self.following.take_remarks()

    def remove(self, indices: Iterable[int]) -> None:
        """Have these probes nowhere any more, until they are enabled. Raises TargetError, UsageError."""
        gone = set(indices)
        self._wanted = [index for index in self._wanted if index not in gone]
        for target in self.targets:
            target.change(partial(target.remove, gone))
        if self.following is not None:
            with contextlib.suppress(ControlError):
                for index in gone:
                    self.following.remove(index)

    def record_at(self, spec: ProbeSpec, wish: RecordWish) -> int:
        """Have the process followed, and recorded, from where `spec` says so on; the probe's index. Raises the same as
        `add`, and UsageError where something is or was to be recorded already."""
        if self._record is not None:
            raise UsageError("a process of a session is followed from one event on, and that was asked for already")
        self._record = wish
        try:
            return self.add([spec])[0]
        except ClewError:
            self._record = None
            raise

    def remove_all(self) -> None:
        """Have no probe anywhere any more, as far as processes are there still, and are what they were."""
        gone, self._wanted = set(self._wanted), []
        for target in self.targets:
            with contextlib.suppress(TargetError, UsageError):
                target.remove(gone)

    def start(self, command: Sequence[str], ignored: Sequence[signal.Signals] = ()) -> ProbedCommand:
        """Start a program, with the probes from its first instruction on; it ignores the signals `ignored`. Raises
        ClewError: it has not run then."""
        return ProbedCommand(self, command, ignored)

    def sums(self) -> list[tuple[ProbeSpec, Aggregate]]:
        """What is added up, as far as there was a place for it. It can be read when all is over, too."""
        return [(self._specs[index], found) for index, found in sorted(self._sums.found.items())]

    def find_sum(self, index: int) -> Aggregate | None:
        """What a probe adds up; None: there was no place for it yet."""
        return self._sums.found.get(index)

    def found_forms(self, index: int) -> list[EventForm]:
        """What is taken of a probe that was at a place."""
        return [form for number, form in sorted(self._findings.forms.items()) if (number - 1) // N_NUMBERS == index]

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
        self.advance()
        if self._newest_bytes and not self._is_due:
            return []
        self._is_due = False
        self._draining.give_due()
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
        events = self.reader.read(captured, self.sink.clock)
        if self.following is not None:
            followed = self.following.read_events()
            for probe, _, table in followed:
                self.n_events[probe] += table.num_rows
            events += followed
        return events

    def act(self, waiting: Waiting) -> None:
        act(self, waiting)

    @property
    def is_recorder(self) -> bool:
        """Whether it is a flight recorder."""
        return self._newest_bytes != 0

    def snapshot(self) -> None:
        """Have the newest events of all threads read next, as they are now."""
        self._draining.snapshot(self.targets)
        self._is_due = True

    def take_losses(self) -> list[Loss]:
        """What was lost since this was asked last."""
        losses, self._late_losses = self._late_losses, []
        for target in self.targets:
            losses += self._losses_of(target)
        self.n_lost += sum(one.count for one in losses)
        return losses
