"""One process with probes in it: what is wanted is found in its code, planned, put there, and taken out again.

Runs in the controller, all of it in one thread.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from clew.address import Pid, Tid
from clew.capture.form import Form
from clew.errors import CaptureError, RemoteCallError, TargetGoneError, UsageError
from clew.probing.leaving import leave, wait_for_end
from clew.probing.locations.in_process import ProcessPlace, open_process
from clew.probing.locations.syntax import parse_location
from clew.probing.placing import Placing
from clew.probing.planning import Planning, Site
from clew.probing.probed_process import ProbedProcess
from clew.probing.worker import reap_worker
from clew.process.attachable import has_own_namespace
from clew.process.capture_table import CaptureRow
from clew.process.futexes import wait_for_change
from clew.process.linux import PROT_EXEC
from clew.process.maps import read_maps
from clew.process.stopped_process import StoppedProcess
from clew.protocol._constants import (
    MAX_CAPTURES,
    MAX_PROBES,
    RECORD_BYTES,
    CaptureAction,
    HoldReply,
    RequestKind,
    SlotState,
)
from clew.protocol.layout import field_offset
from clew.recording.drain.slots import ImpossibleHeadError, Slots
from clew.sessions.capture_sink import CaptureSink
from clew.sessions.probes.asked import AskedProbe
from clew.sessions.probes.backends import AUTO, Backend, BackendChoice
from clew.sessions.probes.executions import EXECUTING_FUNCTIONS
from clew.sessions.probes.image_code import ProcessCode
from clew.sessions.probes.place_names import name_of_place
from clew.sessions.probes.probe_sites import ArmedProbe, ProbeSites

__all__ = ["Execution", "ProbedTarget"]

_MAX_ROWS: Final = min(MAX_CAPTURES, MAX_PROBES) - 16
"""Some are left for what is heard of loading."""
LOADED_FUNCTION: Final = "_dl_debug_state"
_N_LOADINGS: Final = 2
"""So often a program's libraries have the dynamic linker call that, before and behind (enum r_state of link.h)."""
LOADING_NUMBER: Final = 1 << 28
EXECUTION_NUMBER: Final = LOADING_NUMBER + 1
"""What captures are known by at which threads stop that load something, or are about to execute a program."""


class Execution(NamedTuple):
    """Thread `tid` waits, which is about to execute a program. `pid`: the process that its block is of."""

    target: ProbedTarget
    slot: int
    pid: Pid
    tid: Tid


