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
_WORDS_AT_ONCE = 1 << 20
_SLACK_BYTES = 4096


@dataclass(frozen=True)
class Tags:
    """Some tags of a thread in order, one row each, and several for one that counts several targets; all i64.

    `number` counts the thread's tags. `block` and `target` are numbers of blocks (`FragmentRecord.region_block`),
    `target_pc` is an address instead. `tsc` is a time stamp. Each is NOT_THERE where the tag has none.
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
        seen = min(last + 16, len(words))
        kind = (words[first:seen] >> np.uint32(REGION_KIND_SHIFT)).astype(np.int64)
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
        is_executed, is_target = kind == RegionWord.EXECUTED, kind == RegionWord.COUNTS_TARGET
        target, target_pc, is_nothing = self._find_targets(n, numbers, start_pc)
        is_counts = kind == RegionWord.COUNTS
        executions = np.full(n, NOT_THERE)
        executions[is_counts] = self._numbers(is_counts, 0, numbers)
        executions[is_target] = self._numbers(is_target, 1, numbers)
        target_pc[is_target] = self._numbers(is_target, 0, numbers)
        # What of a block's counts has no target that is known.
        owner = np.maximum.accumulate(np.where(is_counts, np.arange(n), -1))
        told = is_target & (owner >= 0)
        np.subtract.at(executions, owner[told], executions[told])
        has_targets = np.zeros(n, bool)
        has_targets[owner[told]] = True

        is_tag = np.isin(kind, TAG_KINDS) & ~is_nothing
        number = n_before + np.cumsum(is_tag) - 1
        stays = (is_tag & ~(has_targets & (executions == 0))) | told
        has_block = is_executed | is_counts | (kind == RegionWord.BECAME_BUSY)
        block = np.where(has_block, value, NOT_THERE)
        block[told] = value[owner[told]]
        is_signal = (kind == RegionWord.SIGNAL) | (kind == RegionWord.FAULT)
        is_call = kind == RegionWord.SYSCALL
        told_value = np.where(is_signal, value, NOT_THERE)
        told_value[is_call] = self._numbers(is_call, 1, numbers)
        tsc = np.full(n, NOT_THERE)
        is_timed = is_signal | is_call | (kind == RegionWord.BECAME_BUSY) | (kind == RegionWord.LEFT_BUSY)
        tsc[is_timed] = self._numbers(is_timed, 0, numbers)
        rows = np.flatnonzero(stays)
        return Tags(
            number=number[rows],
            kind=np.where(told, int(RegionWord.COUNTS), kind)[rows],
            block=block[rows],
            target=target[rows],
            target_pc=target_pc[rows],
            executions=executions[rows],
            value=told_value[rows],
            tsc=tsc[rows],
        )

    def _numbers(self, rows: Array, index: int, numbers: Array) -> Array:
        """The `index`-th numbers of some words, made to fit."""
        found = numbers[self.at[: len(rows)][rows] + index]
        fitting: Array = np.minimum(found, np.uint64(np.iinfo(np.int64).max)).astype(np.int64)
        return fitting

    def _find_targets(self, n: int, numbers: Array, start_pc: Array) -> tuple[Array, Array, Array]:
        """Of the first `n` words: where executions went, as a block and as an address; and which did nothing at all."""
        ends = np.isin(
            self.kind,
            (
                RegionWord.EXECUTED,
                RegionWord.BECAME_BUSY,
                RegionWord.STOPPED,
                RegionWord.SIGNAL,
                RegionWord.FAULT,
            ),
        )
        end_at = np.flatnonzero(ends)
        target, target_pc = np.full(n, NOT_THERE), np.full(n, NOT_THERE)
        is_nothing = np.zeros(n, bool)
        executed = np.flatnonzero(self.kind[:n] == RegionWord.EXECUTED)
        place = np.searchsorted(end_at, executed, "right")
        executed, place = executed[place < len(end_at)], place[place < len(end_at)]
        end = end_at[place]
        end_kind = self.kind[end]
        enters = np.isin(end_kind, (RegionWord.EXECUTED, RegionWord.BECAME_BUSY))
        target[executed[enters]] = self.value[end[enters]]
        waits = np.isin(end_kind, (RegionWord.SIGNAL, RegionWord.FAULT))
        limit = np.uint64(np.iinfo(np.int64).max)
        target_pc[executed[waits]] = np.minimum(numbers[self.at[end[waits]] + 1], limit).astype(np.int64)
        stops = np.flatnonzero(end_kind == RegionWord.STOPPED)
        block = self.value[executed[stops]]
        known = block < len(start_pc)
        stops, block = stops[known], block[known]
        is_nothing[executed[stops[numbers[self.at[end[stops]]] == start_pc[block]]]] = True
        return target, target_pc, is_nothing
