"""Probes in processes, and the events that come of them: one session, in one thread.

Runs in the controller.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from clew.address import Pid
from clew.capture.machine import Machine
from clew.errors import ClewError, TargetError
from clew.export.probes.event_types import EventBatch, EventType, Loss
from clew.probing.leaving import find_children
from clew.probing.probed_process import ProbedProcess
from clew.process.futexes import MAX_WORDS, wait_for_change
from clew.process.identity import read_group
from clew.process.maps import read_maps
from clew.process.processors.chosen import native_processor
from clew.process.runtime_image import default_runtime_path, load_runtime_image
from clew.process.stopped_process import StoppedProcess
from clew.protocol._generated import CAPTURE_RECORD
from clew.sessions.aggregate_table import AggregateRoom, AggregateTable
from clew.sessions.aggregates import Aggregate
from clew.sessions.backtrace import unwind
from clew.sessions.capture_sink import Captured, CaptureSink
from clew.sessions.memory import Image, Images
from clew.sessions.probes.asked import N_NUMBERS, AskedProbe, check_spec
from clew.sessions.probes.event_forms import EventForm
from clew.sessions.probes.executions import begin_following, follow_execution
from clew.sessions.probes.image_code import KnownCode
from clew.sessions.probes.probed_target import Execution, ProbedTarget
from clew.sessions.probes.pulse import Pulse
from clew.sessions.probes.specs import ProbeSpec
from clew.sessions.where import parse_where

__all__ = ["ProbeSession"]

Array = npt.NDArray[Any]


class ProbeSession:
    """The probes `specs` in the processes that are added. Raises CaptureError where one can't be."""

    def __init__(self, specs: Sequence[ProbeSpec]) -> None:
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
        self._known_code = KnownCode()
        self._room = AggregateRoom()
        self._sums: dict[int, tuple[AggregateTable, Aggregate]] = {}
        self._tabled: set[tuple[int, Pid]] = set()
        """Which processes have which of the tables."""
        self._remarks: list[str] = []
        """Of processes that were left, or could not be probed."""
        self._told: set[str] = set()
        self._place_names: dict[int, dict[int, str]] = {}
        """By index and address, of places that a pattern means."""
        self._missing: dict[str, str] = {}
        self._were_found: set[str] = set()
        """Places, as they were asked for."""
        self.left: list[str] = []
        """What stays of probes that were taken out, for people."""
        self._sequences: dict[tuple[int, int], int] = {}
        self._comms: dict[int, bytes] = {}
        self._loaded: dict[int, list[Image]] = {}
        self.n_events: Counter[int] = Counter()
        """How many came of each probe, by its index."""
        self.n_lost = 0
        self._late_losses: list[Loss] = []
        """Of processes that were left."""
        self.add(specs)

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
            wanted = [ask(index) for index in indices if self._is_for(index, target.origins)]
            target.change(partial(target.add, wanted))
            self._note_forms(target)

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

    def attach(self, pid: Pid, origins: frozenset[Pid] = frozenset()) -> ProbedTarget:
        """Probe a process that runs, which descends from `origins`. Raises AttachError, InjectionError, TargetError,
        UsageError, CaptureError."""
        return self._begin(ProbedProcess.attach(pid, self._image), origins | {pid})

    def enter(self, process: StoppedProcess, origins: frozenset[Pid] = frozenset()) -> ProbedTarget:
        """Probe a process that is stopped before its first instruction; it stays so. Raises the same."""
        target = self._begin(ProbedProcess.enter(process, self._image), origins | {process.pid}, process)
        target.let_go()
        return target

    def detach(self, target: ProbedTarget) -> list[Pid]:
        """Leave a process, and forks' children of it that have its probes: those, by their numbers. What they came to
        until then is to be read still. Raises TargetError: it is as before then, and this may be tried again."""
        left, children = target.leave()
        self.left += left
        target.drain(self.sink)
        self._forget(target)
        target.release()
        return children

    def find_children(self) -> dict[Pid, list[Pid]]:
        """Of each process the forks' children that have its probes."""
        return find_children([target.process for target in self.targets])

    def _begin(
        self, process: ProbedProcess, origins: frozenset[Pid], stopped: StoppedProcess | None = None
    ) -> ProbedTarget:
        self._comms[process.pid] = Path(f"/proc/{process.pid}/comm").read_bytes().rstrip(b"\n")
        self._look_at_images(process.pid)
        self._pulse.add(process.shared)
        machine = self._make_machine(process.pid)

        def find_table(probe: AskedProbe) -> AggregateTable:
            table = self._find_table(probe)
            if (probe.index, process.pid) not in self._tabled:
                self._tabled.add((probe.index, process.pid))
                table.have_in(process.shared.aggregates)
            return table

        @cache
        def ask(index: int) -> AskedProbe:
            return AskedProbe(self._specs[index], index, machine, self.images, find_table)

        wanted = [ask(index) for index in self._wanted if self._is_for(index, origins)]
        target = ProbedTarget(process, wanted, stopped, origins, self._known_code)
        self._asking[target] = ask
        self.targets.append(target)
        target.arm()
        self._note_forms(target)
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
        found = [*self._remarks, *(text for target in self.targets for text in target.remarks)]
        self._remarks.clear()
        new = [text for text in dict.fromkeys(found) if text not in self._told]
        self._told.update(new)
        return new

    def missing(self) -> list[str]:
        """Why probes are in none of the processes, for people."""
        return [text for where, text in self._missing.items() if where not in self._were_found]

    def read(self) -> EventBatch:
        """The events that have come since, of all threads."""
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
        captured = [(number, one) for number, some in taken.items() for one in some]
        sequences = self._number(captured)
        tables: list[tuple[EventType, pa.Table]] = []
        for (number, one), own in zip(captured, sequences, strict=True):
            self.n_events[(number - 1) // N_NUMBERS] += len(own)
            form = self._forms[number]
            names = self._place_names.get((number - 1) // N_NUMBERS, {})
            tables += form.tables(one, self.sink.clock, own, self._names(one), self._unwind, names)
        return EventBatch(tables, self._losses())

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
        children: list[Pid] = []
        if pid == target.pid:
            children = target.abandon(process)
            target.drain(self.sink)
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
            self._remarks.append(f"{what}: {error}")

    def _forget(self, target: ProbedTarget) -> None:
        """It is about to be let go of: keep what is to be told of it."""
        self._late_losses += self._losses_of(target)
        self._remarks += target.remarks
        self._pulse.remove(target.process.shared)
        self._tabled = {one for one in self._tabled if one[1] != target.pid}
        self.targets.remove(target)
        del self._asking[target]

    def wait(self, seconds: float) -> None:
        """Wait until a thread wants something, or for so long."""
        bells = [(target.bell, target.bell.value) for target in self.targets[:MAX_WORDS]]
        if not bells or not wait_for_change(bells, time.monotonic() + seconds):
            time.sleep(seconds)

    def close(self) -> None:
        """Take all probes out."""
        self._pulse.close()
        for target in self.targets:
            self.left += target.close()
        self.images.close()

    def _number(self, captured: Sequence[tuple[int, Captured]]) -> list[Array]:
        """Of each record which one of its thread it is: by their times, which rise in a thread."""
        if not captured:
            return []
        heads = [one.heads.view(CAPTURE_RECORD)[:, 0] for _, one in captured]
        sizes = [len(own) for own in heads]
        pids = np.repeat(np.array([one.pid for _, one in captured], np.uint64), sizes)
        tids = np.concatenate([own["tid"] for own in heads]).astype(np.uint64)
        order = np.lexsort((np.concatenate([own["tsc"] for own in heads]), tids, pids))
        threads = (pids << np.uint64(32) | tids)[order]
        starts = np.flatnonzero(np.append(True, threads[1:] != threads[:-1]))
        ranks = np.arange(len(order)) - np.repeat(starts, np.diff(np.append(starts, len(order))))
        result = np.empty(len(order), np.uint64)
        for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(order)], strict=True):
            key = (int(pids[order[start]]), int(tids[order[start]]))
            before = self._sequences.get(key, 0)
            result[order[start:end]] = before + ranks[start:end]
            self._sequences[key] = before + end - start
        return np.split(result, np.cumsum(sizes)[:-1])

    def _names(self, captured: Captured) -> dict[int, bytes]:
        """What threads are called now, or were when they were last seen."""
        for tid in np.unique(captured.heads.view(CAPTURE_RECORD)[:, 0]["tid"]).tolist():
            try:
                self._comms[tid] = Path(f"/proc/{captured.pid}/task/{tid}/comm").read_bytes().rstrip(b"\n")
            except OSError:
                # It is gone.
                self._comms.setdefault(tid, self._first_name(captured.pid, tid))
        return self._comms

    def _first_name(self, pid: int, tid: int) -> bytes:
        """What a thread was called when it came to a probe first."""
        names = (target.first_name(tid) for target in self.targets)
        return next(filter(None, names), self._comms.get(pid, b""))

    def _losses(self) -> list[Loss]:
        losses, self._late_losses = self._late_losses, []
        for target in self.targets:
            losses += self._losses_of(target)
        self.n_lost += sum(one.count for one in losses)
        return losses

    def _losses_of(self, target: ProbedTarget) -> list[Loss]:
        lost = target.take_lost()
        return [Loss(time.time_ns(), int(target.pid), int(target.pid), lost)] if lost else []

    def _unwind(self, pid: int, registers: dict[str, int], stack: bytes) -> list[int]:
        processor = native_processor()
        start = registers[processor.definition.stack_pointer]

        def read(address: int, size_bytes: int) -> bytes:
            if start <= address < start + len(stack):
                return stack[address - start : address - start + size_bytes]
            return b""

        architecture, definition = processor.architecture, processor.definition
        loaded, pc = self._loaded.get(pid, []), registers[definition.program_counter]
        if not any(image.start <= pc < image.end for image in loaded):
            loaded = self._look_at_images(pid)
        return [frame.pc for frame in unwind(self.images, loaded, registers, read, architecture, definition)]

    def _look_at_images(self, pid: int) -> list[Image]:
        """What a process has loaded now, or had when it was looked at last."""
        with contextlib.suppress(TargetError):
            self._loaded[pid] = self.images.of(Pid(pid))
        return self._loaded.get(pid, [])

    def _make_machine(self, pid: Pid) -> Machine:
        processor = native_processor()
        architecture, definition = processor.architecture, processor.definition

        def find_symbol(name: str) -> int | None:
            where, mappings = parse_where(name), read_maps(pid)
            found = sorted(where.find_in(self.images, mappings) or where.find_data_in(self.images, mappings))
            return found[0] if len(found) == 1 else None

        return Machine(
            registers=definition.held_registers,
            vectors=architecture.vector_registers,
            n_vectors=architecture.n_vector_registers,
            arguments=architecture.argument_registers,
            result=architecture.result_register,
            stack_pointer=definition.stack_pointer,
            stack_arguments=architecture.stack_arguments,
            find_symbol=find_symbol,
        )
