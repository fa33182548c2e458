"""One process with probes in it: what is wanted is found in its code, planned, put there, and taken out again.

Runs in the controller, all of it in one thread.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import time
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from clew.address import Pid, Tid
from clew.binary.demangle import demangle
from clew.capture.form import Form
from clew.dataclass import dataclass, replace
from clew.errors import CaptureError, RemoteCallError, TargetGoneError, UsageError
from clew.probing.leaving import leave, wait_for_end
from clew.probing.locations.in_process import ProcessPlace, open_process
from clew.probing.locations.syntax import NamePlace, parse_location
from clew.probing.placing import Placing, WantedSite
from clew.probing.planning import Planning
from clew.probing.probed_process import ProbedProcess
from clew.probing.worker import reap_worker
from clew.probing.x86_64.exits import find_exits
from clew.probing.x86_64.plans import Technique
from clew.process.capture_table import CaptureRow
from clew.process.futexes import wait_for_change
from clew.process.linux import PROT_EXEC
from clew.process.maps import read_maps
from clew.process.stopped_process import StoppedProcess
from clew.protocol._constants import RECORD_BYTES, CaptureAction, HoldReply, RequestKind, SlotState
from clew.protocol.layout import field_offset
from clew.recording.drain.slots import ImpossibleHeadError, Slots
from clew.sessions.capture_sink import CaptureSink
from clew.sessions.probes.asked import AskedForm, AskedProbe
from clew.sessions.probes.executions import EXECUTING_FUNCTIONS
from clew.sessions.probes.image_code import ProcessCode

__all__ = ["ArmedProbe", "Execution", "ProbedTarget"]

_AT_CERTAIN_PLACES: Final = (Technique.JUMP_PUNNED,)
"""Techniques by which a jump can lead to few places only."""
_ALL_BUT_TRAPS: Final = tuple(one for one in Technique if one != Technique.TRAP)
_NO_ROOM: Final = "there is no room where a jump could lead"
LOADING_NUMBER: Final = 1 << 28
EXECUTION_NUMBER: Final = LOADING_NUMBER + 1
"""What captures are known by at which threads stop that load something, or are about to execute a program."""

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


_Row = tuple[int, CaptureAction, int, AskedForm | None]
"""A capture at a place: its number, what it is for, the kind of calls, and its form; None: what is kept of calls."""


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
        self._probes = probes
        self.found: list[AskedProbe] = []
        """Probes of which there is a place."""
        self.pid: Pid = process.pid
        self._placing = Placing(process)
        self._placing.stopped = stopped
        self._planning = Planning()
        self._open = contextlib.ExitStack()
        self._places = self._open.enter_context(open_process(process.task))
        self._code = ProcessCode(self._places)
        self._slots = Slots(process.shared)
        self.armed: list[ArmedProbe] = []
        self.place_names: dict[int, str] = {}
        self.remarks: list[str] = []
        """What is to be told people: what places are doubtful, and where no probe can be."""
        self._known: set[tuple[int, int]] = set()
        """Numbers of probes, and the addresses where they are."""
        self._hears_loading = False
        shared = process.shared
        bell = shared.layout.status_offset + field_offset("StatusPage", "doorbell")
        self._bell = ctypes.c_uint32.from_buffer(shared.map, bell)
        self._n_lost = 0

    def arm(self) -> None:
        """Put probes to their places, as far as what these are in is loaded. Raises TargetError."""
        self._places.renew(read_maps(self.process.task))
        wanted: list[WantedSite] = []
        for probe in self._probes:
            found = self._places.resolve(parse_location(probe.spec.where), with_inlined=probe.spec.with_inlined)
            self.remarks += [one for one in found.warnings if one not in self.remarks]
            probe.missing = found.missing if not found.places else ""
            for place in found.places:
                # It may be a pattern, of which only some places are new.
                if (probe.number, place.address) not in self._known:
                    self._known.add((probe.number, place.address))
                    wanted += self._try_plan(probe, place)
        if not self._hears_loading:
            wanted += self._hear_loading()
        wanted += self._hear_executions()
        self._place(wanted)

    @property
    def missing(self) -> dict[str, str]:
        """Why probes are nowhere, for people, by what was asked for."""
        return {one.spec.where: one.missing for one in self._probes if one.missing}

    def _place(self, wanted: list[WantedSite]) -> None:
        """Put probes there, with techniques that need less where there is no room for a better one."""
        for without in (_AT_CERTAIN_PLACES, _ALL_BUT_TRAPS, ()):
            failed = self._placing.place(wanted) if wanted else []
            if not failed:
                return
            self._planning.forget({id(site.plan): site.plan for site in failed}.values())
            wanted = []
            for site in failed:
                code, image = self._code.find(site.address)
                plan, index = self._planning.plan(
                    site.address, code, image.entries, image.branches, is_exit=site.is_exit, without=without
                )
                wanted.append(replace(site, plan=plan, index=index))
            for index, one in enumerate(self.armed):
                plans = [site.plan for site in wanted if site.address == one.address]
                if plans:
                    self.armed[index] = replace(one, technique=plans[0].technique, reason=_NO_ROOM)

    def _note_name(self, probe: AskedProbe, place: ProcessPlace) -> None:
        """Events of places that a pattern means are called as these are."""
        where = parse_location(probe.spec.where)
        if isinstance(where, NamePlace) and where.may_be_pattern and place.place is not None and place.place.symbol:
            self.place_names[place.address] = demangle(place.place.symbol)

    def _try_plan(self, probe: AskedProbe, place: ProcessPlace) -> list[WantedSite]:
        """The sites of a probe at a place; none where there can be none, which is told."""
        n_armed = len(self.armed)
        try:
            sites = self._plan(probe, place)
        except (UsageError, CaptureError) as error:
            del self.armed[n_armed:]
            self.remarks.append(f"{probe.spec.name}: no probe at {place.name}: {error.message}")
            return []
        self._note_name(probe, place)
        if probe not in self.found:
            self.found.append(probe)
        return sites

    def _hear_loading(self) -> list[WantedSite]:
        """Have threads stop where the dynamic linker tells debuggers that it has loaded something, or is about to
        unload it: in front of the constructors of what is new (glibc's elf/dl-debug.c; musl has the same)."""
        sites = self._stop_at("_dl_debug_state", LOADING_NUMBER)
        self._hears_loading = bool(sites)
        return sites

    def _hear_executions(self) -> list[WantedSite]:
        """Have threads stop that are about to execute a program."""
        return [site for name in EXECUTING_FUNCTIONS for site in self._stop_at(name, EXECUTION_NUMBER)]

    def _stop_at(self, name: str, number: int) -> list[WantedSite]:
        """Have threads stop at functions of that name, where they do not yet."""
        stop = Form((), (), None, b"").pack()
        sites = []
        for place in self._places.resolve(parse_location(name)).places:
            if (number, place.address) in self._known:
                continue
            self._known.add((number, place.address))
            with contextlib.suppress(UsageError):
                code, image = self._code.find(place.address)
                plan, index = self._planning.plan(place.address, code, image.entries, image.branches)
                row = CaptureRow(place.address, number, CaptureAction.STOP, stop)
                sites.append(WantedSite(plan, index, [row], place.address))
        return sites

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
        return executions

    def reply(self, slot: int) -> None:
        """Let a thread go on that waits."""
        self._slots.reply(slot, HoldReply.GO_ON)

    def _forget_unloaded(self) -> None:
        """What was unloaded has taken its probes along."""
        mapped = [one for one in read_maps(self.process.task) if one.protection & PROT_EXEC]

        def is_there(address: int) -> bool:
            return any(one.start <= address < one.end for one in mapped)

        gone = [patch for patch in self._placing.patches if not is_there(patch.start)]
        self._placing.forget(gone)
        self._planning.forget([patch.plan for patch in gone])
        self.armed = [one for one in self.armed if is_there(one.address)]
        self._known = {(number, address) for number, address in self._known if is_there(address)}

    def _plan(self, probe: AskedProbe, place: ProcessPlace) -> list[WantedSite]:
        address = place.address
        if not probe.spec.is_function:
            return [self._site(probe, place, address, "point", [(probe.number, CaptureAction.RECORD, 0, probe.form)])]
        code, _ = self._code.find(address)
        if address != code.start:
            raise UsageError(f"{probe.spec.where}: {address:#x} is not where a function begins")
        entry, leaving = probe.form, probe.return_form
        rows: list[_Row] = [
            (probe.number, CaptureAction.RECORD, 0, entry),
            (probe.kept_number, CaptureAction.CALL, probe.call_kind, None),
        ]
        row: _Row = (probe.return_number, CaptureAction.RECORD, probe.call_kind, leaving)
        # These first: what they displace may begin with the function's first instruction.
        sites = [self._site(probe, place, one.address, "return", [row]) for one in find_exits(code)]
        return [*sites, self._site(probe, place, address, "entry", rows)]

    def _site(
        self, probe: AskedProbe, place: ProcessPlace, address: int, role: str, rows: Sequence[_Row]
    ) -> WantedSite:
        code, image = self._code.find(address)
        plan, index = self._planning.plan(
            address, code, image.entries, is_exit=role == "return", branches=image.branches
        )
        captures = []
        for number, action, kind, form in rows:
            packed = probe.kept_form if form is None else form.form_at(self.pid, self.process.task, address)
            captures.append(CaptureRow(address, number, action, packed, call_kind=kind))
        self.armed.append(ArmedProbe(probe.spec.name, place, address, role, plan.technique, plan.reason))
        return WantedSite(plan, index, captures, address, role == "return")

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
        for slot, tid, _ in self._slots.find_threads():
            row = self._slots.rows[slot]
            is_read = int(row["ring_head"]) == int(self._slots.tails[slot])
            if is_read and tid and not os.path.exists(f"/proc/{int(row['process'])}/task/{tid}"):
                self._slots.states[slot] = SlotState.FREE

    def take_lost(self) -> int:
        """How many events were lost since this was asked last."""
        lost = int(self._slots.status()["lost_records"])
        lost += sum(
            self.process.sites.missed(number) for patch in self._placing.patches for number in patch.numbers.values()
        )
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
