"""A thread's tags out of its words and numbers (mode region).

Runs in the controller, after the target ended. Pure: knows words, and nothing of blocks or tables. What comes from the
target is untrusted: where a word can't be, the tags end.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.dataclass import dataclass
from clew.protocol._generated import (
    REGION_KIND_SHIFT,
    RegionWord,
)
from clew.protocol.words import TAG_WORDS

__all__ = ["NOT_THERE", "TAG_KINDS", "TagDecoder", "Tags"]

Array = npt.NDArray[Any]

NOT_THERE = -1
"""A block, an address, a number that a tag does not have."""

TAG_KINDS = tuple(RegionWord[word.upper()] for word in TAG_WORDS)
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
_MOST_WORDS_WAITING = 1 << 20
"""The runtime hands over numbers with their words: where so many words have none, there are none."""
_MAX_NUMBER = np.uint64(np.iinfo(np.int64).max)


def _table(*kinds: RegionWord) -> Array:
    """By kind of word whether it is one of these."""
    found = np.zeros(1 << (32 - REGION_KIND_SHIFT), bool)
    found[list(kinds)] = True
    return found


_N_NUMBERS_OF = np.full(1 << (32 - REGION_KIND_SHIFT), -1, np.int64)
_N_NUMBERS_OF[list(_N_NUMBERS)] = list(_N_NUMBERS.values())
_IS_TAG = _table(*TAG_KINDS)
_HAS_BLOCK = _table(RegionWord.EXECUTED, RegionWord.BECAME_BUSY, RegionWord.COUNTS)
_IS_OF_BUSY = _table(RegionWord.BECAME_BUSY, RegionWord.COUNTS)
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


class TagDecoder:
    """Turns a thread's words and numbers into its tags, as they come.

    `start_pc` is where blocks begin, u64, by their numbers.
    """

    def __init__(self, start_pc: Array) -> None:
        self._start_pc = start_pc
        self._words, self._numbers = np.zeros(0, np.uint32), np.zeros(0, np.uint64)
        self._busy: dict[int, int] = {}
        self._n_tags = 0
        self._is_over = False

    @property
    def n_tags(self) -> int:
        """How many tags there were so far."""
        return self._n_tags

    @property
    def busy(self) -> dict[int, int]:
        """The blocks that the thread is busy with and whose counts it has not told, in the order in which that began.

        With each how often it had been executed before; none where words are missing or make no sense.
        """
        return {} if self._is_over else self._busy

    def take(self, words: Array, numbers: Array) -> Iterator[Tags]:
        """The tags that are whole with some more words and numbers, some at a time."""
        if not self._is_over:
            self._words = np.concatenate([self._words, words])
            self._numbers = np.concatenate([self._numbers, numbers])
            yield from self._decode(is_last=False)

    def finish(self, *, is_end: bool) -> Iterator[Tags]:
        """The tags that waited for what came behind them. `is_end`: nothing of what the thread told is missing."""
        if not self._is_over:
            yield from self._decode(is_last=True)
        self._is_over |= not is_end

    def _decode(self, *, is_last: bool) -> Iterator[Tags]:
        words, numbers = self._words, self._numbers
        first = number_at = 0
        while first < len(words):
            last = min(first + _WORDS_AT_ONCE, len(words))
            while last < len(words) and words[last] >> REGION_KIND_SHIFT == RegionWord.COUNTS_TARGET:
                last += 1
            if not is_last and last + _WORDS_AHEAD > len(words):
                break
            # One that an execution's end is told by may come later.
            seen = min(last + _WORDS_AHEAD, len(words))
            kind = (words[first:seen] >> np.uint32(REGION_KIND_SHIFT)).astype(np.uint8)
            needed = _N_NUMBERS_OF[kind]
            at = number_at + np.cumsum(needed) - needed
            is_unsound = needed < 0
            is_early = at + needed > len(numbers)
            if not is_last and is_early.any() and not is_unsound.any() and len(words) - first <= _MOST_WORDS_WAITING:
                break
            unsound = np.flatnonzero(is_unsound | is_early)
            if len(unsound):
                seen = first + int(unsound[0])
                last = min(last, seen)
            n, n_seen = last - first, seen - first
            value = (words[first:seen] & np.uint32((1 << REGION_KIND_SHIFT) - 1)).astype(np.int64)
            piece = _Words(kind[:n_seen], value, at)
            piece.note_busy(n, numbers, self._busy)
            tags = piece.decode(n, numbers, self._start_pc, self._n_tags)
            if len(tags):
                self._n_tags = int(tags.number[-1]) + 1
                yield tags
            if len(unsound):
                self._is_over = True
                break
            number_at = int(at[n - 1] + needed[n - 1])
            first = last
        self._words, self._numbers = words[first:], numbers[number_at:]


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

    def note_busy(self, n: int, numbers: Array, busy: dict[int, int]) -> None:
        """Bring `busy` (see `TagDecoder`) past the first `n` words."""
        kind = self.kind[:n]
        left = np.flatnonzero(kind == RegionWord.LEFT_BUSY)
        first = 0
        if len(left):
            busy.clear()
            first = int(left[-1]) + 1
        rows = first + np.flatnonzero(_IS_OF_BUSY[kind[first:]])
        is_new = kind[rows] == RegionWord.BECAME_BUSY
        before = np.zeros(len(rows), np.int64)
        before[is_new] = self._numbers(rows[is_new], 1, numbers)
        for block, is_one_more, executions in zip(
            self.value[rows].tolist(), is_new.tolist(), before.tolist(), strict=True
        ):
            if is_one_more:
                busy[block] = executions
            else:
                busy.pop(block, None)

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
