"""A thread's tags out of its words and numbers (mode region).

Runs in the controller, after the target ended. Pure: knows words, and nothing of blocks or tables. What comes from the
target is untrusted: where a word can't be, the tags end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.protocol._generated import (
    REGION_BUFFER_BYTES,
    REGION_KIND_SHIFT,
    REGION_NUMBERS_CELL,
    REGION_NUMBERS_LEFT_CELL,
    REGION_NUMBERS_OFFSET,
    REGION_WORDS_CELL,
    REGION_WORDS_LEFT_CELL,
    REGION_WORDS_OFFSET,
    RegionWord,
)
from clew.recording.assemble_records import RegionChunk

__all__ = ["NOT_THERE", "TAG_KINDS", "Tags", "iter_tags", "join_streams"]

Array = npt.NDArray[Any]

NOT_THERE = -1
"""A block, an address, a number that a tag does not have."""

TAG_KINDS = (
    RegionWord.EXECUTED,
    RegionWord.BECAME_BUSY,
    RegionWord.COUNTS,
    RegionWord.LEFT_BUSY,
    RegionWord.SIGNAL,
    RegionWord.FAULT,
    RegionWord.SYSCALL,
)
"""Words that are tags, in the order in which they are numbered here."""

_N_NUMBERS = {
    RegionWord.EXECUTED: 0,
    RegionWord.BECAME_BUSY: 2,
    RegionWord.COUNTS: 1,
    RegionWord.COUNTS_TARGET: 2,
    RegionWord.LEFT_BUSY: 1,
    RegionWord.STOPPED: 1,
    RegionWord.SIGNAL: 2,
    RegionWord.FAULT: 2,
    RegionWord.SYSCALL: 2,
    RegionWord.END: 2,
}
_WORDS_AT_ONCE = 1 << 16
"""So that what is worked out of them stays in the processor's cache."""
_WORDS_AHEAD = 1 << 12
_SLACK_BYTES = 4096
_MAX_NUMBER = np.uint64(np.iinfo(np.int64).max)


def _table(*kinds: RegionWord) -> Array:
    """By kind of word whether it is one of these."""
    found = np.zeros(1 << (32 - REGION_KIND_SHIFT), bool)
    found[list(kinds)] = True
    return found


_IS_TAG = _table(*TAG_KINDS)
_HAS_BLOCK = _table(RegionWord.EXECUTED, RegionWord.BECAME_BUSY, RegionWord.COUNTS)
_IS_SIGNAL = _table(RegionWord.SIGNAL, RegionWord.FAULT)
_HAPPENS = _table(RegionWord.BECAME_BUSY, RegionWord.LEFT_BUSY, RegionWord.SIGNAL, RegionWord.FAULT, RegionWord.SYSCALL)
_ENDS_EXECUTION = _IS_SIGNAL | _table(RegionWord.EXECUTED, RegionWord.BECAME_BUSY, RegionWord.STOPPED)
_TAG_OF_WORD = np.zeros(1 << (32 - REGION_KIND_SHIFT), np.int32)
_TAG_OF_WORD[list(TAG_KINDS)] = np.arange(len(TAG_KINDS))
_TAG_OF_WORD[RegionWord.COUNTS_TARGET] = TAG_KINDS.index(RegionWord.COUNTS)


@dataclass(frozen=True)
class Tags:
    """Some tags of a thread in order, one row each, and several for one that counts several targets.

    All i64 but for `kind`, an index into TAG_KINDS. `number` counts the thread's tags. `block` and `target` are
    numbers of blocks (`FragmentRecord.region_block`), `target_pc` is an address instead. `tsc` is a time stamp. Each
    is NOT_THERE where the tag has none.
    """

    number: Array
    kind: Array
    block: Array
    target: Array
    target_pc: Array
    executions: Array
    value: Array
    tsc: Array

    def __len__(self) -> int:
        return len(self.number)


