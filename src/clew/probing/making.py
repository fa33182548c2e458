"""Makes the trampolines of groups of probes, and their handlers, in memory of the process: nothing leads there yet.

Runs in the controller. What was made stays: a thread may be on it, and the same probes may come again.
"""

from __future__ import annotations

import bisect
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from clew.errors import TargetError, UsageError
from clew.probing.native import Origin, SitePlan, Technique, find_far_reach, find_plan_reach
from clew.probing.near_memory import NearMemory, NoRoomError
from clew.probing.patches import JUMP_BYTES, Led, Patch, Trampoline, make_trampoline, trampoline_bytes
from clew.probing.planning import Group, Site
from clew.probing.probed_process import ProbedProcess
from clew.probing.site_table import AskedSite, MadeHandler
from clew.process.capture_table import CaptureRow
from clew.process.stopped_process import StoppedProcess
from clew.protocol._constants import MAX_PROBES

__all__ = ["Making", "read_all"]

_Rows = tuple[CaptureRow, ...]

_GAP_BYTES: Final = 16
"""What is not used between two of a kind, so that they begin at whole lines: it holds nothing."""
_AT_ONCE: Final = 4096
"""So many handlers are made at a time: the runtime keeps what it made until it is asked again."""
_READ_GAP_BYTES: Final = 1 << 11
_MAX_READ_BYTES: Final = 1 << 22
_HANDLERS: Final = "handlers"
_FAR: Final = "far"


