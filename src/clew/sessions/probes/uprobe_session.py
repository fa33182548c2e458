"""Probes by the kernel's uprobes, to compare: what is asked of the kernel is where threads come, and their registers.

Runs in the controller, in one thread.
"""

from __future__ import annotations

import contextlib
import errno
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from clew.address import Pid
from clew.errors import CaptureError, TargetError, UsageError
from clew.export.probes.event_types import EventBatch, Loss
from clew.probing.locations.in_process import ProcessPlaces, open_process
from clew.probing.locations.place import PlaceKind
from clew.probing.locations.syntax import parse_location
from clew.process.held_process import HeldProcess
from clew.process.linux import PROT_EXEC
from clew.process.maps import Mapping, read_maps
from clew.process.perf_uprobes import Uprobes
from clew.sessions.memory import Images
from clew.sessions.probes.asked import check_spec
from clew.sessions.probes.event_reader import EventReader
from clew.sessions.probes.located import check_place
from clew.sessions.probes.place_names import name_of_place
from clew.sessions.probes.probe_launch import ProbedCommand
from clew.sessions.probes.process_machine import make_machine
from clew.sessions.probes.program_entry import run_to_entry
from clew.sessions.probes.specs import ProbeSpec
from clew.sessions.probes.uprobe_events import UprobeEvents, check_texts

if TYPE_CHECKING:
    import signal

    from clew.probing.locations.in_process import ProcessPlace
    from clew.process.stopped_process import StoppedProcess
    from clew.sessions.aggregates import Aggregate

__all__ = ["UprobeSession"]

_NOT_ALLOWED: Final = "uprobes need root, or the capabilities CAP_PERFMON and CAP_SYS_ADMIN"
_NOT_THERE: Final = "the kernel offers no uprobes here (tracefs)"


_REASONS: Final = {
    errno.EMFILE: "there are too many threads and processors for it",
    524: "the kernel can't execute that instruction elsewhere",
}
"""524 is ENOTSUPP, which the kernel keeps to itself, but for here."""
_HOLD_SECONDS: Final = 2.0


