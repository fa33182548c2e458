"""Search in the code that a process ran: by address, by bytes, by the text of instructions.

Runs in the controller. Patterns come from whoever asks, so that none may be slow: there are no regular expressions,
every pattern has a greatest length, and what takes long stops and says so. Text is searched in the blocks that were
executed most first.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Final

import numpy as np

from clew.analysis.graph.graph import ProcessGraph
from clew.binary.disassembly import disassemble
from clew.errors import UsageError
from clew.store.columns import Array, byte_values

__all__ = ["CodeSearch", "Found", "Hit", "parse_bytes", "split_text"]

MAX_BYTES: Final = 64
MAX_TEXT: Final = 200
MAX_WORDS: Final = 12

_WINDOW: Final = 1 << 22
"""Bytes of code that are looked at in one step of a search by bytes."""

_BYTES_AT_ONCE: Final = 1 << 14
"""Bytes of code that are disassembled in one step of a search by text."""

_MAX_KEPT_CHARACTERS: Final = 64_000_000
"""Text of instructions that is kept for the next search; what is beyond it is disassembled anew."""


@dataclass(frozen=True)
class Hit:
    """A place: `block`, an index, and the address in it; `text`, the instruction or the bytes found there.

    `count` is how often the block has what was searched for.
    """

    block: int
    address: int
    text: str
    count: int


@dataclass(frozen=True)
class Found:
    """What a search found: blocks that were executed most first. `stopped` says why there may be more: `limit` when
    there were enough, `time` when it took too long; None when this is all."""

    hits: list[Hit]
    stopped: str | None


class CodeSearch:
    """Searches in the code of `graph`. Reads all of its bytes; raises TraceDamagedError."""

    def __init__(self, graph: ProcessGraph) -> None:
        self._graph = graph
        data, begins = byte_values(graph.arrays.column("blocks", "bytes"))
        # The column may be a part of a longer one.
        self._data = data[begins[0] : begins[-1]]
        self._first, self._last = begins[:-1] - begins[0], begins[1:] - begins[0]
        self.executions = graph.count().blocks
        self._order = np.argsort(-self.executions, kind="stable")
        self._lock = threading.Lock()
        sizes = np.cumsum((self._last - self._first)[graph.block_row[self._order]])
        steps = np.flatnonzero(np.diff(sizes // _BYTES_AT_ONCE)) + 1
        self._steps = np.split(self._order, steps)
        self._texts: list[list[str]] = []
        self._kept_characters = 0

    def find_address(self, address: int, limit: int) -> Found:
        """Blocks that have an address in them; behind them those that have it as offset in their image."""
        graph = self._graph
        inside = self._find_inside(np.full(graph.n_blocks, address & (1 << 64) - 1, np.uint64))
        hits = [Hit(block, address, "", 1) for block in inside]
        if address < 1 << 63 and graph.images:
            bases = np.array([image["base"] for image in graph.images], np.uint64)
            image = graph.image[graph.function]
            at = bases[image] + np.uint64(address)
            as_offset = [block for block in self._find_inside(at) if image[block] >= 0]
            hits += [Hit(block, int(at[block]), "", 1) for block in as_offset if block not in inside]
        return Found(hits[:limit], "limit" if len(hits) > limit else None)

    def _find_inside(self, address: Array) -> list[int]:
        """Blocks that have each its own address in them, those executed most first."""
        start = self._graph.app_pc
        # Without signs: what is in front of the block is far behind it.
        inside = np.flatnonzero(address - start < self._graph.size_bytes.astype(np.uint64))
        found: list[int] = inside[np.argsort(-self.executions[inside], kind="stable")].tolist()
        return found

    def find_bytes(self, pattern: list[int | None], limit: int, seconds: float) -> Found:
        """Blocks that have some bytes in them, one after another; None stands for any byte.

        Ends after `seconds` with what was found by then.
        """
        rows, places, is_all = self._match(pattern, time.monotonic() + seconds)
        row, first, counts = np.unique(rows, return_index=True, return_counts=True)
        block = self._graph.index_of_row[row]
        order = np.argsort(-self.executions[block], kind="stable")
        hits = []
        for which in order[:limit].tolist():
            at = int(places[first[which]])
            offset = at - int(self._first[row[which]])
            text = self._data[at : at + len(pattern)].tobytes().hex(" ")
            address = int(self._graph.app_pc[block[which]]) + offset
            hits.append(Hit(int(block[which]), address, text, int(counts[which])))
        return Found(hits, "time" if not is_all else "limit" if len(row) > limit else None)

    def _match(self, pattern: list[int | None], deadline: float) -> tuple[Array, Array, bool]:
        """Rows of blocks and places in the data where a pattern is, by place; and whether these are all."""
        known = [(offset, byte) for offset, byte in enumerate(pattern) if byte is not None]
        frequency = np.bincount(self._data[:_WINDOW], minlength=256)
        # The rarest byte first: few places are left after it.
        known.sort(key=lambda one: int(frequency[one[1]]))
        n_places = max(len(self._data) - len(pattern) + 1, 0)
        found: list[Array] = [np.zeros(0, np.int64)]
        is_all = True
        for window in range(0, n_places, _WINDOW):
            rarest, byte = known[0]
            last = min(window + _WINDOW, n_places)
            place = window + np.flatnonzero(self._data[window + rarest : last + rarest] == byte)
            for offset, byte in known[1:]:
                is_all = time.monotonic() < deadline
                if not is_all or not len(place):
                    break
                place = place[self._data[place + offset] == byte]
            if not is_all:
                break
            found.append(place)
        places = np.concatenate(found)
        row = np.searchsorted(self._last, places, "right")
        inside = places + len(pattern) <= self._last[row]
        return row[inside], places[inside], is_all

    def find_text(self, words: list[str], limit: int, seconds: float) -> Found:
        """Blocks with an instruction that has all words in its text, in this order, each where a word of it begins.

        Ends after `seconds`, or when there are `limit` blocks.
        """
        deadline = time.monotonic() + seconds
        longest = max(words, key=len)
        hits: list[Hit] = []
        for step, blocks in enumerate(self._steps):
            if time.monotonic() > deadline:
                return Found(hits, "time")
            for block, text in zip(blocks.tolist(), self._read_texts(step, blocks), strict=True):
                matching = [line for line in text.split("\n") if _has_words(line, words)] if longest in text else []
                if matching:
                    address, _, instruction = matching[0].partition(" ")
                    hits.append(Hit(block, int(address, 16), instruction, len(matching)))
                    if len(hits) > limit:
                        return Found(hits[:limit], "limit")
        return Found(hits, None)

    def _read_texts(self, step: int, blocks: Array) -> list[str]:
        """Instructions of the blocks of a step; a line is an address and a text."""
        with self._lock:
            if step < len(self._texts):
                return self._texts[step]
            texts = [self._disassemble(block) for block in blocks.tolist()]
            if len(self._texts) == step and self._kept_characters < _MAX_KEPT_CHARACTERS:
                self._texts.append(texts)
                self._kept_characters += sum(map(len, texts))
            return texts

    def _disassemble(self, block: int) -> str:
        row = int(self._graph.block_row[block])
        code = self._data[int(self._first[row]) : int(self._last[row])].tobytes()
        instructions = disassemble(code, int(self._graph.app_pc[block]), self._graph.architecture)
        return "\n".join(f"{one.address:x} {_plain(one.text)}" for one in instructions)


def parse_bytes(text: str) -> list[int | None]:
    """Bytes written as `48 8b ?? 05`, with or without spaces between. Raises UsageError for anything else."""
    digits = "".join(text.split())
    if len(digits) > 2 * MAX_BYTES:
        raise UsageError(f"bytes: at most {MAX_BYTES} of them")
    pairs = [digits[at : at + 2] for at in range(0, len(digits), 2)]
    hexadecimal = frozenset("0123456789abcdefABCDEF")
    if not pairs or any(pair != "??" and not (len(pair) == 2 and hexadecimal.issuperset(pair)) for pair in pairs):
        raise UsageError(f"bytes: {text[:40]!r} is not like 48 8b ?? 05")
    pattern = [None if pair == "??" else int(pair, 16) for pair in pairs]
    if all(byte is None for byte in pattern):
        raise UsageError("bytes: at least one of them has to be known")
    return pattern


def split_text(text: str) -> list[str]:
    """The words of which an instruction has to have all. Raises UsageError where there are none, or too many."""
    words = _plain(text[: MAX_TEXT + 1].lower()).replace(",", " ").split()
    if not words or len(words) > MAX_WORDS or len(text) > MAX_TEXT:
        raise UsageError(f"text: from 1 to {MAX_WORDS} words, {MAX_TEXT} characters at most")
    return words


def _plain(text: str) -> str:
    """The text of an instruction without the spaces within its operands."""
    for sign in "+-*":
        text = text.replace(f" {sign}", sign).replace(f"{sign} ", sign)
    return text


def _has_words(line: str, words: list[str]) -> bool:
    """Whether a line has `words` in this order, none within a word of it; its address, which comes first, is none."""
    at = line.find(" ")
    for word in words:
        at = line.find(word, at)
        while at >= 0 and word[0].isalnum() and line[at - 1].isalnum():
            at = line.find(word, at + 1)
        if at < 0:
            return False
        at += len(word)
    return True
