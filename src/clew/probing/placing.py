"""Puts probes into the code of a process, and takes them out.

Runs in the controller. Handlers and trampolines are made and written while the program runs, for nothing leads there
yet. Then the code is written over, live (`code_writer`). What was made stays: a thread may be on it, and the same
probes may come again.
"""

from __future__ import annotations

import bisect
import contextlib
import mmap
import os
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Final

from clew.address import Pid, RemoteAddress, Tid
from clew.errors import TargetError, UsageError
from clew.probing.code_writer import CodeChange, CodeWriter
from clew.probing.memory_file import holds, is_there, write_all
from clew.probing.native import Origin, Relocated, SitePlan, Technique, find_far_reach, find_reach
from clew.probing.near_memory import NearMemory, NoRoomError
from clew.probing.patch_table import PatchTable
from clew.probing.patches import JUMP_BYTES, Led, Patch, Patches, make_trampoline, trampoline_bytes
from clew.probing.planning import Group, Site
from clew.probing.probed_process import ProbedProcess
from clew.probing.semaphores import Semaphores
from clew.probing.site_table import AskedSite
from clew.probing.traps import TrapTable
from clew.process.capture_table import CaptureRow
from clew.process.held_process import HeldProcess
from clew.process.maps import read_maps
from clew.process.stopped_process import StoppedProcess
from clew.process.thread_state import give_back, read_state
from clew.protocol._constants import MAX_PROBES

__all__ = ["Placing"]

_Spot = tuple[int, bool, int]

_HOLD_SECONDS: Final = 2.0
_GAP_BYTES: Final = 16
"""What is not used between two of a kind, so that they begin at whole lines: it holds nothing."""
_NOTHING: Final = b"\xe9" + bytes(4)
"""A jump to what is behind it."""
_PRESENT, _SWAPPED, _OF_FILE = 1 << 63, 1 << 62, 1 << 61
"""Bits of an entry of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst)."""
_AT_ONCE: Final = 4096
"""So many handlers are made at a time: the runtime keeps what it made until it is asked again."""
_HANDLERS: Final = "handlers"
_FAR: Final = "far"
_HANDLER_BYTES: Final = (1024, 4096, 32768)
"""Room for a handler; the next one where that is too little."""


