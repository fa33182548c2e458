"""Source lines of code, from debugging information.

Runs in the controller. Debugging information may be of a hostile file: no number in it is believed, what makes no sense
gives no lines, and what takes too long gives none, either.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from clew.binary.debug_sections import DebugSections, find_debug_file
from clew.binary.dwarf_reader import find_unit_folders
from clew.binary.elf import open_elf
from clew.binary.line_headers import LineUnit, iter_line_units, read_file_names
from clew.binary.line_program import LineRows, ProgramShape, join_rows, run_programs
from clew.dataclass import dataclass, replace
from clew.errors import BinaryError

__all__ = ["LineTable", "SourceLine", "find_lines", "has_debug_information", "read_line_table"]

Array = npt.NDArray[Any]

TIMEOUT_SECONDS: Final = 60.0
_BATCH_BYTES: Final = 1 << 21
"""Line programs that are run together: in memory, what they are takes some hundred times as much for a while."""


@dataclass(frozen=True)
class SourceLine:
    """A line of a source file, 1 the first, as the compiler was given it."""

    file: str
    line: int


@dataclass(frozen=True)
class LineTable:
    """Lines of a file's code: from each image offset of `offsets` (u64, rising) on, up to the next, it is of one line.

    That is line `line` of the file `files[file]`; where `file` is -1, of none that is known.
    """

    offsets: Array
    file: Array
    line: Array
    files: list[str]

    def find(self, offsets: Array) -> Array:
        """For each of some image offsets the index of the row that tells of it; -1 where there is none."""
        found: Array = np.searchsorted(self.offsets, offsets, "right") - 1
        return found


def find_lines(
    path: Path, offsets: Sequence[int], *, timeout_seconds: float = TIMEOUT_SECONDS
) -> list[SourceLine | None]:
    """The source line of each of the image offsets `offsets` of the ELF file at `path`; None where it is not known.

    Without debugging information, or with such that can't be read, all are None.
    """
    wanted = np.array(offsets, np.uint64)
    table = read_line_table(path, wanted, wanted + np.uint64(1), timeout_seconds=timeout_seconds)
    return [
        SourceLine(table.files[int(table.file[at])], int(table.line[at])) if at >= 0 and table.file[at] >= 0 else None
        for at in table.find(wanted).tolist()
    ]


def has_debug_information(path: Path) -> bool:
    """Whether the file at `path`, or its installed debug file, says which lines its code came from."""
    return find_debug_file(path, "line") is not None


def read_line_table(path: Path, first: Array, last: Array, *, timeout_seconds: float = TIMEOUT_SECONDS) -> LineTable:
    """The lines of the code from each of the image offsets `first` up to that of `last` (u64), and of some around it.

    Empty where the ELF file at `path` has no debugging information, or such that can't be read in time.
    """
    nothing = LineTable(np.zeros(0, np.uint64), np.zeros(0, np.int64), np.zeros(0, np.int64), [])
    debug_path = find_debug_file(path, "line") if len(first) else None
    if debug_path is None:
        return nothing
    try:
        with open_elf(path) as elf:
            base = np.uint64(elf.lowest_address)
    except BinaryError:
        return nothing
    deadline = time.monotonic() + timeout_seconds
    sections = DebugSections(debug_path)
    content = sections.read("line")
    wanted = _merge_ranges(first, last, base)
    units: list[LineUnit] = []
    parts: list[LineRows] = []
    for shape, batch in _iter_batches(content):
        if time.monotonic() >= deadline:
            return nothing
        rows = _keep_wanted(run_programs([content[unit.program_at : unit.end] for unit in batch], shape), *wanted)
        parts.append(replace(rows, program=rows.program + len(units)))
        units += batch
    if not parts:
        return nothing
    rows = join_rows(parts)
    # At one address the last row counts; and where a sequence ends and another begins that of the other.
    if (rows.address[1:] < rows.address[:-1]).any() or (rows.sequence[1:] < rows.sequence[:-1]).any():
        rows = rows.select(np.lexsort((np.arange(len(rows.address)), rows.sequence, rows.address)))
    rows = rows.select(np.append(rows.address[1:] != rows.address[:-1], [True])[: len(rows.address)])
    file, files = _name_files(rows, units, content, sections)
    is_known = ~rows.is_end & (rows.line > 0) & (rows.line < 1 << 31)
    return LineTable(rows.address - base, np.where(is_known, file, -1), rows.line, files)


def _iter_batches(section: bytes) -> Iterator[tuple[ProgramShape, list[LineUnit]]]:
    """Units whose programs have one shape, as many as are run together."""
    by_shape: dict[ProgramShape, list[LineUnit]] = {}
    for unit in iter_line_units(section):
        by_shape.setdefault(unit.shape, []).append(unit)
    for shape, units in by_shape.items():
        batch: list[LineUnit] = []
        n_bytes = 0
        for unit in units:
            batch.append(unit)
            n_bytes += unit.end - unit.program_at
            if n_bytes >= _BATCH_BYTES:
                yield shape, batch
                batch, n_bytes = [], 0
        if batch:
            yield shape, batch


def _merge_ranges(first: Array, last: Array, base: np.uint64) -> tuple[Array, Array]:
    """Ranges of image offsets as ranges of addresses that rise and are apart."""
    is_range = (first < last) & (last <= ~base)
    first, last = first[is_range] + base, last[is_range] + base
    order = np.argsort(first)
    first, last = first[order], np.maximum.accumulate(last[order])
    begins = np.append([True], first[1:] > last[:-1])[: len(first)]
    return first[begins], last[np.append(begins[1:], [True])[: len(first)]]


def _keep_wanted(rows: LineRows, first: Array, last: Array) -> LineRows:
    """The rows of sequences that tell of addresses in some ranges. Sequences are numbered by where they begin then."""
    begins = np.append([True], rows.sequence[1:] != rows.sequence[:-1])[: len(rows.sequence)]
    starts = np.flatnonzero(begins)
    lowest, end = rows.address[starts], rows.address[np.append(starts[1:], len(begins))[: len(starts)] - 1]
    at = np.searchsorted(last, lowest, "right")
    # What the linker has left out is at address 0.
    is_wanted = (lowest > 0) & (lowest < end) & (at < len(first))
    is_wanted[is_wanted] = first[at[is_wanted]] < end[is_wanted]
    of_row = np.cumsum(begins) - 1
    return replace(rows, sequence=lowest[of_row]).select(is_wanted[of_row])


def _name_files(
    rows: LineRows, units: list[LineUnit], content: bytes, sections: DebugSections
) -> tuple[Array, list[str]]:
    """By row an index into the names of files, -1 where none is known; and these."""
    folders: dict[int, str] = {}
    names: dict[str, int] = {}

    def find_folder(offset: int) -> str | None:
        if not folders:
            folders.update(find_unit_folders(sections) or {-1: ""})
        return folders.get(offset)

    # Rows of one file follow one another, as a rule: of each such run only one is looked at.
    begins = np.ones(len(rows.file), bool)
    begins[1:] = (rows.file[1:] != rows.file[:-1]) | (rows.program[1:] != rows.program[:-1])
    starts = np.flatnonzero(begins)
    # A number of a file beyond these is none.
    number = np.where((rows.file[starts] >= 0) & (rows.file[starts] < 1 << 31), rows.file[starts], (1 << 31) - 1)
    pairs, which = np.unique(rows.program[starts].astype(np.int64) << 31 | number, return_inverse=True)
    index = np.full(len(pairs), -1)
    of_unit: dict[int, list[str | None]] = {}
    for at, pair in enumerate(pairs.tolist()):
        program, file = pair >> 31, pair & (1 << 31) - 1
        if program not in of_unit:
            of_unit[program] = read_file_names(units[program], content, sections, find_folder)
        name = of_unit[program][file] if file < len(of_unit[program]) else None
        if name is not None:
            index[at] = names.setdefault(name, len(names))
    return np.repeat(index[which], np.diff(np.append(starts, len(begins)))), list(names)
