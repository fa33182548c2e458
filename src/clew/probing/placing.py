"""Puts probes into the code of a process, and takes them out.

Runs in the controller. Handlers and trampolines are made and written while the program runs, for nothing leads there
yet. Then the code is written over, live (`code_writer`). What was made stays: a thread may be on it, and the same
probes may come again.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from typing import Final

from clew.address import Pid, RemoteAddress
from clew.errors import TargetError, UsageError
from clew.probing.code_writer import CodeChange, CodeWriter
from clew.probing.making import Making, read_all
from clew.probing.memory_file import holds, is_there, write_all
from clew.probing.native import Origin
from clew.probing.near_memory import NearMemory
from clew.probing.patch_table import PatchTable
from clew.probing.patches import Patch, Patches
from clew.probing.planning import Group
from clew.probing.probed_process import ProbedProcess
from clew.probing.semaphores import Semaphores
from clew.probing.traps import TrapTable
from clew.process.held_process import HeldProcess
from clew.process.maps import read_maps
from clew.process.stopped_process import StoppedProcess
from clew.process.thread_state import calling_thread

__all__ = ["Placing"]


_HOLD_SECONDS: Final = 2.0
_NOTHING: Final = b"\xe9" + bytes(4)
"""A jump to what is behind it."""
_PRESENT, _SWAPPED, _OF_FILE = 1 << 63, 1 << 62, 1 << 61
"""Bits of an entry of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst)."""


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
        self._making = Making(process, self.memory)
        self._originals: dict[int, bytes] = {}
        """By page: what the program's code was before anything was written there, if that was its file's page."""
        self._seen: set[int] = set()
        """Pages that were written to."""
        self._left: list[Patch] = []
        """What was there when leaving began."""
        self.stopped: StoppedProcess | None = None
        """The process while it is stopped before its first instruction."""

    def apply(self, made: Sequence[Group], gone: Sequence[Group]) -> list[Group]:
        """Have these groups lead to their handlers, and those no more. Those for whose trampolines there is no room,
        where a jump could lead, are given back, and what they were to replace stays. Raises TargetError, UsageError;
        nothing is changed then."""
        patches, failed = self._making.make(made)
        gone_patches = [self._patch_of(group) for group in gone]
        if failed:
            # Their sites are planned anew, together with those that are beside them.
            return failed
        self._check(gone_patches, patches)
        self._keep_pages(patches)
        change = CodeChange.of(gone_patches, patches)
        self._install_traps()
        # Should this process be gone in the midst of it: what is not written yet is as it is written back.
        self._table.set(self._process.pid, _all_originals([*self.patches, *patches]))
        self.traps.add(self._process.pid, change.traps)
        if self.stopped is not None:
            self._writer.write_now(change)
        elif len(change.addresses) and self._may_block(change.pages()):
            self._writer.write_held(change)
        elif len(change.addresses):
            with self._process.stopped_worker() as worker:
                self._writer.write(change, worker)
        self.patches.change(gone_patches, patches)
        if gone:
            self._table.set(self._process.pid, _all_originals(self.patches))
        return []

    def read(self, address: int, size_bytes: int) -> bytes:
        """Memory of the process as it is without these probes. Raises TargetError."""
        return self.patches.undo(address, self._process.read(address, size_bytes))

    def forget(self, groups: Iterable[Group]) -> None:
        """The code of these is not there any more."""
        patches = [self._patch_of(group) for group in groups]
        self.patches.change(patches, ())
        for page in _pages_of(patches):
            self._originals.pop(page, None)
            self._seen.discard(page)

    def _patch_of(self, group: Group) -> Patch:
        found = self.patches.find(group.plan.patch_address)
        assert found.group is group
        return found

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
                    write_all(memory, [(address, _NOTHING) for address in patch.trampoline.find_led()])
        return is_own

    def find_origin(self, address: int) -> Origin | None:
        """Where a thread would be without any probe that is at an address of a copy."""
        return self._making.find_origin(address)

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

    def _check(self, gone: Sequence[Patch], made: Sequence[Patch]) -> None:
        """Raises UsageError where the code is not what it should be: somebody else has changed it."""
        written = [patch.writes() for patch in gone]
        for patch, some in zip(gone, written, strict=True):
            if any(self._process.read(at, len(data)) != data for at, data in some):
                raise UsageError(f"{patch.start:#x}: somebody else has changed what was put there")
        replaced = {at + index: byte for some in written for at, data in some for index, byte in enumerate(data)}
        contents = read_all(self._process, [(patch.start, len(patch.plan.original)) for patch in made])
        for patch, content in zip(made, contents, strict=True):
            expected = patch.plan.original
            if replaced:
                expected = bytes(replaced.get(at, byte) for at, byte in enumerate(expected, patch.start))
            if content != expected[: len(content)]:
                raise UsageError(f"{patch.start:#x}: somebody else has changed the code there, as debuggers do")

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
            with calling_thread(held.pid, next(iter(held.threads))) as thread:
                self.traps.install(thread)
        finally:
            held.let_go()

    def _keep_pages(self, patches: Iterable[Patch]) -> None:
        """Keep the pages that are written to next, as far as they are their file's still."""
        pages = _pages_of(patches)
        new = sorted(pages - self._seen)
        self._seen |= pages
        with open(f"/proc/{self._process.task}/pagemap", "rb", buffering=0) as file:
            for page in new:
                entry = int.from_bytes(os.pread(file.fileno(), 8, page // mmap.PAGESIZE * 8), "little")
                if not entry & (_PRESENT | _SWAPPED) or entry & (_PRESENT | _OF_FILE) == _PRESENT | _OF_FILE:
                    self._originals[page] = self._process.read(page, mmap.PAGESIZE)


def _pages_of(patches: Iterable[Patch]) -> set[int]:
    """The pages that patches are written to."""
    pages: set[int] = set()
    for patch in patches:
        plan = patch.plan
        pages.add(plan.patch_address & -mmap.PAGESIZE)
        pages.add(plan.patch_end - 1 & -mmap.PAGESIZE)
        for one in plan.branches:
            pages.update((one.end - 4 & -mmap.PAGESIZE, one.end - 1 & -mmap.PAGESIZE))
    return pages


def _all_originals(patches: Iterable[Patch]) -> Iterator[tuple[int, bytes]]:
    for patch in patches:
        yield from patch.originals()
