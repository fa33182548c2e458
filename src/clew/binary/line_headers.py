"""Headers of DWARF's line programs, versions 2 to 5: where each program is, how it is encoded, which files it names.

Runs in the controller. The bytes may be anything: reading stops where they make no sense.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final

from clew.binary.debug_sections import DebugSections
from clew.binary.dwarf_reader import DwarfReader
from clew.binary.line_program import ProgramShape
from clew.dataclass import dataclass

__all__ = ["LineUnit", "iter_line_units", "read_file_names", "read_line_unit"]

_WORD = struct.Struct("<I")
_LONG = struct.Struct("<Q")
_HALF = struct.Struct("<H")
_64_BIT: Final = 0xFFFFFFFF
_PATH, _FOLDER = 1, 2
"""DW_LNCT_path, DW_LNCT_directory_index."""
_MAX_FORMATS: Final = 16


@dataclass(frozen=True)
class LineUnit:
    """A line program, from `program_at` up to `end` in its section; the tables of its files are at `tables_at`.

    `offset` is where the header begins: what the unit in `.debug_info` calls it by.
    """

    offset: int
    version: int
    is_64_bit: bool
    shape: ProgramShape
    tables_at: int
    program_at: int
    end: int


def iter_line_units(section: bytes) -> Iterator[LineUnit]:
    """The line programs in `.debug_line`, those of versions and shapes that are known."""
    offset = 0
    while offset + 4 <= len(section):
        at, n_bytes = offset + 4, _WORD.unpack_from(section, offset)[0]
        is_64_bit = n_bytes == _64_BIT
        if is_64_bit:
            if at + 8 > len(section):
                return
            at, n_bytes = at + 8, _LONG.unpack_from(section, at)[0]
        end = at + n_bytes
        if end > len(section):
            return
        try:
            unit = _parse_unit(section, offset, at, end, is_64_bit)
        except (struct.error, IndexError):
            unit = None
        if unit is not None:
            yield unit
        offset = end


def read_line_unit(section: bytes, offset: int) -> LineUnit | None:
    """The line program whose header is at an offset; None where there is none that is known."""
    if not 0 <= offset <= len(section) - 4:
        return None
    unit = next(iter_line_units(section[offset:]), None)
    if unit is None or unit.offset:
        return None
    places = (unit.tables_at + offset, unit.program_at + offset, unit.end + offset)
    return LineUnit(offset, unit.version, unit.is_64_bit, unit.shape, *places)


def _parse_unit(section: bytes, offset: int, at: int, end: int, is_64_bit: bool) -> LineUnit | None:
    version = _HALF.unpack_from(section, at)[0]
    if not 2 <= version <= 5:
        return None
    at += 4 if version == 5 else 2  # sizes of addresses and of segment selectors
    header_bytes = (_LONG if is_64_bit else _WORD).unpack_from(section, at)[0]
    at += 8 if is_64_bit else 4
    program_at = at + header_bytes
    min_instruction_bytes = section[at]
    at += 2 if version >= 4 else 1  # operations in an instruction
    is_statement = bool(section[at])
    at += 1
    line_base, line_range, opcode_base = struct.unpack_from("<bBB", section, at)
    at += 3
    operands = section[at : at + opcode_base - 1]
    tables_at = at + opcode_base - 1
    if not line_range or not opcode_base or not tables_at <= program_at <= end or max(operands, default=0) > 8:
        return None
    shape = ProgramShape(min_instruction_bytes, line_base, line_range, operands, is_statement)
    return LineUnit(offset, version, is_64_bit, shape, tables_at, program_at, end)


def read_file_names(
    unit: LineUnit, section: bytes, sections: DebugSections, find_folder: Callable[[int], str | None]
) -> list[str | None]:
    """By number that the program of `unit` may use the file, as the compiler was given it; None where it is not known.

    `find_folder` tells where the compiler was called, by the offset of a unit of a version that does not tell itself.
    """
    reader = DwarfReader(section, unit.tables_at, unit.program_at, is_64_bit=unit.is_64_bit)
    try:
        if unit.version == 5:
            folders = [name for name, _ in _read_entries(reader, sections)]
            return [_join(folders, folder, name) for name, folder in _read_entries(reader, sections)]
        folders = [None, *_read_texts(reader)]
        files: list[tuple[str, int]] = []
        while name := reader.text():
            files.append((name, reader.number()))
            reader.number()  # time
            reader.number()  # size
    except IndexError:
        return []
    if any(folder == 0 and not name.startswith("/") for name, folder in files):
        folders[0] = find_folder(unit.offset)
    return [None, *(_join(folders, folder, name) for name, folder in files)]


def _join(folders: list[str | None], folder: int, name: str | None) -> str | None:
    if name is None or name.startswith("/"):
        return name
    inside = folders[folder] if folder < len(folders) else None
    return name if inside is None else f"{inside}/{name}"


def _read_texts(reader: DwarfReader) -> list[str]:
    texts = []
    while text := reader.text():
        texts.append(text)
    return texts


def _read_entries(reader: DwarfReader, sections: DebugSections) -> list[tuple[str | None, int]]:
    """Names, and numbers of folders, of a table of version 5."""
    formats = [(reader.number(), reader.number()) for _ in range(reader.word(1))]
    n_entries = reader.number()
    if not formats or len(formats) > _MAX_FORMATS:
        return []
    entries: list[tuple[str | None, int]] = []
    at = -1
    while len(entries) < n_entries and at < reader.at:
        name: str | None = None
        folder, at = 0, reader.at
        for content, form in formats:
            value = reader.form(form, sections)
            if content == _PATH and isinstance(value, str):
                name = value
            elif content == _FOLDER and isinstance(value, int):
                folder = value
        entries.append((name, folder))
    return entries
