"""One process with probes in it: what is wanted is found in its code, planned, put there, and taken out again.

Runs in the controller, all of it in one thread.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import select
from collections.abc import Callable, Iterable, Mapping
from typing import Final

from clew.address import Pid, Tid
from clew.capture.form import Form
from clew.errors import CaptureError, RemoteCallError, TargetError, UsageError
from clew.probing.blocked_traps import BlockedTraps
from clew.probing.handing_over import Handing
from clew.probing.leaving import has_probes_of, leave, wait_for_end
from clew.probing.locations.in_process import ProcessPlace, ProcessPlaces, open_process
from clew.probing.placing import Placing
from clew.probing.planning import Planning, Site
from clew.probing.probed_process import ProbedProcess
from clew.probing.worker import reap_worker
from clew.process.aggregate_tables import AggregateTables
from clew.process.attachable import has_own_namespace
from clew.process.held_process import HeldProcess
from clew.process.linux import PROT_EXEC
from clew.process.maps import Mapping as MemoryMapping
from clew.process.maps import read_maps
from clew.process.stopped_process import StoppedProcess
from clew.protocol._constants import (
    MAX_PROBES,
    CaptureAction,
    HoldReply,
    RequestKind,
)
from clew.protocol.layout import field_offset
from clew.sessions.probes.asked import AskedProbe, Asker
from clew.sessions.probes.backends import Backend
from clew.sessions.probes.collecting import nothing_collected
from clew.sessions.probes.hearing import LOADING_NUMBER, Hearing
from clew.sessions.probes.image_code import KnownCode, ProcessCode
from clew.sessions.probes.known_places import KnownPlaces
from clew.sessions.probes.place_names import name_of_place
from clew.sessions.probes.probe_sites import ArmedProbe, ProbeSites
from clew.sessions.probes.target_rings import TargetRings
from clew.sessions.probes.unwinding import Unwinding
from clew.sessions.probes.waiting import Waiting

__all__ = ["ProbedTarget"]

_MAX_SITES: Final = MAX_PROBES - 4096
"""Some are left for what is heard of loading, and for what is planned anew."""
_END_SECONDS: Final = 0.2
"""A process that is killed has no memory any more before it has ended."""
_UNANSWERED: Final = (
    "threads went on without waiting for probes in what they loaded or executed: nobody answered them for too long"
)


class ProbedTarget:
    """The probes in one process."""

    def __init__(
        self,
        process: ProbedProcess,
        probes: Iterable[AskedProbe],
        asker: Asker,
        stopped: StoppedProcess | None = None,
        origins: frozenset[Pid] = frozenset(),
        known: KnownCode | None = None,
        clockless: Mapping[str, bytes] | None = None,
        unwinding: Unwinding | None = None,
    ) -> None:
        """`probes` are wanted there, by `asker`. `stopped`: the process, if it is stopped before its first instruction.
        `origins`: processes from which it descends, itself among them. `known`: code that is known from other
        processes. `clockless`: functions that may forbid a thread time stamps, and when. `unwinding`: what has threads
        unwind their stacks where backtraces are asked for."""
        self.process, self.asker, self.origins = process, asker, origins
        self.probes = {probe.index: probe for probe in probes}
        """Those that are to be there, by their indices."""
        self._found: list[AskedProbe] = []
        self.pid: Pid = process.pid
        self._unwinding = unwinding
        self._open = contextlib.ExitStack()
        self._places = self._open.enter_context(open_process(process.task))
        blocked = BlockedTraps(process.pid)
        self._placing = Placing(process, lambda starts: blocked.may_be_at(self._places.images, starts))
        self._placing.stopped = stopped
        self._planning = Planning()
        self._known_places = KnownPlaces(self._places, process.task)
        code = ProcessCode(self._places, known or KnownCode(), self._placing.read)
        self._plans = ProbeSites(process, code, self._placing.read)
        self._sites: list[tuple[AskedProbe, ProcessPlace, str, Site]] = []
        """Places that are probed, and their roles."""
        self.place_names: dict[int, dict[int, str]] = {}
        """What the places are called that a pattern means: by the probe's index, and address."""
        self.n_armed = 0
        """How often it was looked at where probes are to be."""
        self._known: set[tuple[int, int]] = set()
        """Numbers of probes, and the addresses where they are."""
        self.has_own_numbers = has_own_namespace(process.task)
        """What the target calls its processes and threads says nothing here."""
        self.takes_events = True
        """False from when it may have no time stamps any more."""
        self._hearing = Hearing(self._known_places, self._plans, clockless or {}, has_own_numbers=self.has_own_numbers)
        # Of libraries it has none yet, where something loads them.
        self._n_to_load = 0 if stopped is None else self._hearing.count_loadings()
        self.rings = TargetRings(process, has_own_numbers=self.has_own_numbers)
        shared = process.shared
        bell = shared.layout.status_offset + field_offset("StatusPage", "doorbell")
        self.bell = ctypes.c_uint32.from_buffer(shared.map, bell)
        """What threads ring that want something."""
        self._pidfd = os.pidfd_open(process.pid)
        self.mappings: list[MemoryMapping] = []
        """What the process had mapped when it was looked at last: when it had loaded or unloaded something."""

    @property
    def armed(self) -> list[ArmedProbe]:
        """What is probed now, of the session that has the process."""
        return self.armed_of(self.asker)

    @property
    def found(self) -> list[AskedProbe]:
        """Its probes of which there is a place."""
        return self.found_of(self.asker)

    @property
    def remarks(self) -> list[str]:
        """What is to be told its people."""
        return self.asker.remarks

    def found_of(self, asker: Asker) -> list[AskedProbe]:
        """Probes of somebody's of which there is a place."""
        return [probe for probe in self._found if probe.asker is asker]

    def armed_of(self, asker: Asker) -> list[ArmedProbe]:
        """What is probed now for somebody."""
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
            if site.group is not None and probe.asker is asker
        ]

    def arm(self) -> None:
        """Put probes to their places, as far as what these are in is loaded. Raises TargetError."""
        with nothing_collected():
            self._arm()

    def _arm(self) -> None:
        self.mappings = self._known_places.renew()
        self.n_armed += 1
        if self._unwinding is not None and any(probe.has_backtrace for probe in self.probes.values()):
            self._unwinding.renew(self.mappings)
        self._plans.begin()
        for probe in self.probes.values():
            if probe.spec.path and not self._has_loaded(probe.spec.path):
                probe.missing = f"{probe.spec.where}: {probe.spec.path} is not loaded"
                continue
            found = self._known_places.resolve(probe.spec.location, with_inlined=probe.spec.with_inlined)
            for text in found.warnings:
                probe.asker.remark(text)
            probe.missing = found.missing if not found.places else ""
            for place in found.places:
                # It may be a pattern, of which only some places are new.
                if (probe.number, place.address) not in self._known:
                    self._known.add((probe.number, place.address))
                    self._plan(probe, place)
        self._hearing.plan(self._planning)
        self._place()
        for asker in {id(probe.asker): probe.asker for probe in self.probes.values()}.values():
            if asker.choice.tells_traps:
                self._tell_traps(asker)

    def _has_loaded(self, path: str) -> bool:
        return any(image.file.path == path for image in self._places.images)

    @property
    def missing(self) -> dict[str, str]:
        """Why probes are nowhere, for people, by what was asked for."""
        return self.missing_of(self.asker)

    def missing_of(self, asker: Asker) -> dict[str, str]:
        """The same of somebody's."""
        own = (one for one in self.probes.values() if one.asker is asker)
        return {one.spec.where: one.missing for one in own if one.missing}

    def change(self, do: Callable[[], object]) -> None:
        """Have `do` change the probes; where the process ends meanwhile there is nothing to change. Raises what `do`
        raises."""
        try:
            do()
        except (TargetError, OSError):
            if not self.has_ended(_END_SECONDS):
                raise

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
                break
            for site, reason in self._planning.plan_again(failed):
                for probe, place, _, own in self._sites:
                    if own is site:
                        self._refuse(probe, place, reason)
            made, gone = self._planning.changes()
        counted = (place.semaphore for _, place, _, site in self._sites if site.group is not None)
        self._placing.semaphores.want({one for one in counted if one is not None})

    def _note_name(self, probe: AskedProbe, place: ProcessPlace, address: int) -> None:
        """`address` is where events of it are told of."""
        name = name_of_place(probe.spec, place)
        if name:
            self.place_names.setdefault(probe.index, {})[address] = name

    def answer(self) -> list[Waiting]:
        """Let threads go on that have loaded or unloaded something, once probes are where they are to be by now. Others
        wait on, and are given back."""
        if self._unwinding is not None and self.process.is_served():
            self._unwinding.look_again()
        waiting = []
        loading = []
        for slot in self.rings.slots.find_asking(RequestKind.HOLD):
            number, _, tid = self.rings.slots.read_request(slot).arguments[1:]
            if number == LOADING_NUMBER:
                loading.append(slot)
            else:
                pid = Pid(int(self.rings.slots.rows["process"][slot]))
                # The block's process, as far as its number says something here.
                real_pid = self.pid if self.has_own_numbers else pid
                waiting.append(Waiting(self, slot, number, pid, Tid(tid), real_pid))
        try:
            # A process that has ended may have a thread that asked.
            if loading and self.process.is_served():
                self._n_to_load = max(self._n_to_load - 1, 0)
                self.change(self._follow_loading)
        finally:
            for slot in loading:
                self.reply(slot)
        if loading:
            # It runs already: what can't be as it has to be is nowhere, and told.
            for probe in self.probes.values():
                probe.asker.refused.clear()
        if self.rings.slots.status()["unanswered"]:
            self.asker.remark(_UNANSWERED)
        return waiting

    def _follow_loading(self) -> None:
        self._forget_unloaded()
        self.arm()

    def reply_all(self) -> None:
        """Let all threads go on that wait for something."""
        for slot in self.rings.slots.find_asking(RequestKind.HOLD):
            self.reply(slot)

    def reply(self, slot: int) -> None:
        """Let a thread go on that waits."""
        self.rings.slots.reply(slot, HoldReply.GO_ON)

    def _forget_unloaded(self) -> None:
        """What was unloaded has taken its probes along."""
        mapped = [one for one in read_maps(self.process.task) if one.protection & PROT_EXEC]

        def is_there(address: int) -> bool:
            return any(one.start <= address < one.end for one in mapped)

        gone = self._placing.groups_at(lambda address: not is_there(address))
        self._placing.forget(gone)
        self._planning.forget(gone)
        self._sites = [one for one in self._sites if is_there(one[-1].address)]
        self._known = {(number, address) for number, address in self._known if is_there(address)}
        self._hearing.forget(is_there)
        mappings = read_maps(self.process.task)
        self._placing.semaphores.forget(lambda address: any(one.start <= address < one.end for one in mappings))

    def _plan(self, probe: AskedProbe, place: ProcessPlace) -> None:
        """Plan the sites of a probe at a place; none where there can be none, which is told."""
        planned: list[Site] = []
        try:
            for site, role in self._plans.iter_sites(probe, place):
                site.without = probe.asker.choice.without
                if len(self._sites) >= _MAX_SITES:
                    raise UsageError(f"there are {len(self._sites)} probes already: there is no room for more")
                self._planning.add(site)
                planned.append(site)
                self._sites.append((probe, place, role, site))
        except (UsageError, CaptureError) as error:
            self._planning.remove(planned)
            self._sites = self._sites[: len(self._sites) - len(planned)]
            if isinstance(error, CaptureError) and self._n_to_load:
                # What it names may be loaded soon.
                self._known.discard((probe.number, place.address))
                probe.missing = error.message
            else:
                self._refuse(probe, place, error.message)
            return
        if planned:
            self._note_name(probe, place, planned[0].address)
        if probe not in self._found:
            self._found.append(probe)

    def _refuse(self, probe: AskedProbe, place: ProcessPlace, reason: str) -> None:
        probe.asker.refuse(f"{probe.spec.name}: no probe at {place.name}: {reason}")

    def _tell_traps(self, asker: Asker) -> None:
        for one in self.armed_of(asker):
            if one.backend == Backend.TRAP.value:
                asker.remark(f"{one.name}: {one.place.name}: {one.address:#x} traps: {one.reason}")

    @property
    def tables(self) -> list[AggregateTables]:
        """What is added up in it."""
        return [self.process.shared.aggregates]

    @property
    def n_held(self) -> int:
        """How often all threads were held for a change of code."""
        return self._placing.n_held

    def has_ended(self, seconds: float = 0) -> bool:
        """Whether the process itself is no more, in so many seconds at most. Forks' children of it may be there still,
        with the probes."""
        return bool(select.select([self._pidfd], [], [], seconds)[0])

    def shares_with(self, pid: Pid) -> bool:
        """Whether a process is a forks' child of it, or theirs, that has the probes."""
        return has_probes_of(self.process, pid)

    def let_go(self) -> None:
        """The process is about to run."""
        self._placing.stopped = None

    def abandon(self, stopped: StoppedProcess) -> list[Pid]:
        """The process has become another program, before whose first instruction it is stopped: nothing is left there
        but the runtime's task, which ends. Forks' children that had the probes have none any more: those. What is in
        the rings can be read behind that."""
        self.process.sites.leave()
        wait_for_end(self.process)
        with contextlib.suppress(RemoteCallError):
            reap_worker(stopped, self.process.task_inside)
        return self.leave()[1]

    def hand_over(self, held: HeldProcess) -> Handing:
        """What takes all probes out while all threads are held, for who follows them from there on."""
        return Handing(held, self.process, self._placing)

    def kept_forms(self) -> dict[int, Form]:
        """What is kept of calls until they return, by their kinds."""
        rows = {row.call_kind: row for *_, site in self._sites for row in site.rows if row.action == CaptureAction.CALL}
        return {kind: Form.unpack(row.form) for kind, row in rows.items()}

    def give_places(self) -> tuple[ProcessPlaces, contextlib.ExitStack]:
        """What is known of its files, for who follows it from now on, and what lets go of that."""
        self._places.move_to(self.pid)
        return self._places, self._open.pop_all()

    def leave(self) -> tuple[list[str], list[Pid]]:
        """Take all probes out, and the runtime's task, as far as the process and its forks' children are there still;
        what stays, for people, and those children. What is in the rings can be read behind that. Raises TargetError."""
        return leave(self.process, self._placing)

    def close(self) -> list[str]:
        """Leave, and let go."""
        left, _ = self.leave()
        self.release()
        return left

    def release(self) -> None:
        """Let go of what is kept of it."""
        self.rings.close()
        os.close(self._pidfd)
        del self.bell
        self.process.close()
        self._open.close()