class Placing:
    """The probes in one process."""

    def __init__(self, process: ProbedProcess, may_block: Callable[[Collection[int]], bool]) -> None:
        """`may_block`: whether a thread that blocks traps may come to one of some addresses."""
        self._process, self._may_block = process, may_block
        self.memory = NearMemory(process.pid, read_maps(process.task))
        self.patches = Patches()
        self.traps = TrapTable(process.shared, process.plan.scratch)
        self._writer = CodeWriter(process)
        self._table = PatchTable(process.shared)
        self.semaphores = Semaphores(process, self._table)
        self._placed: dict[int, Patch] = {}
        """By the identities of their groups."""
        self._known: dict[Hashable, tuple[Relocated, tuple[int, ...]]] = {}
        """Trampolines that were ever made, and where they lead to handlers, by what they are for."""
        self._originals: dict[int, bytes] = {}
        """By page: what the program's code was before anything was written there, if that was its file's page."""
        self._seen: set[int] = set()
        """Pages that were written to."""
        self._copies: list[Relocated] = []
        """All that were ever made, by their addresses: a thread may be on one."""
        self._left: list[Patch] = []
        """What was there when leaving began."""
        self.n_handlers = 0
        """How many numbers of handlers were given."""
        self.stopped: StoppedProcess | None = None
        """The process while it is stopped before its first instruction."""

    def apply(self, made: Sequence[Group], gone: Sequence[Group]) -> list[Group]:
        """Have these groups lead to their handlers, and those no more. Those for whose trampolines there is no room,
        where a jump could lead, are given back, and what they were to replace stays. Raises TargetError, UsageError;
        nothing is changed then."""
        patches, failed = self._make(made)
        gone_patches = [self._placed[id(group)] for group in gone]
        if failed:
            # Their sites are planned anew, together with those that are beside them.
            return failed
        self._check(gone_patches, patches)
        self._keep_pages(patches)
        change = CodeChange.of(gone_patches, patches)
        self._install_traps()
        # Should this process be gone in the midst of it: what is not written yet is as it is written back.
        self._table.set(self._process.pid, _all_originals([*self.patches, *patches]))
        self.traps.add(self._process.pid, [*gone_patches, *patches])
        if self.stopped is not None:
            self._writer.write_now(change)
        elif change.content and self._may_block(change.content):
            self._writer.write_held(change)
        elif change.content:
            with self._process.stopped_worker() as worker:
                self._writer.write(change, worker)
        for group in gone:
            del self._placed[id(group)]
        self._placed.update((id(group), patch) for group, patch in zip(made, patches, strict=True))
        self.patches.change(gone_patches, patches)
        if gone:
            self._table.set(self._process.pid, _all_originals(self.patches))
        return []

    def read(self, address: int, size_bytes: int) -> bytes:
        """Memory of the process as it is without these probes. Raises TargetError."""
        return self.patches.undo(address, self._process.read(address, size_bytes))

    def forget(self, groups: Iterable[Group]) -> None:
        """The code of these is not there any more."""
        patches = [self._placed.pop(id(group)) for group in groups]
        self.patches.change(patches, ())
        for patch in patches:
            for address, content in patch.writes():
                for page in _pages(address, len(content)):
                    self._originals.pop(page, None)
                    self._seen.discard(page)

    def groups_at(self, is_gone: Callable[[int], bool]) -> list[Group]:
        """Those in place at such addresses."""
        return [patch.group for patch in self.patches if is_gone(patch.start)]

    def begin_leaving(self) -> None:
        """From now on nothing is placed any more."""
        found = list(self.patches)
        self._left += found
        self._table.set(self._process.pid, ())
        self.semaphores.begin_leaving()
        self.patches.change(found, ())
        self._placed.clear()

    def restore(self, pid: Pid) -> bool:
        """Have the code of a process, or of one of its children, be as it was: nothing leads to handlers any more. All
        its threads are held. False: somebody else's jump leads to a copy, which has to stay. Raises OSError."""
        is_own = True
        self.semaphores.restore(pid)
        with open(f"/proc/{pid}/mem", "r+b", buffering=0) as file:
            memory = file.fileno()
            for patch in self._left:
                if holds(memory, patch.writes()):
                    write_all(memory, patch.originals())
                elif is_there(memory, patch.start) and not holds(memory, patch.originals()):
                    is_own = False
                    # For threads the copy stays what it is.
                    write_all(memory, [(address, _NOTHING) for address in patch.led])
        return is_own

    def find_origin(self, address: int) -> Origin | None:
        """Where a thread would be without any probe that is at an address of a copy."""
        index = bisect.bisect_right(self._copies, address, key=_address_of) - 1
        return self._copies[index].find_origin(address) if index >= 0 else None

    def chunk_spans(self) -> list[tuple[int, int]]:
        """Where copies and handlers are: from where up to where."""
        return self.memory.spans()

    def pages_of_file(self, process: StoppedProcess) -> list[int]:
        """Pages that were written to and hold what they held before."""
        found = []
        for page, content in self._originals.items():
            # A child may be older than what is loaded there.
            with contextlib.suppress(TargetError):
                if process.read(RemoteAddress(page), len(content)) == content:
                    found.append(page)
        return found

    @property
    def n_held(self) -> int:
        """How often all threads were held for a change of code."""
        return self._writer.n_held

    def _make(self, groups: Sequence[Group]) -> tuple[list[Patch], list[Group]]:
        """Patches for groups, their trampolines and handlers in place; and groups for which there is no room."""
        keys = {id(group): _key_of(group) for group in groups}
        new = [group for group in groups if keys[id(group)] not in self._known]
        failed: list[Group] = []
        if new:
            places = self._tell_captures(new)
            asked: list[AskedSite] = []
            trampolines: list[tuple[Hashable, Relocated, tuple[int, ...]]] = []
            with self._process.stopped_worker() as worker:
                for group in new:
                    try:
                        trampoline, its = self._lay_out(worker, group, places)
                    except NoRoomError:
                        failed.append(group)
                    else:
                        asked += its
                        trampolines.append((keys[id(group)], trampoline, tuple(one.resume - JUMP_BYTES for one in its)))
            for start in range(0, len(asked), _AT_ONCE):
                self._make_handlers(asked[start : start + _AT_ONCE])
            _put(self._process, [(one.address, one.code) for _, one, _ in trampolines])
            self._copies = sorted([*self._copies, *(one for _, one, _ in trampolines)], key=_address_of)
            self._known.update({key: (one, led) for key, one, led in trampolines})
        if failed:
            return [], failed
        return [Patch(group, *self._known[keys[id(group)]]) for group in groups], []

    def _tell_captures(self, groups: Sequence[Group]) -> dict[_Spot, int]:
        """Have the runtime know what is captured by these; and as which place it knows each of their spots. Where the
        same is captured at many, they are one place: it looks when handlers are made, and not later."""
        taken: dict[_Spot, list[CaptureRow]] = {}
        for group in groups:
            for site in group.sites:
                own = taken.setdefault(_spot_of(site), [])
                # But for its place.
                own += [one for row in site.rows if (one := row._replace(pc=0)) not in own]
        known: dict[tuple[CaptureRow, ...], int] = {}
        places = {spot: known.setdefault(tuple(rows), len(known) + 1) for spot, rows in taken.items()}
        self._process.shared.set_captures([row._replace(pc=place) for rows, place in known.items() for row in rows])
        return places

    def _lay_out(
        self, worker: StoppedProcess, group: Group, places: Mapping[_Spot, int]
    ) -> tuple[Relocated, list[AskedSite]]:
        """Choose where a group's trampoline is, and its handlers: one for each of its spots."""
        plan, spots = group.plan, _spots_of(group)
        if self.n_handlers + len(spots) > MAX_PROBES:
            raise UsageError(f"there have been {self.n_handlers} probes: there is no room for more")
        size_bytes = trampoline_bytes(plan, len(spots))
        next_fit = None if plan.jump is None else plan.jump.next_fit
        within = find_reach(plan.displaced, plan.branches, size_bytes)
        try:
            address = self.memory.take(worker, plan.patch_address, size_bytes, next_fit, within, _shape_of(plan))
        except NoRoomError:
            if plan.technique != Technique.TRAP:
                raise
            # A thread that traps is led anywhere.
            within = find_far_reach(plan.displaced, size_bytes)
            address = self.memory.take(worker, None, size_bytes, within=within, shape=_FAR)
        room = _HANDLER_BYTES[0]
        # Near the trampoline, which may be as far from the code as a jump goes.
        handlers = [
            Led(group.index_of(site), site.is_taken, self.memory.take(worker, address, room, shape=_HANDLERS))
            for site in spots.values()
        ]
        trampoline, resumes = make_trampoline(plan, address, handlers)
        first = self.n_handlers
        self.n_handlers += len(spots)
        asked = [
            AskedSite(first + number, spot[-1], places[spot], led.handler, room, resume)
            for number, (spot, led, resume) in enumerate(zip(spots, handlers, resumes, strict=True))
        ]
        return trampoline, asked

    def _make_handlers(self, asked: Sequence[AskedSite]) -> None:
        """Have handlers made, and written to their places. One that is larger than its room lies elsewhere, and is led
        to from there."""
        process = self._process
        for room in (*_HANDLER_BYTES[1:], 0):
            larger: list[AskedSite] = []
            writes: list[tuple[int, bytes]] = []
            for site, answer in zip(asked, process.sites.ask(asked, process.pid), strict=True):
                if answer is not None:
                    writes.append((site.code, process.read(answer.address, answer.size_bytes)))
                elif not room:
                    raise TargetError(process.pid, f"process {process.pid}: the captures at {site.pc:#x} have no room")
                else:
                    larger.append(site)
            _put(process, writes)
            if not larger:
                return
            with process.stopped_worker() as worker:
                moved = [
                    one._replace(code=self.memory.take(worker, one.code, room, shape=_HANDLERS), room=room)
                    for one in larger
                ]
            for before, now in zip(larger, moved, strict=True):
                distance = now.code - before.code - JUMP_BYTES
                process.write(before.code, b"\xe9" + distance.to_bytes(4, "little", signed=True))
            asked = moved

    def _check(self, gone: Sequence[Patch], made: Sequence[Patch]) -> None:
        """Raises UsageError where the code is not what it should be: somebody else has changed it."""
        expected = {
            address: byte for patch in made for at, data in patch.originals() for address, byte in enumerate(data, at)
        }
        for patch in gone:
            if not self._is_in_place(patch):
                raise UsageError(f"{patch.start:#x}: somebody else has changed what was put there")
            expected.update((address, byte) for at, data in patch.writes() for address, byte in enumerate(data, at))
        for patch in made:
            found = self._process.read(patch.start, patch.end - patch.start)
            if any(expected[address] != byte for address, byte in enumerate(found, patch.start)):
                raise UsageError(f"{patch.start:#x}: somebody else has changed the code there, as debuggers do")

    def _is_in_place(self, patch: Patch) -> bool:
        return all(self._process.read(address, len(content)) == content for address, content in patch.writes())

    def _install_traps(self) -> None:
        """Have threads that trap be led on. Some may have to as soon as code is written over."""
        if self.traps.is_installed:
            return
        if self.stopped is not None:
            self.traps.install(self.stopped)
            return
        held = HeldProcess(self._process.pid)
        try:
            held.stop_all(_HOLD_SECONDS)
            with _calling(held) as thread:
                self.traps.install(thread)
        finally:
            held.let_go()

    def _keep_pages(self, patches: Iterable[Patch]) -> None:
        """Keep the pages that are written to next, as far as they are their file's still."""
        pages = {page for patch in patches for at, data in patch.writes() for page in _pages(at, len(data))}
        new = sorted(pages - self._seen)
        self._seen |= pages
        with open(f"/proc/{self._process.task}/pagemap", "rb", buffering=0) as file:
            for page in new:
                entry = int.from_bytes(os.pread(file.fileno(), 8, page // mmap.PAGESIZE * 8), "little")
                if not entry & (_PRESENT | _SWAPPED) or entry & (_PRESENT | _OF_FILE) == _PRESENT | _OF_FILE:
                    self._originals[page] = self._process.read(page, mmap.PAGESIZE)


@contextlib.contextmanager
def _calling(held: HeldProcess) -> Iterator[StoppedProcess]:
    """A stopped thread in which calls can be made; it goes on afterwards where it was."""
    tid: Tid = next(iter(held.threads))
    process = StoppedProcess(held.pid, tid=tid)
    state = read_state(process, tid)
    try:
        yield process
    finally:
        give_back(state)
        process.close()


def _address_of(copy: Relocated) -> int:
    return copy.address


def _pages(address: int, size_bytes: int) -> range:
    return range(address & -mmap.PAGESIZE, address + size_bytes, mmap.PAGESIZE)


def _shape_of(plan: SitePlan) -> Hashable:
    """Trampolines of the same may lie close to each other, where jumps of equal bytes lead."""
    if plan.jump is None or not any(plan.jump.allowed):
        return None
    # Within a chunk all values of the two lower bytes are found.
    given = [index for index in (2, 3) if plan.jump.allowed[index]]
    return plan.jump.allowed, plan.patch_address >> 8 * given[-1] if given else None


def _spot_of(site: Site) -> _Spot:
    """Where a site leads to a handler: in front of which instruction, whether where that branches, and what events know
    it by."""
    return site.at, site.is_taken, site.pc


def _spots_of(group: Group) -> dict[_Spot, Site]:
    """Those of a group, in the order in which threads come to them, each with one of its sites."""
    return {_spot_of(site): site for site in group.sites}


def _key_of(group: Group) -> Hashable:
    """What a group's trampoline and handlers are for."""
    plan = group.plan
    rows = tuple((group.index_of(site), site.is_taken, tuple(site.rows)) for site in group.sites)
    return plan.patch_address, plan.displaced, plan.jump, rows


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


def _all_originals(patches: Iterable[Patch]) -> Iterator[tuple[int, bytes]]:
    for patch in patches:
        yield from patch.originals()
