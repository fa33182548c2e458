"""Writes over code that threads may be executing.

Runs in the controller. It is done as Linux does it with its own code (smp_text_poke_batch_finish). First each
instruction that changes traps, then all bytes behind their first ones are written, and then the first ones: no jump's
distance changes while threads may take the jump. In between all processors that run the program are made to forget what
they have read (membarrier(2), SYNC_CORE), by a task that has the program's memory. A thread that traps meanwhile is led
to a copy, so it waits for nobody. But it must be able to trap: where one blocks the signals of traps the kernel ends
the process. So threads are held where one does, or might come to do so (`blocked_traps`).
"""

from __future__ import annotations

import contextlib
import mmap
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from clew.dataclass import dataclass
from clew.errors import RemoteCallError
from clew.probing.blocked_traps import TRAP_SIGNALS, signals_of
from clew.probing.native import TRAP_BYTE
from clew.probing.patches import Patch
from clew.probing.probed_process import ProbedProcess
from clew.process.held_process import HeldProcess
from clew.process.processors.chosen import processor_of
from clew.process.stopped_process import StoppedProcess
from clew.process.thread_state import call_to_make_again

__all__ = ["CodeChange", "CodeWriter", "has_trap_pending"]

_HOLD_SECONDS: Final = 2.0
_SYNC_CORE, _REGISTER_SYNC_CORE = 1 << 5, 1 << 6
_LOOK_SECONDS: Final = 0.1
_PAUSE_SECONDS: Final = 0.0005
_TRAP: Final = bytes((TRAP_BYTE,))


@dataclass(frozen=True)
class CodeChange:
    """What code is to be: by address all `content` that is written.

    `first` are the addresses of instructions that have to trap before anything else is written: those that are there
    now, jumps among them. `last` are those of instructions that are there in the end, jumps among them; in between
    their first bytes trap. Places within a jump, now or in the end, trap as they are. `moves` leads threads that stand
    at an address to where they go on. `is_whole`: instructions are changed that have no copy."""

    content: dict[int, int]
    first: set[int]
    last: set[int]
    moves: dict[int, int]
    is_whole: bool

    @classmethod
    def of(cls, gone: Iterable[Patch], made: Iterable[Patch]) -> CodeChange:
        """Some patches are put in place of others."""
        content: dict[int, int] = {}
        moves: dict[int, int] = {}
        within: tuple[set[int], set[int]] = set(), set()
        is_whole = False
        for number, patches in enumerate((gone, made)):
            for patch in patches:
                for address, data in patch.writes() if number else patch.originals():
                    content.update(enumerate(data, address))
                is_whole = is_whole or bool(patch.plan.branches)
                rows = patch.traps()
                moves.update(rows)
                within[number].update(address for address in rows if address != patch.start)
        starts = moves.keys() & content.keys()
        for patch in made:
            # A thread in front of a patch comes to it by itself.
            moves.pop(patch.start, None)
        return cls(content, starts - within[0], starts - within[1], moves, is_whole)


