"""Writes over code that threads may be executing, as Linux does with its own (arch/x86/kernel/alternative.c,
smp_text_poke_batch_finish).

Runs in the controller. First each instruction that changes traps, then all bytes behind their first ones are written,
and then the first ones; in between all processors that run the program are made to forget what they have read
(membarrier(2), SYNC_CORE), by a task that has the program's memory. A thread that traps meanwhile is led to a copy, so
it waits for nobody. But it must be able to trap: where one blocks the signals of traps the kernel ends the process. So
threads are held then.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from clew.dataclass import dataclass
from clew.errors import RemoteCallError
from clew.probing.patches import Patch
from clew.probing.probed_process import ProbedProcess
from clew.probing.x86_64.plans import TRAP_BYTE
from clew.process.held_process import HeldProcess
from clew.process.processors.chosen import processor_of
from clew.process.stopped_process import StoppedProcess

__all__ = ["CodeChange", "CodeWriter", "has_trap_pending"]

_HOLD_SECONDS: Final = 2.0
_SYNC_CORE, _REGISTER_SYNC_CORE = 1 << 5, 1 << 6
_TRAPS: Final = 1 << signal.SIGTRAP - 1 | 1 << signal.SIGILL - 1
_LOOKS: Final = 20
_LOOK_SECONDS: Final = 0.0002
_TRAP: Final = bytes((TRAP_BYTE,))


@dataclass(frozen=True)
class CodeChange:
    """What code is to be: by address all `content` that is written, and the addresses of instructions among that
    (`starts`), some of which are the first ones of patches (`heads`). `moves` leads threads that stand at an address to
    where they go on. `is_whole`: instructions are changed without a copy that threads could be led to."""

    content: dict[int, int]
    starts: set[int]
    heads: set[int]
    moves: dict[int, int]
    is_whole: bool

    @classmethod
    def of(cls, gone: Iterable[Patch], made: Iterable[Patch]) -> CodeChange:
        """Some patches are put in place of others."""
        content: dict[int, int] = {}
        starts: set[int] = set()
        heads: set[int] = set()
        moves: dict[int, int] = {}
        is_whole = False
        for patch, writes in [(one, one.originals()) for one in gone] + [(one, one.writes()) for one in made]:
            for address, data in writes:
                content.update(enumerate(data, address))
            is_whole = is_whole or bool(patch.plan.branches)
            rows = patch.traps()
            starts.update(rows)
            heads.add(patch.start)
            moves.update(rows)
        for patch in made:
            # A thread in front of a patch comes to it by itself.
            moves.pop(patch.start, None)
        return cls(content, starts & content.keys(), heads, moves, is_whole)


class CodeWriter:
    """Writes the code of one process."""

    def __init__(self, process: ProbedProcess) -> None:
        self._process = process
        self._is_registered: bool | None = None
        self.n_held = 0
        """How often threads were held for it."""

    def write(self, change: CodeChange, worker: StoppedProcess) -> None:
        """Have the code be so, while threads run; `worker` is the runtime's task. What they may trap at is known to
        them. Raises TargetError."""
        if change.is_whole or not self._can_run(worker) or self._blocks_traps():
            self.write_held(change)
            return
        _put(self._process, ((address, _TRAP) for address in sorted(change.starts)))
        worker.call("membarrier", _SYNC_CORE, 0, 0)
        if self._blocks_traps():
            self.write_held(change)
            return
        tails = {address: byte for address, byte in change.content.items() if address not in change.starts}
        firsts = [(one, bytes((change.content[one],))) for one in sorted(change.starts)]
        # Some are also a part of a jump's distance: all of that is there before the jump is.
        inner = [one for one in firsts if one[0] not in change.heads and one[1] != _TRAP]
        heads = [one for one in firsts if one[0] in change.heads and one[1] != _TRAP]
        for writes in (list(_runs(tails)), inner, heads):
            if writes:
                _put(self._process, writes)
                worker.call("membarrier", _SYNC_CORE, 0, 0)

    def write_now(self, change: CodeChange) -> None:
        """Have the code be so; no thread runs."""
        _put(self._process, _runs(change.content))

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
                # One that has trapped is led on by its handler.
                if target is not None and not has_trap_pending(self._process.pid, tid):
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
        """Whether a thread could not trap without the kernel ending the process. The runtime blocks all signals for a
        moment, too, so a thread counts that does so each time it is looked at."""
        tasks = Path(f"/proc/{self._process.pid}/task")
        try:
            left = list(tasks.iterdir())
        except OSError:
            return False
        for _ in range(_LOOKS):
            left = [task for task in left if _signals_of(task, "SigBlk") & _TRAPS]
            if not left:
                return False
            time.sleep(_LOOK_SECONDS)
        return True


def has_trap_pending(pid: int, tid: int) -> bool:
    """Whether a stopped thread has trapped, and has not been told."""
    return bool(_signals_of(Path(f"/proc/{pid}/task/{tid}"), "SigPnd") & _TRAPS)


def _signals_of(task: Path, name: str) -> int:
    """A set of signals of a thread; none if it is gone."""
    try:
        status = (task / "status").read_bytes()
    except OSError:
        return 0
    field = name.encode() + b":"
    return next((int(line.split()[1], 16) for line in status.splitlines() if line.startswith(field)), 0)


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


def _put(process: ProbedProcess, writes: Iterable[tuple[int, bytes]]) -> None:
    for address, data in writes:
        process.write(address, data)
