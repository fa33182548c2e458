"""Puts probes into the code of a process, and takes them out.

Runs in the controller. Handlers and trampolines are made and written while the program runs, for nothing leads there
yet. Then its threads are held while the code is written over, and while those that stand in it are moved to the copies.
"""

from __future__ import annotations

import bisect
import contextlib
import mmap
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from clew.address import Pid, RemoteAddress, Tid
from clew.dataclass import dataclass, replace
from clew.errors import TargetError
from clew.probing.near_memory import NearMemory, NoRoomError
from clew.probing.patches import JUMP_BYTES, Patch, Patches, make_trampoline, trampoline_bytes
from clew.probing.probed_process import ProbedProcess
from clew.probing.site_table import AskedSite
from clew.probing.traps import TrapTable
from clew.probing.worker import stopped_worker
from clew.probing.x86_64.plans import SitePlan
from clew.probing.x86_64.relocation import Origin, Relocated
from clew.probing.x86_64.trampolines import iter_places
from clew.process.capture_table import CaptureRow
from clew.process.held_process import HeldProcess
from clew.process.maps import read_maps
from clew.process.processors.chosen import processor_of
from clew.process.stopped_process import StoppedProcess
from clew.process.thread_state import give_back, read_state

__all__ = ["Placing", "WantedSite"]

_HOLD_SECONDS: Final = 2.0
_HANDLER_BYTES: Final = (1024, 4096, 32768)
"""Room for a handler; the next one where that is too little."""


@dataclass(frozen=True)
class WantedSite:
    """A place that is to be probed: the instruction of that index among those that a plan displaces, and what is
    captured in front of it: rows with its `pc`."""

    plan: SitePlan
    index: int
    rows: Sequence[CaptureRow]
    address: int
    """Where the probe was asked for."""
    is_exit: bool = False


