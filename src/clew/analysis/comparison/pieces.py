"""Blocks of two traces cut into pieces, so that what is the same code in both is the same pieces.

Runs in the controller. Where blocks are cut hangs on what was entered in the run: code that is one block in one trace
may be two in the other. So every block is cut wherever a block of either trace starts or ends on one of its
instructions. A piece ran as often as its block. Between two pieces of a block leads the straight line, an edge that the
table does not have.

Pieces are the same if they start and end at the same places and, where the space is exact, have the same bytes; so two
versions of the code at one place are told apart, whatever their numbers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from clew.analysis.comparison.content import hash_code, mix, number_keys
from clew.analysis.comparison.places import Code, Places, Spaces
from clew.binary.disassembly import instruction_starts
from clew.store.columns import Array, distinct

__all__ = ["Pieces", "cut_blocks"]


@dataclass(frozen=True)
class Pieces:
    """The pieces of a trace's blocks, in the order of the blocks and of their code.

    `number` says which it is, the same in both traces. Block i has the pieces from `first[i]` up to `first[i + 1]`.
    By piece: its `block`, how far it is `into` that (bytes), `size_bytes` and `n_instructions`; `start` is its place.
    """

    number: Array
    first: Array
    block: Array
    into: Array
    size_bytes: Array
    n_instructions: Array
    start: Array


def cut_blocks(a: Code, b: Code, spaces: Spaces, places_a: Places, places_b: Places) -> tuple[int, Pieces, Pieces]:
    """Cut the blocks of A and B at each other's borders; how many different pieces there are, and those of each."""
    both = ((a, places_a), (b, places_b))
    borders = distinct(
        np.concatenate([ends for code, places in both for ends in (places.start, places.start + code.size_bytes)])
    )
    cuts = [_cut(code, places, borders) for code, places in both]
    keys = []
    for (code, places), (block, into, size, _) in zip(both, cuts, strict=True):
        content = hash_code(code.data, code.first_byte[block] + into, size)
        content[~spaces.is_exact[places.space[block]]] = 0
        keys.append(mix(places.start[block] + into, size, content.view(np.int64)))
    n, numbers = number_keys(*keys)
    made = []
    for (code, places), (block, into, size, n_instructions), number in zip(both, cuts, numbers, strict=True):
        first = np.searchsorted(block, np.arange(len(code.size_bytes) + 1))
        made.append(Pieces(number, first, block, into, size, n_instructions, places.start[block] + into))
    return n, made[0], made[1]


def _cut(code: Code, places: Places, borders: Array) -> tuple[Array, Array, Array, Array]:
    """Of each piece its block, how far it is into that, its size in bytes, and its instructions."""
    n_blocks = len(code.size_bytes)
    inside = np.searchsorted(borders, places.start, "right")
    n_inside = np.maximum(np.searchsorted(borders, places.start + code.size_bytes) - inside, 0)
    whole = code.arrays.n_instructions
    if not n_inside.any():
        return np.arange(n_blocks), np.zeros(n_blocks, np.int64), code.size_bytes, whole
    cut_block, cut_into, before = _find_cuts(code, places, borders, inside, n_inside)
    block = np.concatenate([np.arange(n_blocks), cut_block])
    into = np.concatenate([np.zeros(n_blocks, np.int64), cut_into])
    # How many instructions of the block lie in front of the piece.
    skipped = np.concatenate([np.zeros(n_blocks, np.int64), before])
    order = np.lexsort((into, block))
    block, into, skipped = block[order], into[order], skipped[order]
    is_last = np.append(block[1:] != block[:-1], True)
    size = np.where(is_last, code.size_bytes[block], np.append(into[1:], 0)) - into
    n_instructions = np.where(is_last, whole[block], np.append(skipped[1:], 0)) - skipped
    return block, into, size, n_instructions


def _find_cuts(
    code: Code, places: Places, borders: Array, inside: Array, n_inside: Array
) -> tuple[Array, Array, Array]:
    """Where blocks are cut: the block, how far into it, and how many instructions come before.

    Block i has the `n_inside[i]` borders from `inside[i]` on. One that is not on an instruction is of code that
    overlaps it out of step, and cuts nothing.
    """
    rows = np.flatnonzero(n_inside)
    found_block: list[int] = []
    found_into: list[int] = []
    found_before: list[int] = []
    known: dict[tuple[int, bytes], dict[int, int]] = {}
    first_byte, size = code.first_byte[rows].tolist(), code.size_bytes[rows].tolist()
    starts, processes = places.start[rows].tolist(), code.arrays.block_process[rows].tolist()
    for row, process, begin, n_bytes, start, first, n in zip(
        rows.tolist(), processes, first_byte, size, starts, inside[rows].tolist(), n_inside[rows].tolist(), strict=True
    ):
        content = code.data[begin : begin + n_bytes].tobytes()
        index_at = known.get((process, content))
        if index_at is None:
            decoded = instruction_starts(content, 0, code.arrays.trace.architecture_of(process))
            index_at = known[process, content] = {at: index for index, at in enumerate(decoded)}
        for border in borders[first : first + n].tolist():
            index = index_at.get(border - start)
            if index is not None:
                found_block.append(row)
                found_into.append(border - start)
                found_before.append(index)
    return tuple(np.array(found, np.int64) for found in (found_block, found_into, found_before))  # type: ignore[return-value]
