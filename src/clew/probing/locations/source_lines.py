"""Places that are named by source lines: where a debugger would stop for them.

Runs in the controller. A line's code may be in several pieces, since compilers move it about: of each function, block
and inlined instance that has some of it, the place is where the first piece begins.
"""

from __future__ import annotations

import contextlib

from clew.binary.debug_entries import Entry
from clew.binary.debug_names import Tag
from clew.binary.line_places import LineRow, find_line_rows
from clew.errors import BinaryError
from clew.probing.locations.image_file import ImageFile
from clew.probing.locations.place import PlaceKind, Resolution
from clew.probing.locations.syntax import LinePlace

__all__ = ["find_line_places"]


def find_line_places(image: ImageFile, where: LinePlace) -> Resolution:
    """The places in a file that a source line means, or else the next line that has code. Raises BinaryError."""
    rows = find_line_rows(image.readable_path, where.file, where.line)
    if rows is None:
        known = image.debug.units
        why = f"no source file of it is called {where.file}" if known else "it has no debugging information (gcc -g)"
        return Resolution((), (), f"{image.path}: {why}")
    rows = [row for row in rows if image.elf.is_code(row.address)]
    if not rows:
        return Resolution((), (), f"{image.path} has no code of line {where.line} of {where.file}, or of a later one")
    places = []
    for row in _first_of_blocks(image, rows):
        place = image.place(PlaceKind.LINE, row.address)
        places.append(place._replace(source=f"{row.file}:{row.line}"))
    warnings = []
    if rows[0].line != where.line:
        inside = places[0].symbol
        told = f", in {inside}" if inside else ""
        warnings.append(f"line {where.line} of {where.file} has no code: the next that has is {rows[0].line}{told}")
    files = sorted({row.file for row in rows})
    if len(files) > 1:
        warnings.append(f"{len(files)} source files are called {where.file}: {', '.join(files[:4])}")
    return Resolution(tuple(places), tuple(warnings))


def _first_of_blocks(image: ImageFile, rows: list[LineRow]) -> list[LineRow]:
    """Of the rows of each block the one with the lowest address."""
    first: dict[object, LineRow] = {}
    for row in rows:
        first.setdefault((row.file, _block_at(image, row.address)), row)
    by_address: dict[int, LineRow] = {}
    for row in first.values():
        by_address.setdefault(row.address, row)
    return [by_address[address] for address in sorted(by_address)]


def _block_at(image: ImageFile, address: int) -> object:
    """What tells the innermost block at a link address from others; of code without one its function."""
    with contextlib.suppress(BinaryError):
        unit = image.debug.find_unit(address)
        scopes = [] if unit is None else image.debug.find_scopes(unit, address)
        told = [one for one in scopes if _is_block(one)]
        if told:
            return told[-1].offset
    symbol, distance = image.function_at(address)
    return symbol, address - distance


def _is_block(entry: Entry) -> bool:
    """Whether a scope is one for debuggers: a block without variables is a part of what is around it."""
    return entry.tag != Tag.LEXICAL_BLOCK or any(one.tag == Tag.VARIABLE for one in entry.children())
