"""Where the code of a source line is: debugging information asked the other way round.

Runs in the controller. Of the line programs only those are run whose files have the wanted name. They may be of a
hostile file: no number in them is believed, and what takes too long raises BinaryError.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from clew.binary.debug_sections import DebugSections, find_debug_file
from clew.binary.dwarf_reader import find_unit_folders
from clew.binary.line_headers import LineUnit, iter_line_units, read_file_names
from clew.binary.line_program import run_programs
from clew.errors import BinaryError

__all__ = ["LineRow", "find_line_rows", "is_file_named"]

TIMEOUT_SECONDS: Final = 30.0
MAX_ROWS: Final = 1 << 16


class LineRow(NamedTuple):
    """The code of line `line` of `file` begins at a link address, or goes on there."""

    file: str
    line: int
    address: int


def is_file_named(path: str, name: str) -> bool:
    """Whether a source file is meant by a name: its path, or the last parts of that."""
    path, name = os.path.normpath(path), os.path.normpath(name)
    return path == name or (not name.startswith("/") and path.endswith(f"/{name}"))


def find_line_rows(path: Path, name: str, line: int) -> list[LineRow] | None:
    """The statements of a line of all files of that name, or of the next line that has some, by their addresses.

    None where no file of the program at `path` has that name, or there is no debugging information; empty where no code
    is of that line or a later one. Raises BinaryError.
    """
    debug_path = find_debug_file(path, "line")
    if debug_path is None:
        return None
    sections = DebugSections(debug_path)
    content = sections.read("line")
    deadline = time.monotonic() + TIMEOUT_SECONDS
    folders: dict[int, str] = {}

    def find_folder(offset: int) -> str | None:
        if not folders:
            folders.update(find_unit_folders(sections) or {-1: ""})
        return folders.get(offset)

    # Names are texts in the section, or in others: who has none of them need not be asked.
    last_part = os.path.basename(name).encode("utf-8", "surrogateescape")
    elsewhere = any(last_part in sections.read(other) for other in ("line_str", "str"))
    found: list[LineRow] = []
    is_known = False
    for unit in iter_line_units(content):
        if time.monotonic() >= deadline:
            raise BinaryError(path, "its line numbers are too many to be looked through")
        if not elsewhere and last_part not in content[unit.tables_at : unit.program_at]:
            continue
        names = read_file_names(unit, content, sections, find_folder)
        wanted = {at: one for at, one in enumerate(names) if one is not None and is_file_named(one, name)}
        if wanted:
            is_known = True
            found += _run(unit, content, wanted, line)
            # The nearest line of all units counts, so those behind it need not be kept.
            nearest = min((row.line for row in found), default=0)
            found = [row for row in found if row.line == nearest][:MAX_ROWS]
    return sorted(set(found), key=lambda row: (row.address, row.file)) if is_known else None


def _run(unit: LineUnit, content: bytes, files: dict[int, str], line: int) -> list[LineRow]:
    """The rows of the nearest line that a unit has of some files."""
    rows = run_programs([content[unit.program_at : unit.end]], unit.shape)
    begins = np.append([True], rows.sequence[1:] != rows.sequence[:-1])[: len(rows.sequence)]
    starts = rows.address[np.flatnonzero(begins)]
    # What the linker has left out is at address 0.
    is_linked = starts[np.cumsum(begins) - 1] > 0 if len(starts) else np.zeros(0, bool)
    is_wanted = np.isin(rows.file, np.array(list(files), np.int64)) & ~rows.is_end & rows.is_statement & is_linked
    is_wanted &= (rows.line >= line) & (rows.line < 1 << 31)
    chosen = np.flatnonzero(is_wanted)
    if not len(chosen):
        return []
    nearest = int(rows.line[chosen].min())
    chosen = chosen[rows.line[chosen] == nearest][:MAX_ROWS]
    pairs = zip(rows.file[chosen].tolist(), rows.address[chosen].tolist(), strict=True)
    return [LineRow(os.path.normpath(files[number]), nearest, address) for number, address in pairs]
