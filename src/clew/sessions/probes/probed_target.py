"""One process with probes in it: what is wanted is found in its code, planned, put there, and taken out again.

Runs in the controller, all of it in one thread.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import time
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from clew.address import Pid
from clew.capture.form import Form
from clew.dataclass import dataclass
from clew.errors import CaptureError, TargetGoneError, UsageError
from clew.probing.foreign import find_foreign
from clew.probing.leaving import leave
from clew.probing.locations.in_process import ProcessPlace, open_process
from clew.probing.locations.place import PlaceKind
from clew.probing.locations.syntax import parse_location
from clew.probing.placing import Placing
from clew.probing.planning import Foreign, Planning, Site
from clew.probing.probed_process import ProbedProcess
from clew.probing.x86_64.exits import ExitKind, find_all_exits
from clew.probing.x86_64.function_code import FunctionCode
from clew.probing.x86_64.plans import Technique
from clew.process.capture_table import CaptureRow
from clew.process.futexes import wait_for_change
from clew.process.linux import PROT_EXEC
from clew.process.maps import read_maps
from clew.process.stopped_process import StoppedProcess
from clew.protocol._constants import MAX_CAPTURES, MAX_PROBES, CaptureAction, HoldReply, RequestKind
from clew.protocol.layout import field_offset
from clew.recording.drain.slots import ImpossibleHeadError, Slots
from clew.sessions.capture_sink import CaptureSink
from clew.sessions.probes.asked import AskedForm, AskedProbe
from clew.sessions.probes.image_code import ProcessCode

__all__ = ["ArmedProbe", "ProbedTarget"]

_MAX_ROWS: Final = min(MAX_CAPTURES, MAX_PROBES) - 16
"""Some are left for what is heard of loading."""
LOADING_NUMBER: Final = 1 << 28
"""What captures are known by at which threads stop that load something."""

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


class ProbedTarget:
    """The probes in one process."""

    def __init__(self, process: ProbedProcess, stopped: StoppedProcess | None = None) -> None:
        """`stopped`: the process, if it is stopped before its first instruction."""
        self.process = process
        self.pid: Pid = process.pid
        self._placing = Placing(process)
        self._placing.stopped = stopped
        self._planning = Planning()
        self._open = contextlib.ExitStack()
        self._places = self._open.enter_context(open_process(process.task))
        self._code = ProcessCode(self._places)
        self._slots = Slots(process.shared)
        self._sites: list[tuple[AskedProbe, ProcessPlace, str, Site]] = []
        """Places that are probed, and their roles."""
        self.warnings: list[str] = []
        self.refused: list[tuple[str, ProcessPlace, str]] = []
        """Names of probes, places where they can't be, and why."""
        self._known: set[tuple[int, int]] = set()
        """Numbers of probes, and the addresses where they are."""
        self._n_rows = 0
        """How many captures there are."""
        self._hears_loading = False
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

    def arm(self, probes: Sequence[AskedProbe]) -> list[AskedProbe]:
        """Put probes to their places; those whose place is nowhere that is loaded are given back.

        Raises UsageError where there can be none, TargetError, CaptureError.
        """
        with _nothing_collected():
            return self._arm(probes)

    def _arm(self, probes: Sequence[AskedProbe]) -> list[AskedProbe]:
        self._places.renew(read_maps(self.process.task))
        pending: list[AskedProbe] = []
        for probe in probes:
            found = self._places.resolve(parse_location(probe.spec.where), with_inlined=probe.spec.with_inlined)
            self.warnings += [one for one in found.warnings if one not in self.warnings]
            if not found.places:
                probe.missing = found.missing
                pending.append(probe)
            for place in found.places:
                # It may be a pattern, of which only some places are new.
                if (probe.number, place.address) not in self._known:
                    self._known.add((probe.number, place.address))
                    self._plan(probe, place)
        if not self._hears_loading:
            self._hear_loading()
        self._place()
        return pending

    def disarm(self, probes: Sequence[AskedProbe]) -> None:
        """Have these probes nowhere. Raises TargetError, UsageError."""
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
                owners = [(probe, place) for probe, place, _, own in self._sites if own is site]
                self.refused += [(probe.spec.name, place, reason) for probe, place in owners]
            made, gone = self._planning.changes()

    def _hear_loading(self) -> None:
        """Have threads stop where the dynamic linker tells debuggers that it has loaded something, or is about to
        unload it: in front of the constructors of what is new (glibc's elf/dl-debug.c; musl has the same)."""
        found = self._places.resolve(parse_location("_dl_debug_state"))
        stop = Form((), (), None, b"").pack()
        self._hears_loading = bool(found.places)
        for place in found.places:
            site = self._site_at(place.address)
            site.rows = [CaptureRow(site.pc, LOADING_NUMBER, CaptureAction.STOP, stop)]
            self._planning.add(site)

    def answer(self, probes: Sequence[AskedProbe]) -> bool:
        """Let threads go on that have loaded or unloaded something, once probes are where they are to be by now;
        whether there were any."""
        asking = self._slots.find_asking(RequestKind.HOLD)
        if not asking:
            return False
        try:
            self._forget_unloaded()
            self.arm(probes)
        finally:
            for slot in asking:
                self._slots.reply(slot, HoldReply.GO_ON)
        return True

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
            self.refused.append((probe.spec.name, place, error.message))

    def _sites_of(self, probe: AskedProbe, place: ProcessPlace) -> Iterator[tuple[Site, str]]:
        """The sites of a probe at a place, and their roles: where a function begins comes first."""
        address = place.address
        if not probe.spec.is_function:
            site = self._site_at(address)
            site.rows = [self._row(site, probe.number, probe.form)]
            yield site, "point"
            return
        if place.place is not None and place.place.kind == PlaceKind.CHOOSER:
            # It chooses the function that is meant, which is known once the dynamic linker has called it.
            return
        code, image = self._code.find(address)
        if address != code.start:
            raise UsageError(f"{probe.spec.where}: {address:#x} is not where a function begins")
        assert probe.return_form is not None
        entry = self._site_at(address)
        entry.rows = [
            self._row(entry, probe.number, probe.form),
            CaptureRow(entry.pc, probe.kept_number, CaptureAction.CALL, probe.kept_form, call_kind=probe.call_kind),
        ]
        yield entry, "entry"
        for piece, one in find_all_exits(code, image.parts.get(code.start, ())):
            is_taken = one.kind == ExitKind.CONDITIONAL_TAIL
            foreign = self._foreign_of(piece)
            left = Site(one.address, piece, image, is_exit=True, is_taken=is_taken, foreign=foreign)
            left.rows = [self._row(left, probe.return_number, probe.return_form, probe.call_kind)]
            yield left, "return"

    def _site_at(self, address: int) -> Site:
        code, image = self._code.find(address)
        return Site(address, code, image, foreign=self._foreign_of(code))

    def _foreign_of(self, code: FunctionCode) -> list[Foreign]:
        return find_foreign(code, self._placing.read)

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
                records = np.frombuffer(data, np.uint8).reshape(-1, 64)
                sink.keep(int(self.pid), records)
                n += len(records)
        return n

    def take_lost(self) -> int:
        """How many events were lost since this was asked last."""
        lost = int(self._slots.status()["lost_records"])
        lost += self.process.sites.missed()
        before, self._n_lost = self._n_lost, lost
        return lost - before

    def close(self) -> list[str]:
        """Take all probes out, and the runtime's task, as far as the process is there still; what stays, for people."""
        left: list[str] = []
        with contextlib.suppress(TargetGoneError):
            if self.process.is_served():
                left = leave(self.process, self._placing)
        self._slots.close()
        del self._bell
        self.process.close()
        self._open.close()
        return left


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