class Placing:
    """The probes in one process."""

    def __init__(self, process: ProbedProcess) -> None:
        self._process = process
        self.memory = NearMemory(process.pid, read_maps(process.task))
        self.patches = Patches()
        self.traps = TrapTable(process.shared, process.plan.scratch)
        self._originals: dict[int, bytes] = {}
        """By page: what the program's code was before anything was written there."""
        self._copies: list[Relocated] = []
        """All that were ever made, by their addresses: a thread may be on one."""
        self._left: list[tuple[int, bytes]] = []
        """What the code is to hold again, by address."""
        self._n_sites = 0
        self.stopped: StoppedProcess | None = None
        """The process while it is stopped before its first instruction."""

    def place(self, wanted: Sequence[WantedSite]) -> list[WantedSite]:
        """Have those places lead to their handlers. Those for whose trampolines there is no room, where a jump could
        lead, are given back. Raises TargetError, UsageError; nothing is changed then."""
        made, failed = self._make(wanted)
        for patch in made:
            self.patches.add(patch)
        self.traps.set(self._process.pid, self._trap_rows())
        with self._held() as held:
            if not self.traps.is_installed and any(patch.traps() for patch in made):
                with self._calling(held) as thread:
                    self.traps.install(thread)
            for patch in made:
                self._keep_pages(patch)
                for address, content in patch.writes():
                    self._process.write(address, content)
            self._move_threads(held, made)
        return failed

    def remove(self, patches: Iterable[Patch]) -> None:
        """Have those places lead nowhere any more. Their trampolines stay: a thread may be on one."""
        gone = list(patches)
        with self._held():
            for patch in gone:
                for address, content in patch.originals():
                    self._process.write(address, content)
        for patch in gone:
            self.patches.remove(patch)

    def forget(self, patches: Iterable[Patch]) -> None:
        """The code of these is not there any more."""
        for patch in list(patches):
            self.patches.remove(patch)
            for address, content in patch.writes():
                for page in range(address & -mmap.PAGESIZE, address + len(content), mmap.PAGESIZE):
                    self._originals.pop(page, None)

    def begin_leaving(self) -> None:
        """From now on nothing is placed any more."""
        self._left = [write for patch in self.patches for write in patch.originals()]

    def restore(self, pid: Pid) -> None:
        """Have the code of a process, or of one of its children, be as it was: nothing leads to handlers any more. All
        its threads are held. Raises OSError."""
        with open(f"/proc/{pid}/mem", "r+b", buffering=0) as file:
            for address, content in self._left:
                with contextlib.suppress(OSError):
                    os.pwrite(file.fileno(), content, address)

    def find_origin(self, address: int) -> Origin | None:
        """Where a thread would be without any probe that is at an address of a copy."""
        index = bisect.bisect_right(self._copies, address, key=lambda copy: copy.address) - 1
        return self._copies[index].find_origin(address) if index >= 0 else None

    def chunk_spans(self) -> list[tuple[int, int]]:
        """Where copies and handlers are: from where up to where."""
        return self.memory.spans()

    def pages_of_file(self, process: StoppedProcess) -> list[int]:
        """Pages that were written to and hold what they held before."""
        kept = self._originals.items()
        return [page for page, content in kept if process.read(RemoteAddress(page), len(content)) == content]

    def _make(self, wanted: Sequence[WantedSite]) -> tuple[list[Patch], list[WantedSite]]:
        """Make handlers and trampolines, and write them to their places."""
        process = self._process
        sites: dict[int, list[WantedSite]] = {}
        for site in wanted:
            sites.setdefault(id(site.plan), []).append(site)
            for row in site.rows:
                process.shared.append_capture(row, is_last=False)
        process.shared.tell_captures()
        made: list[Patch] = []
        failed: list[WantedSite] = []
        asked: list[AskedSite] = []
        with stopped_worker(process.task) as worker:
            for together in sites.values():
                try:
                    patch, its = self._lay_out(worker, together)
                except NoRoomError:
                    failed += together
                else:
                    made.append(patch)
                    asked += its
        self._make_handlers(asked)
        for patch in made:
            process.write(patch.trampoline.address, patch.trampoline.code)
            bisect.insort(self._copies, patch.trampoline, key=lambda copy: copy.address)
        return made, failed

    def _lay_out(self, worker: StoppedProcess, sites: Sequence[WantedSite]) -> tuple[Patch, list[AskedSite]]:
        """Choose where a patch's trampoline is, and the handlers of its sites, one for each instruction."""
        plan = sites[0].plan
        rows = {site.index: site.rows[0].pc for site in sites}
        size_bytes = trampoline_bytes(plan)
        shape = () if plan.jump is None else plan.jump.allowed
        address = self.memory.take(
            worker, plan.patch_address, size_bytes, lambda free: iter_places(plan, free, size_bytes), shape
        )
        room = _HANDLER_BYTES[0]
        # Near the trampoline, which may be as far from the code as a jump goes.
        handlers = {index: self.memory.take(worker, address, room) for index in rows}
        trampoline, resumes = make_trampoline(plan, address, handlers)
        numbers = {}
        for index in rows:
            numbers[index] = self._n_sites
            self._n_sites += 1
        asked = [AskedSite(numbers[i], pc, handlers[i], room, resumes[i]) for i, pc in rows.items()]
        return Patch(plan, trampoline, numbers), asked

    def _make_handlers(self, asked: Sequence[AskedSite]) -> None:
        """Have handlers made, and written to their places. One that is larger than its room lies elsewhere, and is led
        to from there."""
        process = self._process
        for room in (*_HANDLER_BYTES[1:], 0):
            larger: list[AskedSite] = []
            for site, answer in zip(asked, process.sites.ask(asked, process.pid), strict=True):
                if answer is not None:
                    process.write(site.code, process.read(answer.address, answer.size_bytes))
                elif not room:
                    raise TargetError(process.pid, f"process {process.pid}: the captures at {site.pc:#x} have no room")
                else:
                    larger.append(site)
            if not larger:
                return
            with stopped_worker(process.task) as worker:
                moved = [replace(one, code=self.memory.take(worker, one.code, room), room=room) for one in larger]
            for before, now in zip(larger, moved, strict=True):
                distance = now.code - before.code - JUMP_BYTES
                process.write(before.code, b"\xe9" + distance.to_bytes(4, "little", signed=True))
            asked = moved

    def _trap_rows(self) -> dict[int, int]:
        return {address: target for patch in self.patches for address, target in patch.traps().items()}

    @contextlib.contextmanager
    def _held(self) -> Iterator[HeldProcess]:
        held = HeldProcess(self._process.pid)
        if self.stopped is not None:
            # It has one thread, which is nowhere yet.
            yield held
            return
        try:
            held.stop_all(_HOLD_SECONDS)
            yield held
        finally:
            held.let_go()

    @contextlib.contextmanager
    def _calling(self, held: HeldProcess) -> Iterator[StoppedProcess]:
        """A stopped thread in which calls can be made; it goes on afterwards where it was."""
        if self.stopped is not None:
            yield self.stopped
            return
        tid: Tid = next(iter(held.threads))
        process = StoppedProcess(held.pid, tid=tid)
        state = read_state(process, tid)
        try:
            yield process
        finally:
            give_back(state)
            process.close()

    def _move_threads(self, held: HeldProcess, made: Sequence[Patch]) -> None:
        """Have threads that stand within what is written over go on in the copies."""
        starts = {
            one.address: patch.trampoline.starts[one.address]
            for patch in made
            for one in patch.plan.displaced
            if patch.start < one.address < patch.end
        }
        for tid in held.threads:
            processor = processor_of(tid)
            registers = processor.get_registers(tid)
            target = starts.get(registers.pc)
            if target is not None:
                registers.pc = target
                processor.set_registers(tid, registers)

    def _keep_pages(self, patch: Patch) -> None:
        for address, content in patch.writes():
            for page in range(address & -mmap.PAGESIZE, address + len(content), mmap.PAGESIZE):
                if page not in self._originals:
                    self._originals[page] = self._process.read(page, mmap.PAGESIZE)
