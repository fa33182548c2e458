"""The path of a thread as a sequence of pieces, whose numbers mean the same in two traces.

Runs in the controller. Blocks are turned into the pieces that `comparison/pieces.py` cut them into, so that it
does not matter which trace has code as one block and which as two. What is behind a loss is not read: how much is
missing there is known, but not which code.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from clew.analysis.comparison.partings import Chunk, Lookahead
from clew.analysis.comparison.pieces import Pieces
from clew.analysis.comparison.places import Code
from clew.analysis.order.thread_path import PathPiece, PathPlace, ThreadPath
from clew.analysis.tables.arrays import find_rows
from clew.store.columns import Array

__all__ = ["PiecePlace", "PieceSequence"]


@dataclass(frozen=True)
class PiecePlace:
    """Where an execution of a piece (a row of the pieces) is in a path: `execution` is the number of that of its block,
    `instruction` that of its first instruction."""

    piece: int
    execution: int
    instruction: int


@dataclass(frozen=True)
class _CodeChunk(Chunk):
    """Pieces executed one after the other, of these blocks; `kept` are indices of those that are compared, None if all
    are."""

    blocks: PathPiece
    kept: Array | None


class PieceSequence:
    """What the thread of `path` executed from execution number `start` on, without the first `skipped` pieces of that.

    `pieces` are those of the blocks of `code`. If it is given, `is_compared` says of each number of a piece whether it
    is looked at. `ahead` is the sequence of numbers, which ends in front of a loss.
    """

    def __init__(
        self,
        path: ThreadPath,
        code: Code,
        pieces: Pieces,
        start: int = 0,
        skipped: int = 0,
        is_compared: Array | None = None,
    ) -> None:
        rows = find_rows(code.arrays.block_id, path.code.block_id)
        if (rows < 0).any():
            code.refuse("paths go through blocks that there are not")
        self._path, self._pieces, self._is_compared = path, pieces, is_compared
        self._first = pieces.first[rows]
        self._count = pieces.first[rows + 1] - self._first
        self._is_cut = self._count != 1
        self._has_cuts = bool(self._is_cut.any())
        self._number_of_piece = pieces.number.astype(np.int32)
        self._number_of_block = self._number_of_piece[self._first]
        self.ahead = Lookahead(self._read(start, skipped))

    def _read(self, start: int, skipped: int) -> Iterator[Chunk]:
        is_first = True
        for blocks in self._path.iter_pieces(start):
            if blocks.is_after_loss and not is_first:
                self.ahead.is_cut = True
                return
            numbers = self._to_numbers(blocks.indices)
            kept = None
            if self._is_compared is not None or (is_first and skipped):
                is_kept = np.ones(len(numbers), bool) if self._is_compared is None else self._is_compared[numbers]
                if is_first:
                    is_kept[:skipped] = False
                if not is_kept.all():
                    kept = np.flatnonzero(is_kept)
                    numbers = numbers[kept]
            is_first = False
            yield _CodeChunk(numbers, blocks, kept)

    def _to_numbers(self, indices: Array) -> Array:
        if self._has_cuts and self._is_cut[indices].any():
            cut: Array = self._number_of_piece[self._to_pieces(indices)]
            return cut
        whole: Array = self._number_of_block[indices]
        return whole

    def _to_pieces(self, indices: Array) -> Array:
        """The pieces (rows) of blocks that were executed one after the other."""
        count = self._count[indices]
        ends = np.cumsum(count)
        into = np.arange(int(ends[-1]) if len(ends) else 0) - np.repeat(ends - count, count)
        pieces: Array = np.repeat(self._first[indices], count) + into
        return pieces

    def find(self, position: int) -> PiecePlace | None:
        """The execution of a piece near to where the sequence is at; None where there is none."""
        found = self.ahead.find(position)
        if found is None:
            return None
        chunk, at = found
        assert isinstance(chunk, _CodeChunk)
        if chunk.kept is not None:
            at = int(chunk.kept[at])
        ends = np.cumsum(self._count[chunk.blocks.indices])
        block = int(np.searchsorted(ends, at, "right"))
        pieces = self._to_pieces(chunk.blocks.indices)
        before = int(self._pieces.n_instructions[pieces[:at]].sum())
        place = chunk.blocks.place
        return PiecePlace(int(pieces[at]), place.execution + block, place.instruction + before)

    def find_pieces(self, position: int, n: int) -> list[int]:
        """The pieces (rows) executed from `position` on, at most `n`, as far as they are known."""
        found = []
        for at in range(position, position + n):
            place = self.find(at)
            if place is None:
                break
            found.append(place.piece)
        return found

    def find_place(self, position: int) -> PathPlace:
        """How much of the path lies in front of a number near to where the sequence is at."""
        place = self.find(position)
        if place is not None:
            return PathPlace(place.execution, place.instruction)
        last = self.find(position - 1)
        if last is None:
            return PathPlace(0, 0)
        return PathPlace(last.execution + 1, last.instruction + int(self._pieces.n_instructions[last.piece]))