class Making:
    """In one process, with memory that its code reaches."""

    def __init__(self, process: ProbedProcess, memory: NearMemory) -> None:
        self._process, self._memory = process, memory
        self._known: dict[int, Trampoline | tuple[Trampoline, ...]] = {}
        """Trampolines that were ever made, by the address of the patch that leads there."""
        self._rooms: dict[_Rows, int] = {}
        """How many bytes handlers are given, by what is captured there."""
        self._same: dict[tuple[int, ...], tuple[int, ...]] = {}
        """How far in trampolines instructions begin: the same is kept once."""
        self._copies: list[Trampoline] = []
        """All that were ever made, by their addresses: a thread may be on one."""
        self._n_handlers = 0
        """How many numbers of handlers were given."""

    def make(self, groups: Sequence[Group]) -> tuple[list[Patch], list[Group]]:
        """Patches for groups, their trampolines and handlers in place; and groups for which there is no room."""
        trampolines = [self._find_known(group) for group in groups]
        new = [number for number, one in enumerate(trampolines) if one is None]
        failed: list[Group] = []
        if new:
            places = self._tell_captures(groups[number] for number in new)
            rest = iter(new)
            try:
                while some := list(islice(rest, _AT_ONCE)):
                    made, no_room = self._make_some([groups[number] for number in some], places)
                    failed += no_room
                    for number, one in zip(some, made, strict=True):
                        trampolines[number] = one
            finally:
                # Those that are made stay, whatever comes of the others.
                new_copies = filter(None, [trampolines[number] for number in new])
                self._copies = sorted([*self._copies, *new_copies], key=_address_of)
        if failed:
            return [], failed
        return [Patch(group, one) for group, one in zip(groups, trampolines, strict=True) if one is not None], []

    def _make_some(
        self, groups: Sequence[Group], places: Mapping[_Rows, int]
    ) -> tuple[list[Trampoline | None], list[Group]]:
        """Trampolines and handlers for some of them; None where there is no room, and those groups."""
        made: list[Trampoline | None] = []
        failed: list[Group] = []
        asked: list[AskedSite] = []
        writes: list[tuple[int, bytes]] = []
        with self._process.stopped_worker() as worker:
            for group in groups:
                try:
                    trampoline, code = self._lay_out(worker, group, places, asked)
                except NoRoomError:
                    failed.append(group)
                    made.append(None)
                else:
                    made.append(trampoline)
                    writes.append((trampoline.address, code))
        rows = {place: rows for rows, place in places.items()}
        for start in range(0, len(asked), _AT_ONCE):
            self._make_handlers(asked[start : start + _AT_ONCE], rows)
        _put(self._process, writes)
        for one in filter(None, made):
            start = one.plan.patch_address
            known = self._known.get(start)
            if known is None:
                self._known[start] = one
            else:
                self._known[start] = (known, one) if isinstance(known, Trampoline) else (*known, one)
        return made, failed

    def _find_known(self, group: Group) -> Trampoline | None:
        """The trampoline that was made for it, or for another of the same."""
        known = self._known.get(group.plan.patch_address)
        if known is None:
            return None
        some = (known,) if isinstance(known, Trampoline) else known
        return next((one for one in some if one.does_for(group)), None)

    def _tell_captures(self, groups: Iterable[Group]) -> dict[_Rows, int]:
        """Have the runtime know what is captured by these; and as which place it knows what. Where the same is captured
        at many, they are one place: it looks when handlers are made, and not later."""
        known: dict[_Rows, int] = {}
        sites: dict[_Rows, Site] = {}
        for group in groups:
            for site, rows in _spots_of(group):
                if rows not in known:
                    known[rows] = len(known) + 1
                    if rows not in self._rooms:
                        sites[rows] = site
        self._process.shared.set_captures([row._replace(pc=place) for rows, place in known.items() for row in rows])
        self._measure(known, sites)
        return known

    def _lay_out(
        self, worker: StoppedProcess, group: Group, places: Mapping[_Rows, int], asked: list[AskedSite]
    ) -> tuple[Trampoline, bytes]:
        """Choose where a group's trampoline is, and its handlers: one for each of its spots, which are added to what is
        asked for. Its code."""
        plan, spots = group.plan, _spots_of(group)
        if self._n_handlers + len(spots) > MAX_PROBES:
            raise UsageError(f"there have been {self._n_handlers} probes: there is no room for more")
        size_bytes = trampoline_bytes(plan, len(spots))
        within, shape = find_plan_reach(plan, size_bytes), _shape_of(plan)
        try:
            address = self._memory.take(worker, plan.patch_address, size_bytes, _next_fit_of(plan), within, shape)
        except NoRoomError:
            if plan.technique != Technique.TRAP:
                raise
            # A thread that traps is led anywhere.
            within, shape = find_far_reach(plan.displaced, size_bytes), _FAR
            address = self._memory.take(worker, None, size_bytes, within=within, shape=shape)
        # Near the trampoline, which may be as far from the code as a jump goes.
        rooms = [self._rooms[rows] for _, rows in spots]
        handlers = tuple(
            Led(group.index_of(site), site.is_taken, self._memory.take(worker, address, room, shape=_HANDLERS))
            for (site, _), room in zip(spots, rooms, strict=True)
        )
        copy, resumes = make_trampoline(plan, address, handlers)
        self._memory.give_back(address + len(copy.code), address + size_bytes, shape)
        first = self._n_handlers
        self._n_handlers += len(spots)
        for (site, rows), led, room, resume in zip(spots, handlers, rooms, resumes, strict=True):
            asked.append(AskedSite(first, site.pc, places[rows], led.handler, room, resume))
            first += 1
        offsets = tuple([start - address for start in copy.starts.values()])
        offsets = self._same.setdefault(offsets, offsets)
        return Trampoline(group, address, len(copy.code), offsets, handlers), copy.code

    def _measure(self, places: Mapping[_Rows, int], sites: Mapping[_Rows, Site]) -> None:
        """Find out how many bytes handlers take of what was captured nowhere yet, with a site of each: they are asked
        for without room."""
        process, unknown = self._process, iter(sites.items())
        # As numbers they have those that are given next.
        while some := list(islice(unknown, min(_AT_ONCE, MAX_PROBES - self._n_handlers))):
            asked = [
                AskedSite(number, site.pc, places[rows], site.at & -_GAP_BYTES, 0, site.at)
                for number, (rows, site) in enumerate(some, self._n_handlers)
            ]
            for (rows, site), answer in zip(some, process.sites.ask(asked, process.pid), strict=True):
                self._rooms[rows] = self._room_of(answer, site.pc)

    def _room_of(self, answer: MadeHandler, pc: int) -> int:
        """The room for a handler that was not made, since it had none. Raises TargetError: there is no such room."""
        if not answer.size_bytes:
            pid = self._process.pid
            raise TargetError(pid, f"process {pid}: the captures at {pc:#x} have no room")
        return answer.size_bytes + _GAP_BYTES - 1 & -_GAP_BYTES

    def _make_handlers(self, asked: Sequence[AskedSite], rows: Mapping[int, _Rows]) -> None:
        """Have handlers made, and written to their places. One that is larger than others of what is captured there
        lies elsewhere, and is led to from there. `rows` are captured at the places that they are asked for."""
        process = self._process
        while asked:
            answers = process.sites.ask(asked, process.pid)
            made: list[tuple[int, int]] = []
            codes: list[int] = []
            larger: list[tuple[AskedSite, int]] = []
            for site, (address, size_bytes) in zip(asked, answers, strict=True):
                if address is not None:
                    made.append((address, size_bytes))
                    codes.append(site.code)
                else:
                    room = self._room_of(MadeHandler(None, size_bytes), site.pc)
                    self._rooms[rows[site.place]] = room
                    larger.append((site, room))
            _put(process, zip(codes, read_all(process, made), strict=True))
            if not larger:
                return
            with process.stopped_worker() as worker:
                asked = [
                    one._replace(code=self._memory.take(worker, one.code, room, shape=_HANDLERS), room=room)
                    for one, room in larger
                ]
            for (before, _), now in zip(larger, asked, strict=True):
                distance = now.code - before.code - JUMP_BYTES
                process.write(before.code, b"\xe9" + distance.to_bytes(4, "little", signed=True))

    def find_origin(self, address: int) -> Origin | None:
        """Where a thread would be without any probe that is at an address of a copy."""
        index = bisect.bisect_right(self._copies, address, key=_address_of) - 1
        return self._copies[index].find_origin(address) if index >= 0 else None