class ProbedTarget:
    """The probes in one process."""

    def __init__(
        self,
        process: ProbedProcess,
        probes: Iterable[AskedProbe],
        stopped: StoppedProcess | None = None,
        choice: BackendChoice = AUTO,
    ) -> None:
        """`probes` are wanted there. `stopped`: the process, if it is stopped before its first instruction. `choice`
        says by which techniques."""
        self.process, self._choice = process, choice
        self.probes = {probe.index: probe for probe in probes}
        """Those that are to be there, by their indices."""
        self.found: list[AskedProbe] = []
        """Probes of which there is a place."""
        self.pid: Pid = process.pid
        self._placing = Placing(process)
        self._placing.stopped = stopped
        self._planning = Planning()
        self._open = contextlib.ExitStack()
        self._places = self._open.enter_context(open_process(process.task))
        self._plans = ProbeSites(process, ProcessCode(self._places), self._placing.read)
        self._slots = Slots(process.shared)
        self._sites: list[tuple[AskedProbe, ProcessPlace, str, Site]] = []
        """Places that are probed, and their roles."""
        self.place_names: dict[int, dict[int, str]] = {}
        """What the places are called that a pattern means: by the probe's index, and address."""
        self.remarks: list[str] = []
        """What is to be told people: what places are doubtful, and where no probe can be."""
        self.refused: list[str] = []
        """What of that is a place that can't be as it has to be."""
        self._known: set[tuple[int, int]] = set()
        """Numbers of probes, and the addresses where they are."""
        self._n_rows = 0
        """How many captures there are."""
        self._hears_loading = False
        # Of libraries it has none yet, where something loads them.
        self._n_to_load = _N_LOADINGS if stopped is not None and self._find(LOADED_FUNCTION) else 0
        self._has_own_numbers = has_own_namespace(process.task)
        shared = process.shared
        bell = shared.layout.status_offset + field_offset("StatusPage", "doorbell")
        self._bell = ctypes.c_uint32.from_buffer(shared.map, bell)
        self._n_lost = 0

    @property
    def armed(self) -> list[ArmedProbe]:
        """What is probed now."""
        return [
            ArmedProbe(
                probe.index,
                probe.spec.name,
                place,
                site.address,
                role,
                site.group.plan.technique,
                site.group.plan.reason,
            )
            for probe, place, role, site in self._sites
            if site.group is not None
        ]

    def arm(self) -> None:
        """Put probes to their places, as far as what these are in is loaded. Raises TargetError."""
        with _nothing_collected():
            self._arm()

    def _arm(self) -> None:
        self._places.renew(read_maps(self.process.task))
        for probe in self.probes.values():
            found = self._places.resolve(parse_location(probe.spec.where), with_inlined=probe.spec.with_inlined)
            self.remarks += [one for one in found.warnings if one not in self.remarks]
            probe.missing = found.missing if not found.places else ""
            for place in found.places:
                # It may be a pattern, of which only some places are new.
                if (probe.number, place.address) not in self._known:
                    self._known.add((probe.number, place.address))
                    self._plan(probe, place)
        if not self._hears_loading:
            self._hear_loading()
        self._hear_executions()
        self._place()
        if self._choice.tells_traps:
            self._tell_traps()

    @property
    def missing(self) -> dict[str, str]:
        """Why probes are nowhere, for people, by what was asked for."""
        return {one.spec.where: one.missing for one in self.probes.values() if one.missing}

    def add(self, probes: Iterable[AskedProbe]) -> None:
        """Have these probes, too. Raises TargetError."""
        self.probes.update((probe.index, probe) for probe in probes)
        self.arm()

    def remove(self, indices: Iterable[int]) -> list[AskedProbe]:
        """Have the probes of these indices nowhere; those that there were. Raises TargetError, UsageError."""
        removed = [self.probes.pop(index) for index in indices if index in self.probes]
        numbers = {probe.number for probe in removed}
        gone = [one for one in self._sites if one[0].number in numbers]
        self._sites = [one for one in self._sites if one[0].number not in numbers]
        self._known = {one for one in self._known if one[0] not in numbers}
        self._n_rows -= sum(len(site.rows) for *_, site in gone)
        self._planning.remove(site for *_, site in gone)
        self._place()
        return removed

    def _place(self) -> None:
        """Put probes where they are planned, with techniques that need less where there is no room for a better one."""
        made, gone = self._planning.changes()
        while made or gone:
            failed = self._placing.apply(made, gone)
            if not failed:
                self._planning.confirm()
                return
            for site, reason in self._planning.plan_again(failed):
                for probe, place, _, own in self._sites:
                    if own is site:
                        self._refuse(probe, place, reason)
            made, gone = self._planning.changes()

    def _note_name(self, probe: AskedProbe, place: ProcessPlace) -> None:
        name = name_of_place(probe.spec, place)
        if name:
            self.place_names.setdefault(probe.index, {})[place.address] = name

    def _hear_loading(self) -> None:
        """Have threads stop where the dynamic linker tells debuggers that it has loaded something, or is about to
        unload it: in front of the constructors of what is new (glibc's elf/dl-debug.c; musl has the same)."""
        self._hears_loading = self._stop_at(LOADED_FUNCTION, LOADING_NUMBER)

    def _hear_executions(self) -> None:
        """Have threads stop that are about to execute a program. In a pid namespace of its own they would give numbers
        that say nothing here: such programs are not followed."""
        if self._has_own_numbers:
            return
        for name in EXECUTING_FUNCTIONS:
            self._stop_at(name, EXECUTION_NUMBER)

    def _stop_at(self, name: str, number: int) -> bool:
        """Have threads stop at functions of that name, where they do not yet; whether there is one."""
        stop = Form((), (), None, b"").pack()
        places = self._find(name)
        for place in places:
            if (number, place.address) in self._known:
                continue
            self._known.add((number, place.address))
            with contextlib.suppress(UsageError):
                site = self._plans.site_at(place.address)
                site.rows = [CaptureRow(site.pc, number, CaptureAction.STOP, stop)]
                self._planning.add(site)
        return bool(places)

    def _find(self, name: str) -> Sequence[ProcessPlace]:
        return self._places.resolve(parse_location(name)).places

    def answer(self) -> list[Execution]:
        """Let threads go on that have loaded or unloaded something, once probes are where they are to be by now. Those
        that are about to execute programs wait on, and are given back."""
        executions = []
        loading = []
        for slot in self._slots.find_asking(RequestKind.HOLD):
            request = self._slots.read_request(slot)
            if request.arguments[1] == EXECUTION_NUMBER:
                pid = int(self._slots.rows["process"][slot])
                executions.append(Execution(self, slot, Pid(pid), Tid(request.arguments[3])))
            else:
                loading.append(slot)
        try:
            if loading:
                self._n_to_load = max(self._n_to_load - 1, 0)
                self._forget_unloaded()
                self.arm()
        finally:
            for slot in loading:
                self.reply(slot)
        # It runs already: what can't be as it has to be is nowhere, and told.
        self.refused.clear()
        return executions

    def reply(self, slot: int) -> None:
        """Let a thread go on that waits."""
        self._slots.reply(slot, HoldReply.GO_ON)

    def _forget_unloaded(self) -> None:
        """What was unloaded has taken its probes along."""
        mapped = [one for one in read_maps(self.process.task) if one.protection & PROT_EXEC]

        def is_there(address: int) -> bool:
            return any(one.start <= address < one.end for one in mapped)

        gone = self._placing.groups_at(lambda address: not is_there(address))
        self._placing.forget(gone)
        self._planning.forget(gone)
        self._sites = [one for one in self._sites if is_there(one[-1].address)]
        self._n_rows = sum(len(site.rows) for *_, site in self._sites)
        self._known = {(number, address) for number, address in self._known if is_there(address)}

    def _plan(self, probe: AskedProbe, place: ProcessPlace) -> None:
        """Plan the sites of a probe at a place; none where there can be none, which is told."""
        planned: list[Site] = []
        try:
            for site, role in self._plans.iter_sites(probe, place):
                site.without = self._choice.without
                if self._n_rows + len(site.rows) > _MAX_ROWS:
                    raise UsageError(f"there are {self._n_rows} captures already: there is no room for more")
                self._planning.add(site)
                planned.append(site)
                self._n_rows += len(site.rows)
                self._sites.append((probe, place, role, site))
        except (UsageError, CaptureError) as error:
            self._planning.remove(planned)
            self._n_rows -= sum(len(site.rows) for site in planned)
            self._sites = self._sites[: len(self._sites) - len(planned)]
            if isinstance(error, CaptureError) and self._n_to_load:
                # What it names may be loaded soon.
                self._known.discard((probe.number, place.address))
                probe.missing = error.message
            else:
                self._refuse(probe, place, error.message)
            return
        self._note_name(probe, place)
        if probe not in self.found:
            self.found.append(probe)

    def _refuse(self, probe: AskedProbe, place: ProcessPlace, reason: str) -> None:
        self.remarks.append(f"{probe.spec.name}: no probe at {place.name}: {reason}")
        if self._choice.requires_jump:
            self.refused.append(self.remarks[-1])

    def _tell_traps(self) -> None:
        for one in self.armed:
            text = f"{one.name}: {one.place.name}: {one.address:#x} traps: {one.reason}"
            if one.backend == Backend.TRAP.value and text not in self.remarks:
                self.remarks.append(text)

    @property
    def n_held(self) -> int:
        """How often all threads were held for a change of code."""
        return self._placing.n_held

    def wait(self, seconds: float) -> None:
        """Wait until a thread wants something, or for so long."""
        wait_for_change([(self._bell, self._bell.value)], time.monotonic() + seconds)

    def let_go(self) -> None:
        """The process is about to run."""
        self._placing.stopped = None

    def drain(self, sink: CaptureSink) -> int:
        """Hand over what is in the rings; how many records."""
        n = 0
        for slot in self._slots.find_used():
            try:
                head, first, second = self._slots.read_ring(slot)
            except ImpossibleHeadError:
                continue
            data = bytes(first) + bytes(second)
            first.release()
            second.release()
            self._slots.free_room(slot, head)
            if data:
                records = np.frombuffer(data, np.uint8).reshape(-1, RECORD_BYTES)
                sink.keep(int(self._slots.rows["process"][slot]) or int(self.pid), records)
                n += len(records)
        return n

    def first_name(self, tid: int) -> bytes:
        """What a thread was called when it came to a probe first; empty where it did not, or that is not known."""
        slots = np.flatnonzero(self._slots.rows["tid"] == tid)
        return bytes(self._slots.rows["name"][slots[0]].tobytes()).split(b"\0")[0] if len(slots) else b""

    def free_slots(self) -> None:
        """Have the slots of threads that are gone, and of whose records all were taken, be others'."""
        if self._has_own_numbers:
            # What the target calls its threads says nothing here.
            return
        for slot, tid, _ in self._slots.find_threads():
            row = self._slots.rows[slot]
            is_read = int(row["ring_head"]) == int(self._slots.tails[slot])
            if is_read and tid and not os.path.exists(f"/proc/{int(row['process'])}/task/{tid}"):
                self._slots.states[slot] = SlotState.FREE

    def take_lost(self) -> int:
        """How many events were lost since this was asked last."""
        lost = int(self._slots.status()["lost_records"])
        lost += self.process.sites.missed()
        before, self._n_lost = self._n_lost, lost
        return lost - before

    def abandon(self, stopped: StoppedProcess) -> None:
        """The process has become another program, before whose first instruction it is stopped: nothing is left there
        but the runtime's task, which ends."""
        self.process.sites.leave()
        wait_for_end(self.process)
        with contextlib.suppress(RemoteCallError):
            reap_worker(stopped, self.process.task_inside)
        self._release()

    def close(self) -> list[str]:
        """Take all probes out, and the runtime's task, as far as the process is there still; what stays, for people."""
        left: list[str] = []
        with contextlib.suppress(TargetGoneError):
            if self.process.is_served():
                left = leave(self.process, self._placing)
        self._release()
        return left

    def _release(self) -> None:
        self._slots.close()
        del self._bell
        self.process.close()
        self._open.close()


@contextlib.contextmanager
def _nothing_collected() -> Iterator[None]:
    """Plans are many objects, all of which stay: looking for circles among them takes longer than making them."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
