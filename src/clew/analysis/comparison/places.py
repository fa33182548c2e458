"""Where the code of two traces lies, in numbers that mean the same for both.

Runs in the controller. A *space* is what distances are counted in: a file, of a pair of processes; of a file that was
built anew, a function, by its symbol; outside of images, a region of memory. The spaces are laid one after the other on
a line, and a *place* is a number on it. What the blocks did is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from clew.analysis.comparison.content import hash_code, number_keys
from clew.analysis.comparison.matching import Files, Processes
from clew.analysis.comparison.memory import Memory, match_memory
from clew.analysis.tables.arrays import TraceArrays, find_rows
from clew.errors import TraceDamagedError
from clew.store.columns import Array, byte_values, to_numpy

__all__ = ["OUTSIDE", "Code", "Places", "Spaces", "lay_out"]

OUTSIDE: Final = -1
"""In place of a file: code outside of images."""

_FURTHEST: Final = 1 << 62


class Code:
    """The blocks of a trace: `pair` is that of their process, `file` that of their image, or OUTSIDE."""

    COLUMNS: Final = (
        *("block_id", "process_id", "pid", "image_id", "offset", "app_pc", "size_bytes", "n_instructions", "bytes"),
        *("symbol", "symbol_offset", "function_offset", "is_recorded"),
    )

    def __init__(self, arrays: TraceArrays, of_process: Array, of_image: Array) -> None:
        arrays.load("blocks", *self.COLUMNS)
        arrays.load("edges", "edge_id", "source_block_id", "target_block_id", "kind", "callee_block_id")
        self.arrays = arrays
        self.process_row = find_rows(arrays.numbers("processes", "process_id"), arrays.block_process)
        self.pair = of_process[self.process_row]
        self.file = of_image[arrays.block_image]
        self.data, begins = byte_values(arrays.column("blocks", "bytes"))
        self.first_byte = begins[:-1]
        self.size_bytes = arrays.size_bytes.astype(np.int64)
        if (self.size_bytes != np.diff(begins)).any():
            self.refuse("blocks have other sizes than their bytes")

    def refuse(self, reason: str) -> None:
        """Raise TraceDamagedError."""
        raise TraceDamagedError(self.arrays.trace.directory, f"{reason}; see `clew verify`")

    def distances(self, column: str) -> Array:
        """A column of offsets, i64, -1 where there is none."""
        return self.arrays.numbers("blocks", column).astype(np.int64)


@dataclass(frozen=True)
class Spaces:
    """By space: `pair` of processes (-1: of all), and `file`, or OUTSIDE.

    Where `is_exact` it has the same bytes in both traces, or it is not the same code; `is_function` where distances
    are counted from a symbol. What is not `is_comparable` is memory of one trace that the other has nothing like.
    """

    pair: Array
    file: Array
    is_exact: Array
    is_function: Array
    is_comparable: Array


@dataclass(frozen=True)
class Places:
    """By block: the space it lies in, and the place of its first byte, i64."""

    space: Array
    start: Array


def lay_out(a: Code, b: Code, processes: Processes, files: Files, *, merge: bool) -> tuple[Spaces, Places, Places]:
    """Lay the code of A and B on one line; with `merge` a file is one space, whatever process ran it.

    Raises TraceDamagedError where code lies where none can.
    """
    both = (a, b)
    # One more, for OUTSIDE.
    is_anew = np.array([*(pair.is_anew for pair in files.pairs), False])
    functions = _number_functions(both, is_anew)
    regions = match_memory(*(_find_memory(code) for code in both))
    n_files, n_functions = len(files.pairs) + 1, 1 + max((int(found.max(initial=0)) for found in functions), default=0)
    keys = []
    for code, function in zip(both, functions, strict=True):
        owner = np.full(len(code.pair), -1) if merge else code.pair
        keys.append((((owner + 1) * n_files + code.file) * n_functions + function)[code.file != OUTSIDE])
    n_inside, ranks = number_keys(*keys)
    n_spaces = n_inside + len(regions.owner)
    spaces = Spaces(
        pair=np.append(np.full(n_inside, -1), regions.owner),
        file=np.full(n_spaces, OUTSIDE),
        is_exact=np.ones(n_spaces, bool),
        is_function=np.zeros(n_spaces, bool),
        is_comparable=np.append(np.ones(n_inside, bool), np.arange(len(regions.owner)) < regions.n_matched),
    )
    of_blocks, distances = [], []
    of_regions = ((regions.region_a, regions.distance_a), (regions.region_b, regions.distance_b))
    for code, function, rank, (region, distance) in zip(both, functions, ranks, of_regions, strict=True):
        is_outside = code.file == OUTSIDE
        space = np.zeros(len(is_outside), np.int64)
        space[~is_outside], space[is_outside] = rank, n_inside + region
        spaces.file[space], spaces.is_function[space] = code.file, function > 0
        if not merge:
            spaces.pair[space] = code.pair
        far = np.where(function > 0, code.distances("symbol_offset"), code.distances("offset"))
        far[is_outside] = distance
        of_blocks.append(space)
        distances.append(far)
    spaces.is_exact[:n_inside] = ~is_anew[spaces.file[:n_inside]]
    starts = _line_up(both, of_blocks, distances, n_spaces)
    return spaces, Places(of_blocks[0], starts[0]), Places(of_blocks[1], starts[1])


def _find_memory(code: Code) -> Memory:
    rows = np.flatnonzero(code.file == OUTSIDE)
    size = code.size_bytes[rows]
    content = hash_code(code.data, code.first_byte[rows], size)
    return Memory(code.pair[rows], code.arrays.app_pc[rows], size, content)


def _number_functions(both: Sequence[Code], is_anew: Array) -> list[Array]:
    """By block the number of the function, above 0, that distances are counted from; 0 where that is the file.

    Of several functions of one file with one name the first goes with the first, in the order of their offsets.
    """
    numbers = [np.zeros(len(code.pair), np.int64) for code in both]
    if not is_anew.any():
        return numbers
    words: dict[str, int] = {}
    found = []
    for code in both:
        symbols = code.arrays.column("blocks", "symbol").combine_chunks()
        known = [words.setdefault(word, len(words)) for word in symbols.dictionary.to_pylist()]
        word = np.array([*known, -1], np.int64)[to_numpy(symbols.indices)]
        rows = np.flatnonzero(is_anew[code.file] & (word >= 0))
        start = code.distances("offset")[rows] - code.distances("symbol_offset")[rows]
        found.append((rows, word[rows], _rank(code.file[rows], word[rows], start)))
    n_ranks = 1 + max((int(rank.max(initial=0)) for _, _, rank in found), default=0)
    for number, (rows, word, rank) in zip(numbers, found, strict=True):
        number[rows] = word * n_ranks + rank + 1
    return numbers


def _rank(file: Array, word: Array, start: Array) -> Array:
    """Of each row the how many-th of the different `start`s it is among those with its `file` and `word`."""
    order = np.lexsort((start, word, file))
    begins, rises = np.zeros(len(order), bool), np.zeros(len(order), bool)
    for column in (file, word):
        begins[1:] |= column[order][1:] != column[order][:-1]
    begins[:1] = True
    rises[1:] = start[order][1:] != start[order][:-1]
    n_before = np.cumsum(rises | begins)
    rank = np.zeros(len(order), np.int64)
    rank[order] = n_before - np.maximum.accumulate(np.where(begins, n_before, 0))
    return rank


def _line_up(both: Sequence[Code], spaces: Sequence[Array], distances: Sequence[Array], n_spaces: int) -> list[Array]:
    """The place of each block."""
    extent = np.zeros(n_spaces, np.int64)
    for code, space, distance in zip(both, spaces, distances, strict=True):
        if ((distance < 0) | (distance > _FURTHEST)).any():
            code.refuse("blocks lie outside of their images")
        # One more, so that what ends here is not where the next one begins.
        np.maximum.at(extent, space, distance + code.size_bytes + 1)
    if float(extent.sum(dtype=np.float64)) > _FURTHEST:
        both[0].refuse("blocks lie too far from one another")
    begin = np.cumsum(extent) - extent
    return [begin[space] + distance for space, distance in zip(spaces, distances, strict=True)]