def _address_of(copy: Trampoline) -> int:
    return copy.address


def _next_fit_of(plan: SitePlan) -> Callable[[int], int | None] | None:
    """What gives the lowest address from another one on at which a plan's trampoline may be; None: any aligned one."""
    if plan.jump is None:
        return None
    return plan.jump.next_fit if any(plan.jump.allowed) else _same


def _same(address: int) -> int:
    return address


def _shape_of(plan: SitePlan) -> Hashable:
    """Trampolines of the same may lie close to each other, where jumps of equal bytes lead."""
    if plan.jump is None or not any(plan.jump.allowed):
        return None
    # Within a chunk all values of the two lower bytes are found.
    given = [index for index in (2, 3) if plan.jump.allowed[index]]
    return plan.jump.allowed, plan.patch_address >> 8 * given[-1] if given else None


def _spots_of(group: Group) -> list[tuple[Site, _Rows]]:
    """Where sites of a group lead to handlers, in the order in which threads come to them: in front of which
    instruction, whether where that branches, and what events know it by. Each with one of its sites, and with what is
    captured by all of them."""
    if len(group.sites) == 1:
        [site] = group.sites
        return [(site, tuple(site.rows))]
    found: dict[tuple[int, bool, int], tuple[Site, _Rows]] = {}
    for site in group.sites:
        spot = site.at, site.is_taken, site.pc
        before = found[spot][1] if spot in found else ()
        found[spot] = site, (*before, *(row for row in site.rows if row not in before))
    return list(found.values())


def read_all(process: ProbedProcess, places: Sequence[tuple[int, int]]) -> list[bytes]:
    """Memory at addresses, so many bytes of each, fewer where it ends; what lies close to each other is read together.
    Raises TargetError."""
    found = [b""] * len(places)
    some: list[int] = []
    start = end = 0

    def read() -> None:
        data = process.read(start, end - start)
        for number in some:
            address, size_bytes = places[number]
            found[number] = data[address - start : address - start + size_bytes]

    for number in sorted(range(len(places)), key=places.__getitem__):
        address, size_bytes = places[number]
        if some and (address - end > _READ_GAP_BYTES or address + size_bytes - start > _MAX_READ_BYTES):
            read()
            some.clear()
        if not some:
            start = end = address
        some.append(number)
        end = max(end, address + size_bytes)
    if some:
        read()
    return found


def _put(process: ProbedProcess, writes: Iterable[tuple[int, bytes]]) -> None:
    """Write memory, what lies one behind the other together."""
    run, start = bytearray(), 0
    for address, data in sorted(writes):
        if run and not 0 <= address - start - len(run) <= _GAP_BYTES:
            process.write(start, bytes(run))
            run.clear()
        if not run:
            start = address
        run += bytes(address - start - len(run))
        run += data
    if run:
        process.write(start, bytes(run))