def join_streams(chunks: Sequence[RegionChunk], window: bytes) -> tuple[Array, Array]:
    """A thread's words (u32) and numbers (u64): its chunks, in order, and the first bytes of its counters, `window`.

    These hold what has not left the buffers. What follows a gap is left out.
    """
    cells = np.frombuffer(window, np.uint64, 8).tolist()
    places = (
        (REGION_WORDS_CELL, REGION_WORDS_LEFT_CELL, REGION_WORDS_OFFSET, 4),
        (REGION_NUMBERS_CELL, REGION_NUMBERS_LEFT_CELL, REGION_NUMBERS_OFFSET, 8),
    )
    streams = []
    for stream, (cell, left_cell, offset, size) in enumerate(places):
        parts, end = [], 0
        for chunk in chunks:
            if chunk.stream == stream and chunk.start == end:
                parts.append(chunk.data)
                end += len(chunk.data)
        waiting = (cells[cell] + REGION_BUFFER_BYTES) % (1 << 64)
        if cells[left_cell] == end and waiting <= REGION_BUFFER_BYTES + _SLACK_BYTES:
            parts.append(window[offset : offset + waiting])
        data = b"".join(parts)
        streams.append(np.frombuffer(data[: len(data) // size * size], f"<u{size}"))
    return streams[0], streams[1]


def iter_tags(words: Array, numbers: Array, start_pc: Array) -> Iterator[Tags]:
    """The tags that a thread's words and numbers tell, in order, some at a time.

    `start_pc` is where blocks begin, u64, by their numbers.
    """
    n_numbers = np.full(1 << (32 - REGION_KIND_SHIFT), -1, np.int64)
    for word, n_of_word in _N_NUMBERS.items():
        n_numbers[word] = n_of_word
    first = number_at = n_tags = 0
    while first < len(words):
        last = min(first + _WORDS_AT_ONCE, len(words))
        while last < len(words) and words[last] >> REGION_KIND_SHIFT == RegionWord.COUNTS_TARGET:
            last += 1
        # One that an execution's end is told by may come later.
        seen = min(last + _WORDS_AHEAD, len(words))
        kind = (words[first:seen] >> np.uint32(REGION_KIND_SHIFT)).astype(np.uint8)
        needed = n_numbers[kind]
        at = number_at + np.cumsum(needed) - needed
        unsound = np.flatnonzero((needed < 0) | (at + needed > len(numbers)))
        if len(unsound):
            seen = first + int(unsound[0])
            last = min(last, seen)
        n, n_seen = last - first, seen - first
        piece = _Words(
            kind[:n_seen], (words[first:seen] & np.uint32((1 << REGION_KIND_SHIFT) - 1)).astype(np.int64), at
        )
        tags = piece.decode(n, numbers, start_pc, n_tags)
        yield tags
        if len(tags):
            n_tags = int(tags.number[-1]) + 1
        if n == 0 or len(unsound):
            return
        number_at = int(at[n - 1] + needed[n - 1])
        first = last


@dataclass(frozen=True)
class _Words:
    """Words taken apart: what each is, its value, and where its numbers are."""

    kind: Array
    value: Array
    at: Array

    def decode(self, n: int, numbers: Array, start_pc: Array, n_before: int) -> Tags:
        """The tags of the first `n` words; `n_before` came before."""
        kind, value = self.kind[:n], self.value[:n]
        target, target_pc, is_nothing = self._find_targets(n, numbers, start_pc)
        executions, told_value, tsc = (np.full(n, NOT_THERE) for _ in range(3))
        stays = _IS_TAG[kind]
        stays[is_nothing] = False
        number = n_before - 1 + np.cumsum(stays)
        block = np.where(_HAS_BLOCK[kind], value, NOT_THERE)

        counts, told = np.flatnonzero(kind == RegionWord.COUNTS), np.flatnonzero(kind == RegionWord.COUNTS_TARGET)
        executions[counts] = self._numbers(counts, 0, numbers)
        if len(counts) and len(told):
            owner = np.searchsorted(counts, told) - 1
            told, owner = told[owner >= 0], counts[owner[owner >= 0]]
            executions[told] = self._numbers(told, 1, numbers)
            target_pc[told] = self._numbers(told, 0, numbers)
            block[told] = value[owner]
            # What of a block's counts has no target that is known has a row if there is something, or nothing else.
            np.subtract.at(executions, owner, executions[told])
            stays[owner[executions[owner] == 0]] = False
            stays[told] = True

        happened = np.flatnonzero(_HAPPENS[kind])
        tsc[happened] = self._numbers(happened, 0, numbers)
        signals, calls = np.flatnonzero(_IS_SIGNAL[kind]), np.flatnonzero(kind == RegionWord.SYSCALL)
        told_value[signals] = value[signals]
        told_value[calls] = self._numbers(calls, 1, numbers)
        columns = (number, _TAG_OF_WORD[kind], block, target, target_pc, executions, told_value, tsc)
        return Tags(*(column[stays] for column in columns))

    def _numbers(self, rows: Array, index: int, numbers: Array) -> Array:
        """The `index`-th numbers of some words, made to fit."""
        found = numbers[self.at[rows] + index]
        fitting: Array = np.minimum(found, _MAX_NUMBER).astype(np.int64)
        return fitting

    def _find_targets(self, n: int, numbers: Array, start_pc: Array) -> tuple[Array, Array, Array]:
        """Of the first `n` words: where executions went, as a block and as an address; which did nothing."""
        ends = _ENDS_EXECUTION[self.kind]
        end_at = np.flatnonzero(ends)
        target, target_pc = np.full(n, NOT_THERE), np.full(n, NOT_THERE)
        executed = np.flatnonzero(self.kind[:n] == RegionWord.EXECUTED)
        # The first end behind each: so many come up to it, itself included.
        place = np.cumsum(ends)[executed]
        has_end = place < len(end_at)
        executed, end = executed[has_end], end_at[place[has_end]]
        end_kind = self.kind[end]
        enters = _HAS_BLOCK[end_kind]
        target[executed[enters]] = self.value[end[enters]]
        if enters.all():
            return target, target_pc, executed[:0]
        waits = _IS_SIGNAL[end_kind]
        target_pc[executed[waits]] = self._numbers(end[waits], 1, numbers)
        stops = np.flatnonzero(end_kind == RegionWord.STOPPED)
        stops = stops[self.value[executed[stops]] < len(start_pc)]
        stopped = executed[stops]
        stayed = numbers[self.at[end[stops]]] == start_pc[self.value[stopped]]
        return target, target_pc, stopped[stayed]
