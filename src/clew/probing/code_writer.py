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
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.address import Tid
from clew.dataclass import dataclass
from clew.errors import RemoteCallError
from clew.probing.blocked_traps import TRAP_SIGNALS
from clew.probing.native import TRAP_BYTE
from clew.probing.patches import Patch
from clew.probing.probed_process import ProbedProcess
from clew.process.held_process import HeldProcess
from clew.process.identity import iter_threads, read_signals
from clew.process.processors.chosen import processor_of
from clew.process.stopped_process import StoppedProcess
from clew.process.thread_state import call_to_make_again

__all__ = ["CodeChange", "CodeWriter", "has_trap_pending"]

_HOLD_SECONDS: Final = 2.0
_SYNC_CORE, _REGISTER_SYNC_CORE = 1 << 5, 1 << 6
_LOOK_SECONDS: Final = 0.1
_PAUSE_SECONDS: Final = 0.0005
_TRAP: Final = bytes((TRAP_BYTE,))
_EACH: Final = [bytes((one,)) for one in range(256)]

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class CodeChange:
    """What code is to be: `content` is what is written at each of `addresses`, which rise.

    `first` are the addresses of instructions that have to trap before anything else is written: those that are there
    now, jumps among them. `last` are those of instructions that are there in the end, jumps among them; in between
    their first bytes trap. Places within a jump, now or in the end, trap as they are. `moves` leads threads that stand
    at an address (the first of each row) to where they go on, `traps` are those that may trap meanwhile, or later.
    `is_whole`: instructions are changed that have no copy."""

    addresses: Array
    content: Array
    first: Array
    last: Array
    moves: Array
    traps: Array
    is_whole: bool

    @classmethod
    def of(cls, gone: Sequence[Patch], made: Sequence[Patch]) -> CodeChange:
        """Some patches are put in place of others."""
        written = [one for patch in gone for one in patch.originals()]
        written += [one for patch in made for one in patch.writes()]
        # Where several are for one address, the last one counts.
        addresses, content = _last_of_each(*_spread(written))
        rows = [_traps_of(patches) for patches in (gone, made)]
        patched = [np.sort(_words([patch.start for patch in patches])) for patches in (gone, made)]
        within = [
            np.sort(own[~_are_among(own, starts)])
            for own, starts in zip((rows[0][:, 0], rows[1][:, 0]), patched, strict=True)
        ]
        together = np.concatenate(rows)
        traps = np.stack(_last_of_each(together[:, 0], together[:, 1]), axis=1)
        starts = traps[_are_among(traps[:, 0], addresses), 0]
        # A thread in front of a patch comes to it by itself.
        moves = traps[~_are_among(traps[:, 0], patched[1])]
        first, last = (starts[~_are_among(starts, own)] for own in within)
        is_whole = any([patch.group.plan.branches for patches in (gone, made) for patch in patches])  # noqa: C419 (quicker)
        return cls(addresses, content, first, last, moves, traps, is_whole)

    def pages(self) -> list[int]:
        """The pages that are written to."""
        pages: list[int] = np.unique(self.addresses // mmap.PAGESIZE * mmap.PAGESIZE).tolist()
        return pages


class CodeWriter:
    """Writes the code of one process."""

    def __init__(self, process: ProbedProcess) -> None:
        self._process = process
        self._is_registered: bool | None = None
        self._blocking: set[Tid] = set()
        """Threads that were found to block traps for long."""
        self.n_held = 0
        """How often threads were held for it."""

    def write(self, change: CodeChange, worker: StoppedProcess) -> None:
        """Have the code be so, while threads run; `worker` is the runtime's task. What they may trap at is known to
        them. Raises TargetError."""
        if change.is_whole or not self._can_run(worker) or self._blocks_traps():
            self.write_held(change)
            return
        self._process.write_all((address, _TRAP) for address in change.first.tolist())
        worker.call("membarrier", _SYNC_CORE, 0, 0)
        if self._blocks_traps():
            self.write_held(change)
            return
        # What is restored within a jump that is no more has trapped as a part of that, and does so until the end.
        is_last = _are_among(change.addresses, change.last)
        rest = _runs(change.addresses[~is_last], change.content[~is_last])
        is_last &= (change.content != TRAP_BYTE) | ~_are_among(change.addresses, change.first)
        last = zip(change.addresses[is_last].tolist(), _bytes_of(change.content[is_last]), strict=True)
        for writes in (rest, list(last)):
            if writes:
                self._process.write_all(writes)
                worker.call("membarrier", _SYNC_CORE, 0, 0)

    def write_now(self, change: CodeChange) -> None:
        """Have the code be so; no thread runs."""
        for start, some, content in _by_pages(change.addresses, change.content):
            known = bytearray(self._process.read(start, int(some[-1]) + 1))
            np.frombuffer(known, np.uint8)[some] = content
            self._process.write(start, bytes(known))

    def write_held(self, change: CodeChange) -> None:
        """Have the code be so, with all threads held for it. Raises TargetError."""
        self.n_held += 1
        # Before anybody waits.
        moves: dict[int, int] = dict(change.moves.tolist())
        held = HeldProcess(self._process.pid)
        try:
            held.stop_all(_HOLD_SECONDS)
            self.write_now(change)
            for tid in held.threads:
                processor = processor_of(tid)
                registers = processor.get_registers(tid)
                target = moves.get(registers.pc)
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
            blocking = {tid for tid in iter_threads(self._process.pid) if self._blocks(tid)}
        except OSError:
            return False
        deadline = time.monotonic() + _LOOK_SECONDS
        while blocking and blocking.isdisjoint(self._blocking):
            if time.monotonic() > deadline:
                self._blocking = blocking
            else:
                time.sleep(_PAUSE_SECONDS)
                blocking = {tid for tid in blocking if self._blocks(tid)}
        return bool(blocking)

    def _blocks(self, tid: Tid) -> bool:
        return bool(read_signals(f"{self._process.pid}/task/{tid}", "SigBlk") & TRAP_SIGNALS)


def has_trap_pending(pid: int, tid: int) -> bool:
    """Whether a stopped thread has trapped, and has not been told."""
    return bool(read_signals(f"{pid}/task/{tid}", "SigPnd") & TRAP_SIGNALS)


def _traps_of(patches: Sequence[Patch]) -> Array:
    """A row for each address at which a thread may trap: that, and where it goes on."""
    words = array("Q", [word for patch in patches for row in patch.traps() for word in row])
    return np.frombuffer(words, np.uint64).reshape(-1, 2)


def _words(some: Sequence[int]) -> Array:
    return np.array(some, np.uint64)


def _are_among(some: Array, others: Array) -> Array:
    """Which of some words are among others, which rise."""
    if not len(others):
        return np.zeros(len(some), bool)
    places = np.minimum(np.searchsorted(others, some), len(others) - 1)
    return np.asarray(others[places] == some)


def _last_of_each(addresses: Array, values: Array) -> tuple[Array, Array]:
    """By address, the value that comes last of those that are for the same one."""
    if not np.all(addresses[1:] > addresses[:-1]):
        order = np.argsort(addresses, kind="stable")
        addresses, values = addresses[order], values[order]
        is_last = np.append(addresses[1:] != addresses[:-1], True)[: len(addresses)]
        addresses, values = addresses[is_last], values[is_last]
    return addresses, values


def _spread(written: Sequence[tuple[int, bytes]]) -> tuple[Array, Array]:
    """The address of each byte, and the byte."""
    sizes = np.array([len(data) for _, data in written], np.int64)
    ends = np.cumsum(sizes)
    within = np.arange(int(sizes.sum())) - np.repeat(ends - sizes, sizes)
    addresses = np.repeat(_words([address for address, _ in written]), sizes) + within.astype(np.uint64)
    return addresses, np.frombuffer(b"".join([data for _, data in written]), np.uint8)


def _runs(addresses: Array, content: Array) -> list[tuple[int, bytes]]:
    """Bytes that lie one behind the other, together."""
    if not len(addresses):
        return []
    starts = np.flatnonzero(np.append(True, np.diff(addresses) != 1)).tolist()
    data = content.tobytes()
    pieces = zip(addresses[starts].tolist(), starts, [*starts[1:], len(data)], strict=True)
    return [(address, data[start:end]) for address, start, end in pieces]


def _by_pages(addresses: Array, content: Array) -> Iterator[tuple[int, Array, Array]]:
    """What changes, page by page: the address of the first byte, how far behind it each is, and these."""
    pages = addresses // mmap.PAGESIZE
    starts = np.flatnonzero(np.append(True, pages[1:] != pages[:-1])[: len(pages)])
    for start, end in zip(starts.tolist(), [*starts[1:].tolist(), len(pages)], strict=True):
        first = int(addresses[start])
        yield first, (addresses[start:end] - np.uint64(first)).astype(np.int64), content[start:end]


def _bytes_of(content: Array) -> list[bytes]:
    """Each byte alone."""
    return [_EACH[one] for one in content.tolist()]
