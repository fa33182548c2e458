"""From where on the order of two threads is compared.

Runs in the controller. What runs before a program's own code hangs on its environment and on where it was loaded, so
that two runs part there, and nobody asks why: unless told otherwise it is begun at `main`, or where the program's own
file is entered.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Final

import numpy as np

from clew.analysis.comparison.pieces import Pieces
from clew.analysis.comparison.places import Code
from clew.analysis.order.thread_path import ThreadPath
from clew.binary.demangle import demangle
from clew.errors import UsageError
from clew.store.columns import Array, to_numpy

__all__ = ["BEGINNING", "FoundStart", "Start", "find_images", "find_own_start", "find_start", "parse_start"]

BEGINNING: Final = "0"
"""The first instruction of each thread."""

_FORM: Final = re.compile(r"(?:(?P<image>[^!]+)!)?(?P<symbol>.+?)(?::(?P<n>[0-9]+))?", re.DOTALL)
_BY_OFFSET: Final = re.compile(r"(?P<image>.+)\+0x(?P<offset>[0-9a-fA-F]+)(?::(?P<n>[0-9]+))?", re.DOTALL)


@dataclass(frozen=True)
class Start:
    """The execution number `n`, counted from 0, of a place: a symbol, in images like `image` if that is told, or an
    offset in them."""

    image: str | None
    symbol: str | None
    offset: int | None
    n: int


@dataclass(frozen=True)
class FoundStart:
    """Where a path is begun: at the execution with this number, behind so many pieces of its block."""

    execution: int
    skipped: int


def parse_start(text: str) -> Start:
    """Parse `[IMAGE!]SYMBOL[:N]` or `IMAGE+0xOFFSET[:N]`; of executions the first one is N = 1. Raises UsageError."""
    found = _BY_OFFSET.fullmatch(text) or _FORM.fullmatch(text)
    if found is None or found["n"] == "0":
        raise UsageError(
            f"--from {text}: say SYMBOL, IMAGE!SYMBOL or IMAGE+0xOFFSET, and :N for execution N, from 1 on"
        )
    parts = found.groupdict()
    offset = parts.get("offset")
    n = int(parts["n"] or 1) - 1
    return Start(parts["image"], parts.get("symbol"), None if offset is None else int(offset, 16), n)


def find_start(start: Start, path: ThreadPath, code: Code, pieces: Pieces) -> FoundStart | None:
    """Where a path is at `start`; None if it does not come there so often. Of several such places it is the one that
    was executed first."""
    own = np.flatnonzero(code.arrays.block_process == path.process_id)
    if start.image is not None:
        own = own[find_images(code, start.image)[code.arrays.block_image[own]]]
    if start.symbol is not None:
        own = own[_has_symbol(code, start.symbol)[own] & (code.distances("symbol_offset")[own] == 0)]
        skipped = np.zeros(len(own), np.int64)
    else:
        assert start.offset is not None
        rows = np.flatnonzero(np.isin(pieces.block, own))
        offset = code.distances("offset")[pieces.block[rows]] + pieces.into[rows]
        rows = rows[offset == min(start.offset, (1 << 63) - 1)]
        own = pieces.block[rows]
        skipped = rows - pieces.first[own]
    found = []
    for block_id, n_skipped in zip(code.arrays.block_id[own].tolist(), skipped.tolist(), strict=True):
        place = path.find_execution(block_id, start.n)
        if place is not None:
            found.append((place.execution, n_skipped))
    return FoundStart(*min(found)) if found else None


def find_own_start(path: ThreadPath, code: Code, executable: str) -> FoundStart | None:
    """Where a path enters code of the file `executable`; None where it does not."""
    arrays = code.arrays
    rows = np.flatnonzero((arrays.block_process == path.process_id) & _is_path(code, executable)[arrays.block_image])
    if not len(rows):
        return None
    is_own = np.isin(path.code.block_id, arrays.block_id[rows])
    for piece in path.iter_pieces():
        hits = is_own[piece.indices]
        at = int(hits.argmax())
        if hits[at]:
            return FoundStart(piece.place.execution + at, 0)
    return None


def find_images(code: Code, pattern: str) -> Array:
    """By row of the images, and false at the end: whether `pattern` is of its path or of the last part of that."""
    paths = code.arrays.column("images", "path").to_pylist()
    return np.array([*(fnmatchcase(path, pattern) or fnmatchcase(_name(path), pattern) for path in paths), False])


def _is_path(code: Code, wanted: str) -> Array:
    return np.array([*(path == wanted for path in code.arrays.column("images", "path").to_pylist()), False])


def _has_symbol(code: Code, wanted: str) -> Array:
    """By row of the blocks whether that is its symbol, as the file or as its source has it."""
    symbols: Any = code.arrays.column("blocks", "symbol").combine_chunks()
    names = symbols.dictionary.to_pylist()
    is_wanted = np.array([*(name is not None and wanted in (name, demangle(name)) for name in names), False])
    found: Array = is_wanted[to_numpy(symbols.indices)]
    return found


def _name(path: str) -> str:
    return path.rsplit("/", 1)[-1]
