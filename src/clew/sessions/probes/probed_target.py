"""One process with probes in it: what is wanted is found in its code, planned, put there, and taken out again.

Runs in the controller, all of it in one thread.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import time
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

import numpy as np

from clew.address import Pid, Tid
from clew.binary.demangle import demangle
from clew.capture.form import Form
from clew.dataclass import dataclass
from clew.errors import CaptureError, RemoteCallError, TargetGoneError, UsageError
from clew.probing.foreign import find_foreign
from clew.probing.leaving import leave, wait_for_end
from clew.probing.locations.in_process import ProcessPlace, open_process
from clew.probing.locations.place import PlaceKind
from clew.probing.locations.syntax import NamePlace, parse_location
from clew.probing.native import ExitKind, FunctionCode, Technique, find_all_exits, find_body
from clew.probing.placing import Placing
from clew.probing.planning import Foreign, Planning, Site
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
from clew.sessions.probes.asked import AskedForm, AskedProbe
from clew.sessions.probes.executions import EXECUTING_FUNCTIONS
from clew.sessions.probes.image_code import ProcessCode
from clew.sessions.probes.known_places import KnownPlaces

__all__ = ["ArmedProbe", "Execution", "ProbedTarget"]

_MAX_ROWS: Final = min(MAX_CAPTURES, MAX_PROBES) - 16
"""Some are left for what is heard of loading."""
LOADING_NUMBER: Final = 1 << 28
EXECUTION_NUMBER: Final = LOADING_NUMBER + 1
"""What captures are known by at which threads stop that load something, or are about to execute a program."""

_UNANSWERED: Final = (
    "threads went on without waiting for probes in what they loaded or executed: nobody answered them for too long"
)
_TECHNIQUES: Final = {
    Technique.JUMP: "jump",
    Technique.JUMP_GUARDED: "jump",
    Technique.JUMP_PADDING: "jump",
    Technique.JUMP_PUNNED: "jump",
    Technique.BRANCHES: "jump",
    Technique.TRAP: "trap",
}


@dataclass(frozen=True)
class ArmedProbe:
    """A probe at a place of a process: by which technique, and why no better one; `role` is `point`, `entry` or
    `return`."""

    name: str
    place: ProcessPlace
    address: int
    role: str
    technique: Technique
    reason: str

    @property
    def backend(self) -> str:
        """`jump` or `trap`."""
        return _TECHNIQUES[self.technique]


class Execution(NamedTuple):
    """Thread `tid` waits, which is about to execute a program. `pid`: the process that its block is of."""

    target: ProbedTarget
    slot: int
    pid: Pid
    tid: Tid


class ProbedTarget:
    """The probes in one process."""

    def __init__(
        self, process: ProbedProcess, probes: Sequence[AskedProbe], stopped: StoppedProcess | None = None
    ) -> None:
        """`probes` are wanted there. `stopped`: the process, if it is stopped before its first instruction."""
        self.process = process
        self.probes = probes
        self._disabled: set[AskedProbe] = set()
        self.found: list[AskedProbe] = []
        """Probes of which there is a place."""
        self.pid: Pid = process.pid
        self._placing = Placing(process)
        self._placing.stopped = stopped
        self._planning = Planning()
        self._open = contextlib.ExitStack()
        self._places = self._open.enter_context(open_process(process.task))
        self._known_places = KnownPlaces(self._places, process.task)
        self._code = ProcessCode(self._places, self._placing.read)
        self._slots = Slots(process.shared)
        self._sites: list[tuple[AskedProbe, ProcessPlace, str, Site]] = []
        """Places that are probed, and their roles."""
        self.place_names: dict[int, str] = {}
        self.remarks: list[str] = []
        """What is to be told people: what places are doubtful, and where no probe can be."""
        self._known: set[tuple[int, int]] = set()
        """Numbers of probes, and the addresses where they are."""
        self._n_rows = 0
        """How many captures there are."""
        self._hears_loading = False
        self._has_own_numbers = has_own_namespace(process.task)
        shared = process.shared
        bell = shared.layout.status_offset + field_offset("StatusPage", "doorbell")
        self._bell = ctypes.c_uint32.from_buffer(shared.map, bell)
        self._n_lost = 0

    @property
    def armed(self) -> list[ArmedProbe]:
        """What is probed now."""
        return [
            ArmedProbe(probe.spec.name, place, site.address, role, site.group.plan.technique, site.group.plan.reason)
            for probe, place, role, site in self._sites
            if site.group is not None
        ]

    def arm(self) -> None:
        """Put probes to their places, as far as what these are in is loaded. Raises TargetError."""
        with _nothing_collected():
            self._arm()

    def _arm(self) -> None:
        self._known_places.renew()
        for probe in self.probes:
            if probe in self._disabled:
                continue
            found = self._known_places.resolve(probe.spec.where, with_inlined=probe.spec.with_inlined)
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

    @property
    def missing(self) -> dict[str, str]:
        """Why probes are nowhere, for people, by what was asked for."""
        return {one.spec.where: one.missing for one in self.probes if one.missing}

    def enable(self, probes: Sequence[AskedProbe]) -> None:
        """Have these probes be there again. Raises TargetError."""
        self._disabled.difference_update(probes)
        self.arm()

    def disable(self, probes: Sequence[AskedProbe]) -> None:
        """Have these probes nowhere. Raises TargetError, UsageError."""
        self._disabled.update(probes)
        numbers = {probe.number for probe in probes}
        gone = [one for one in self._sites if one[0].number in numbers]
        self._sites = [one for one in self._sites if one[0].number not in numbers]
        self._known = {one for one in self._known if one[0] not in numbers}
        self._n_rows -= sum(len(site.rows) for *_, site in gone)
        self._planning.remove(site for *_, site in gone)
        self._place()

    def _place(self) -> None:
        """Put probes where they are planned, with techniques that need less where there is no room for a better one."""
        made, gone = self._planning.changes()
        while made or gone:
            failed = self._placing.apply(made, gone)
            if not failed:
                self._planning.confirm()
                return
            for site, reason in self._planning.plan_again(failed):
                self.remarks += [_refusal(probe, place, reason) for probe, place, _, own in self._sites if own is site]
            made, gone = self._planning.changes()

    def _note_name(self, probe: AskedProbe, place: ProcessPlace, address: int) -> None:
        """Events of places that a pattern means are called as these are; `address` is where they are told of."""
        where = parse_location(probe.spec.where)
        if isinstance(where, NamePlace) and where.may_be_pattern and place.place is not None and place.place.symbol:
            self.place_names[address] = demangle(place.place.symbol)

    def _hear_loading(self) -> None:
        """Have threads stop where the dynamic linker tells debuggers that it has loaded something, or is about to
        unload it: in front of the constructors of what is new (glibc's elf/dl-debug.c; musl has the same)."""
        self._hears_loading = self._stop_at("_dl_debug_state", LOADING_NUMBER)

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
        places = self._known_places.resolve(name).places
        for place in places:
            if (number, place.address) in self._known:
                continue
            self._known.add((number, place.address))
            with contextlib.suppress(UsageError):
                site = self._site_at(place.address)
                site.rows = [CaptureRow(site.pc, number, CaptureAction.STOP, stop)]
                self._planning.add(site)
        return bool(places)

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
                self._forget_unloaded()
                self.arm()
        finally:
            for slot in loading:
                self.reply(slot)
        if self._slots.status()["unanswered"] and _UNANSWERED not in self.remarks:
            self.remarks.append(_UNANSWERED)
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
            for site, role in self._sites_of(probe, place):
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
            self.remarks.append(_refusal(probe, place, error.message))
            return
        if planned:
            self._note_name(probe, place, planned[0].address)
        if probe not in self.found:
            self.found.append(probe)

    def _sites_of(self, probe: AskedProbe, place: ProcessPlace) -> Iterator[tuple[Site, str]]:
        """The sites of a probe at a place, and their roles: where a function begins comes first."""
        address, sums = place.address, probe.spec.wish is not None
        if not probe.spec.is_function:
            site = self._site_at(address)
            site.rows = [self._sum_row(site, probe) if sums else self._row(site, probe.number, probe.form)]
            yield site, "point"
            return
        if place.place is not None and place.place.kind == PlaceKind.CHOOSER:
            # It chooses the function that is meant, which is known once the dynamic linker has called it.
            return
        code, image = self._code.find(address)
        if address != code.start:
            raise UsageError(f"{probe.spec.where}: {address:#x} is not where a function begins")
        entry = self._site_at(find_body(code))
        kept = CaptureRow(entry.pc, probe.kept_number, CaptureAction.CALL, probe.kept_form, call_kind=probe.call_kind)
        entry.rows = [kept] if sums else [self._row(entry, probe.number, probe.form), kept]
        yield entry, "entry"
        for piece, one in find_all_exits(code, image.parts.get(code.start, ())):
            is_taken = one.kind == ExitKind.CONDITIONAL_TAIL
            foreign = self._foreign_of(piece)
            left = Site(one.address, piece, image, is_exit=True, is_taken=is_taken, foreign=foreign)
            if sums:
                left.rows = [self._sum_row(left, probe)]
            else:
                left.rows = [self._row(left, probe.return_number, probe.return_form, probe.call_kind)]
            yield left, "return"

    def _site_at(self, address: int) -> Site:
        code, image = self._code.find_any(address)
        return Site(address, code, image, foreign=self._foreign_of(code))

    def _foreign_of(self, code: FunctionCode) -> list[Foreign]:
        return find_foreign(code, self._placing.read)

    def _sum_row(self, site: Site, probe: AskedProbe) -> CaptureRow:
        return probe.sum_row(site.pc, self.pid, self.process.task, site.address)

    def _row(self, site: Site, number: int, form: AskedForm, call_kind: int = 0) -> CaptureRow:
        packed = form.form_at(self.pid, self.process.task, site.address)
        return CaptureRow(site.pc, number, CaptureAction.RECORD, packed, call_kind=call_kind)

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


def _refusal(probe: AskedProbe, place: ProcessPlace, reason: str) -> str:
    return f"{probe.spec.name}: no probe at {place.name}: {reason}"


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
