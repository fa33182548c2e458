"""The rows of a process: its blocks and their executions, as they come, and what each thread's graph is made of.

Runs in the controller. Executions are never all in memory: a run of some thousand blocks of one thread at a time.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING, Final

import numpy as np

from clew.export.este.code import NO_BLOCK, NO_ROUTINE, EsteBlock
from clew.export.este.graph import ThreadGraph
from clew.store.columns import Array

if TYPE_CHECKING:
    from clew.export.este.code import EsteCode
    from clew.export.este.order import EsteThread, Run
    from clew.export.este.routines import Routines

__all__ = ["BLOCK_HEADER", "TRACE_HEADER", "BlockRows", "TraceRows"]

BLOCK_HEADER: Final = b"idx,addr,size,bytes,image_idx,section_idx\n"
TRACE_HEADER: Final = b"bb_idx,os_tid,pin_tid,rtn_called_idx\n"
OUTSIDE: Final = -1


class BlockRows:
    """The blocks that are told of, numbered in the order in which `number` comes to them; their rows go to `file`.

    A block is known by its first address. `changed` are addresses at which other code ran later.
    """

    def __init__(self, code: EsteCode, file: IO[bytes]) -> None:
        self._code = code
        self._file = file
        n_places = int(code.place.max(initial=-1)) + 1
        self._idx: Array = np.full(n_places, -1, np.int64)
        """By place."""
        self._first: Array = np.full(n_places, NO_BLOCK, np.int64)
        """By place the block that was there first."""
        self._blocks: list[int] = []
        self._compared: set[int] = set()
        self.changed: list[int] = []
        file.write(BLOCK_HEADER)

    def __len__(self) -> int:
        return len(self._blocks)

    def number(self, blocks: Array) -> Array:
        """The numbers (i64) of blocks (indices) that are told of, in the order in which they were executed."""
        places = self._code.place[blocks]
        is_new = np.flatnonzero(self._idx[places] < 0)
        if len(is_new):
            _, first = np.unique(places[is_new], return_index=True)
            for at in np.sort(first).tolist():
                self._add(int(blocks[is_new[at]]))
        others = blocks[self._first[places] != blocks]
        if len(others):
            for block in np.unique(others).tolist():
                self._compare(block)
        found: Array = self._idx[places]
        return found

    def row(self, idx: int) -> EsteBlock:
        """Block number `idx`."""
        return self._code.block(self._blocks[idx])

    def _add(self, block: int) -> None:
        place, idx = int(self._code.place[block]), len(self._blocks)
        self._idx[place], self._first[place] = idx, block
        self._blocks.append(block)
        address, size, content, image, section = self._code.block(block)
        self._file.write(f"{idx},{address},{size},{content.hex().upper()},{image},{section}\n".encode())

    def _compare(self, block: int) -> None:
        if block not in self._compared:
            self._compared.add(block)
            if self._code.content(block) != self._code.content(int(self._first[self._code.place[block]])):
                self.changed.append(int(self._code.pc[block]))


class TraceRows:
    """The executions of a process: their rows go to `file`, and are counted in a graph for each thread, `graphs`.

    `n_rows` are there. `n_ambiguous` calls were cut off by a signal or a fault in front of the routine, and it is not
    known which one was meant.
    """

    def __init__(self, code: EsteCode, blocks: BlockRows, routines: Routines, file: IO[bytes]) -> None:
        self._code = code
        self._blocks = blocks
        self._routines = routines
        self._file = file
        self._called: dict[int, int | None] = {}
        self._texts: dict[int, _RowTexts] = {}
        self._is_inside: dict[int, bool] = {}
        self.graphs: dict[int, ThreadGraph] = {}
        self.n_rows = 0
        self.n_ambiguous = 0
        file.write(TRACE_HEADER)

    def add(self, run: Run) -> None:
        """Go on by a run."""
        code, pin_tid = self._code, run.thread.pin_tid
        if run.is_after_loss:
            self.break_off(run.thread)
        is_inside = code.is_white[run.blocks]
        was_inside = np.append(self._is_inside.get(pin_tid, False), is_inside[:-1])
        self._is_inside[pin_tid] = bool(is_inside[-1])
        kept = np.flatnonzero(is_inside | was_inside)
        if not len(kept):
            return
        idx = np.full(len(kept), OUTSIDE, np.int64)
        routine = np.full(len(kept), NO_ROUTINE, np.int64)
        inside = is_inside[kept]
        executed = run.blocks[kept[inside]]
        idx[inside] = self._blocks.number(executed)
        routine[inside] = self._find_routines(run, kept[inside])
        self._write(run.thread, idx, routine)

    def break_off(self, thread: EsteThread) -> None:
        """Note that what a thread executed next is not known: it left, and no link leads over that."""
        if self._is_inside.get(thread.pin_tid):
            self._is_inside[thread.pin_tid] = False
            self._write(thread, np.array([OUTSIDE]), np.array([NO_ROUTINE]))
        if thread.pin_tid in self.graphs:
            self.graphs[thread.pin_tid].break_off()

    def _find_routines(self, run: Run, chosen: Array) -> Array:
        """The routines (i64) that some blocks of a run, by their numbers in it, called."""
        blocks, behind = run.blocks[chosen], np.append(run.blocks[1:], run.next)[chosen]
        found = np.full(len(blocks), NO_ROUTINE, np.int64)
        calls = np.flatnonzero(self._code.is_direct[blocks] | self._code.is_indirect[blocks])
        if not len(calls):
            return found
        # What came behind is asked for indirect branches only.
        following = np.where(self._code.is_indirect[blocks[calls]], behind[calls], NO_BLOCK)
        keys = blocks[calls] * (len(self._code.pc) + 1) + following + 1
        known, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
        routines = np.full(len(known), NO_ROUTINE, np.int64)
        unclear: list[int] = []
        # Routines are numbered in the order of their first calls.
        for at in np.argsort(first).tolist():
            key = int(known[at])
            if key not in self._called:
                self._called[key] = self._call(int(blocks[calls[first[at]]]), int(following[first[at]]))
            called = self._called[key]
            if called is None:
                unclear += np.flatnonzero(inverse == at).tolist()
            else:
                routines[at] = called
        of_calls = routines[inverse]
        for at in sorted(unclear):
            of_calls[at] = self._find_interrupted(run, int(chosen[calls[at]]))
        found[calls] = of_calls
        return found

    def _find_interrupted(self, run: Run, number: int) -> int:
        """The routine that block `number` of a run called, behind which a signal or a fault came."""
        address = run.find_interrupted(number + 1)
        block = NO_BLOCK if address is None else self._code.find_block(address)
        self.n_ambiguous += block == NO_BLOCK
        return self._routines.find(block)

    def _call(self, block: int, following: int) -> int | None:
        called = self._code.find_called(block, following)
        return None if called is None else self._routines.find(called)

    def _write(self, thread: EsteThread, idx: Array, routine: Array) -> None:
        self.n_rows += len(idx)
        if thread.pin_tid not in self._texts:
            self._texts[thread.pin_tid] = _RowTexts(thread)
            self.graphs[thread.pin_tid] = ThreadGraph()
        texts = self._texts[thread.pin_tid]
        keys = (routine + 1 << 32) | (idx + 1)
        self._file.write(b"".join([texts[key] for key in keys.tolist()]))
        self.graphs[thread.pin_tid].add(idx, routine)


class _RowTexts(dict[int, bytes]):
    """The rows of a thread, by the numbers of routine and block in one key, each more by one. The low bits differ,
    by which dictionaries go."""

    def __init__(self, thread: EsteThread) -> None:
        super().__init__()
        self._tids = f"{thread.os_tid},{thread.pin_tid}"

    def __missing__(self, key: int) -> bytes:
        routine, block = (key >> 32) - 1, (key & 0xFFFFFFFF) - 1
        self[key] = text = f"{block},{self._tids},{routine}\n".encode()
        return text