class UprobeSession:
    """The probes `specs` in one process, and in what descends from it as far as it is of the same files. Raises
    CaptureError where something is no expression, or not what a uprobe takes; UsageError where the kernel has none."""

    def __init__(self, specs: Sequence[ProbeSpec]) -> None:
        self._specs = list(specs)
        self._images = Images()
        machine = make_machine(Pid(0), self._images)
        for spec in specs:
            check_spec(spec)
            check_texts(spec, machine, self._images)
        try:
            self._uprobes = Uprobes()
        except PermissionError as error:
            raise UsageError(_NOT_ALLOWED) from error
        except OSError as error:
            raise UsageError(f"{_NOT_THERE}: {error.strerror}") from error
        self._machine = machine
        self._events = UprobeEvents(self._images)
        self._reader = EventReader(self._images, lambda: ())
        self._open = contextlib.ExitStack()
        self._places: ProcessPlaces | None = None
        self._pid = Pid(0)
        self._stopped: StoppedProcess | None = None
        self._code: list[Mapping] = []
        self._known: set[tuple[int, int]] = set()
        """Indices of probes, and addresses."""
        self._missing: dict[int, str] = {}
        self._remarks: list[str] = []
        self._told: set[str] = set()
        self._n_lost = 0
        self.left: list[str] = []
        """Nothing: the kernel takes its probes out."""

    def attach(self, pid: Pid) -> None:
        """Probe a process that runs. Raises TargetError, UsageError."""
        self._pid, self._machine = pid, make_machine(pid, self._images)
        self._places = self._open.enter_context(open_process(pid))
        self._events.meet(pid)
        self._arm()

    @property
    def recorded(self) -> None:
        """Nothing is."""

    @property
    def is_recorder(self) -> bool:
        """It is none."""
        return False

    @property
    def reader(self) -> EventReader:
        """What knows how addresses are called."""
        return self._reader

    def snapshot(self) -> None:
        """Nothing: all events are read."""

    def find_follower(self, pid: Pid) -> None:
        """Nobody follows a process."""

    def start(self, command: Sequence[str], ignored: Sequence[signal.Signals] = ()) -> ProbedCommand:
        """Start a program, with the probes from its own first instruction on; it ignores the signals `ignored`. Raises
        ClewError."""
        return ProbedCommand(self, command, ignored)

    def enter(self, process: StoppedProcess) -> None:
        """Probe a process that is stopped before its first instruction, once it has its libraries; it is stopped then.
        Raises ClewError."""
        run_to_entry(process)
        self._stopped = process
        self.attach(process.pid)
        self._stopped = None

    def wait(self, seconds: float) -> None:
        """Let time pass: the kernel keeps what comes."""
        time.sleep(seconds)

    def read(self) -> EventBatch:
        """The events that have come since, and places in what was loaded since. Raises UsageError."""
        with contextlib.suppress(TargetError):
            self._arm()
        tables = self._events.make(self._uprobes.read())
        lost, self._n_lost = self._uprobes.n_lost - self._n_lost, self._uprobes.n_lost
        pid = int(self._pid)
        return EventBatch(tables, [Loss(time.time_ns(), pid, pid, lost)] if lost else [])

    def catch_up(self) -> None:
        """Nobody else has it."""

    def sums(self) -> list[tuple[ProbeSpec, Aggregate]]:
        """None: uprobes add nothing up."""
        return []

    def take_remarks(self) -> list[str]:
        """What there is to tell people that was not told yet."""
        new = [text for text in dict.fromkeys(self._remarks) if text not in self._told]
        self._told.update(new)
        return new

    def missing(self) -> list[str]:
        """Why probes are nowhere, for people."""
        return list(dict.fromkeys(self._missing.values()))

    def close(self) -> None:
        """Have no probes any more."""
        self._uprobes.close()
        self._open.close()
        self._images.close()

    def _arm(self) -> None:
        """Have probes at their places, in what is loaded by now. Raises TargetError, UsageError."""
        try:
            code = [one for one in read_maps(self._pid) if one.protection & PROT_EXEC and one.path.startswith("/")]
        except OSError as error:
            raise TargetError(self._pid, f"process {self._pid}: {error.strerror}") from error
        if code == self._code or self._places is None:
            return
        self._code = code
        self._places.renew(code)
        new: list[tuple[int, ProcessPlace]] = []
        for index, spec in enumerate(self._specs):
            found = self._places.resolve(parse_location(spec.where), with_inlined=spec.with_inlined)
            self._remarks += found.warnings
            new += [(index, place) for place in found.places if (index, place.address) not in self._known]
            self._known |= {(index, place.address) for place in found.places}
            self._missing.pop(index, None)
            if not any(known == index for known, _ in self._known):
                self._missing[index] = found.missing
        if new:
            with _threads_of(self._pid, self._stopped) as threads:
                for index, place in new:
                    self._arm_at(index, self._specs[index], place, self._places, threads)

    def _arm_at(
        self, index: int, spec: ProbeSpec, place: ProcessPlace, places: ProcessPlaces, threads: Sequence[int]
    ) -> None:
        at = place.place
        if spec.is_function and at is not None and at.kind == PlaceKind.CHOOSER:
            # It chooses the function that is meant.
            return
        try:
            check_place(place, places, is_function=spec.is_function)
            if at is None or not at.symbol:
                # Its first byte would be written over, wherever an instruction begins.
                raise UsageError("in no function of a file that is known")
            check_texts(spec, self._machine, self._images, self._pid, int(place.address))
            name = name_of_place(spec, place) or spec.name
            keys = self._events.add(index, spec, self._machine, self._pid, int(place.address), name)
            path = f"/proc/{self._pid}/root{at.image}"
            for key, is_return in keys:
                self._uprobes.add(key, path, at.file_offset, threads, is_return=is_return)
        except PermissionError as error:
            raise UsageError(_NOT_ALLOWED) from error
        except OSError as error:
            # Where the kernel can't execute an instruction elsewhere it says so.
            why = _REASONS.get(error.errno or 0, error.strerror)
            self._remarks.append(f"{spec.name}: no uprobe at {place.name}: {why}")
        except (UsageError, CaptureError) as error:
            self._remarks.append(f"{spec.name}: no uprobe at {place.name}: {error.message}")


@contextlib.contextmanager
def _threads_of(pid: Pid, stopped: StoppedProcess | None) -> Iterator[list[int]]:
    """The threads of a process, which make no others meanwhile: those would have probes of those that made them."""
    if stopped is not None:
        yield [int(stopped.task)]
        return
    held = HeldProcess(pid)
    try:
        held.stop_all(_HOLD_SECONDS)
        yield [int(tid) for tid in held.threads]
    finally:
        held.let_go()