class CodeWriter:
    """Writes the code of one process."""

    def __init__(self, process: ProbedProcess) -> None:
        self._process = process
        self._is_registered: bool | None = None
        self._blocking: set[Path] = set()
        """Threads that were found to block traps for long."""
        self.n_held = 0
        """How often threads were held for it."""

    def write(self, change: CodeChange, worker: StoppedProcess) -> None:
        """Have the code be so, while threads run; `worker` is the runtime's task. What they may trap at is known to
        them. Raises TargetError."""
        if change.is_whole or not self._can_run(worker) or self._blocks_traps():
            self.write_held(change)
            return
        _put(self._process, ((address, _TRAP) for address in sorted(change.first)))
        worker.call("membarrier", _SYNC_CORE, 0, 0)
        if self._blocks_traps():
            self.write_held(change)
            return
        # What is restored within a jump that is no more has trapped as a part of that, and does so until the end.
        rest = {address: byte for address, byte in change.content.items() if address not in change.last}
        last = [(one, change.content[one]) for one in sorted(change.last)]
        last = [(one, byte) for one, byte in last if byte != TRAP_BYTE or one not in change.first]
        for writes in (list(_runs(rest)), [(address, bytes((byte,))) for address, byte in last]):
            if writes:
                _put(self._process, writes)
                worker.call("membarrier", _SYNC_CORE, 0, 0)

    def write_now(self, change: CodeChange) -> None:
        """Have the code be so; no thread runs."""
        for start, data in _spans(change.content):
            known = bytearray(self._process.read(start, len(data)))
            for at, byte in enumerate(data):
                if byte is not None:
                    known[at] = byte
            self._process.write(start, bytes(known))

    def write_held(self, change: CodeChange) -> None:
        """Have the code be so, with all threads held for it. Raises TargetError."""
        self.n_held += 1
        held = HeldProcess(self._process.pid)
        try:
            held.stop_all(_HOLD_SECONDS)
            self.write_now(change)
            for tid in held.threads:
                processor = processor_of(tid)
                registers = processor.get_registers(tid)
                target = change.moves.get(registers.pc)
                if target is None or call_to_make_again(registers, processor.architecture)[0]:
                    # A call that is made again begins in front of where the thread is: it traps there.
                    continue
                # One that has trapped is led on by its handler.
                if not has_trap_pending(self._process.pid, tid):
                    registers.pc = target
                    processor.set_registers(tid, registers)
        finally:
            held.let_go()

    def _can_run(self, worker: StoppedProcess) -> bool:
        """Whether processors can be made to forget what they have read."""
        if self._is_registered is None:
            self._is_registered = False
            with contextlib.suppress(RemoteCallError):
                worker.call("membarrier", _REGISTER_SYNC_CORE, 0, 0)
                self._is_registered = True
        return self._is_registered

    def _blocks_traps(self) -> bool:
        """Whether a thread could not trap without the kernel ending the process. Libraries block all signals for a
        moment, too, so a thread counts that does so each time it is looked at."""
        try:
            blocking = {task for task in Path(f"/proc/{self._process.pid}/task").iterdir() if _blocks(task)}
        except OSError:
            return False
        deadline = time.monotonic() + _LOOK_SECONDS
        while blocking and blocking.isdisjoint(self._blocking):
            if time.monotonic() > deadline:
                self._blocking = blocking
            else:
                time.sleep(_PAUSE_SECONDS)
                blocking = {task for task in blocking if _blocks(task)}
        return bool(blocking)


def has_trap_pending(pid: int, tid: int) -> bool:
    """Whether a stopped thread has trapped, and has not been told."""
    return bool(signals_of(Path(f"/proc/{pid}/task/{tid}"), "SigPnd") & TRAP_SIGNALS)


def _blocks(task: Path) -> bool:
    return bool(signals_of(task, "SigBlk") & TRAP_SIGNALS)


def _runs(content: Mapping[int, int]) -> Iterator[tuple[int, bytes]]:
    """Bytes that lie one behind the other, together."""
    run, start = bytearray(), 0
    for address in sorted(content):
        if run and address != start + len(run):
            yield start, bytes(run)
            run.clear()
        if not run:
            start = address
        run.append(content[address])
    if run:
        yield start, bytes(run)


def _spans(content: Mapping[int, int]) -> Iterator[tuple[int, list[int | None]]]:
    """What changes, page by page, from the first byte of each up to its last; None: that stays."""
    by_page: dict[int, list[int]] = {}
    for address in content:
        by_page.setdefault(address // mmap.PAGESIZE, []).append(address)
    for addresses in by_page.values():
        start, end = min(addresses), max(addresses) + 1
        yield start, [content.get(address) for address in range(start, end)]


def _put(process: ProbedProcess, writes: Iterable[tuple[int, bytes]]) -> None:
    for address, data in writes:
        process.write(address, data)
