"""The debugging information of one file: which unit tells of an address, and which entry is the function there.

Runs in the controller. Units are found by .debug_aranges where that knows them, else by their own ranges; of a unit no
more is read than is asked for. What makes no sense raises BinaryError.
"""

from __future__ import annotations

import contextlib
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from clew.binary.debug_entries import Budget, DebugUnit, Entry
from clew.binary.debug_lists import covers, read_ranges
from clew.binary.debug_names import Attribute, Tag
from clew.binary.debug_sections import DebugSections, find_debug_file
from clew.binary.dwarf_reader import DwarfReader
from clew.errors import BinaryError

__all__ = ["SEARCH_STEPS", "DebugFile"]

MAX_UNITS: Final = 1 << 18
SEARCH_STEPS: Final = 1 << 17
"""Of a search through all units for what can be done without."""
MAX_DEPTH: Final = 128
"""Scopes inside of one another."""
_64_BIT: Final = 0xFFFFFFFF
_COMPILE, _TYPE, _PARTIAL, _SKELETON = 1, 2, 3, 4
"""DW_UT_*: units of version 5 that are read; a skeleton has a number of 8 bytes more, one of a type also a place."""
_SCOPES: Final = (Tag.LEXICAL_BLOCK, Tag.INLINED_SUBROUTINE)


class DebugFile:
    """Of the ELF file at `path`, or of the debug file that is installed for it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        found = find_debug_file(path, "info")
        self.sections = DebugSections(found) if found is not None else None
        self.budget = Budget(path)
        self._units: list[DebugUnit] | None = None
        self._starts: list[int] = []
        self._by_signature: dict[int, DebugUnit] = {}
        self._ranges: list[tuple[int, int, int]] | None = None
        self._globals: dict[str, Entry | None] = {}
        self._own_ranges: list[tuple[int, int, DebugUnit]] | None = None

    @property
    def units(self) -> list[DebugUnit]:
        """All units, in their order."""
        if self._units is None:
            self._units = [] if self.sections is None else list(self._read_units(self.sections))
            self._starts = [unit.offset for unit in self._units]
            self._by_signature = {one.signature: one for one in self._units if one.signature is not None}
        return self._units

    def unit_with(self, offset: int) -> DebugUnit:
        """The unit that an offset of .debug_info lies in. Raises BinaryError."""
        units = self.units
        index = bisect_right(self._starts, offset) - 1
        if index < 0 or offset >= units[index].end:
            raise self.budget.refuse(f"there is no unit at {offset:#x}")
        return units[index]

    def _find_by_signature(self, signature: int) -> Entry | None:
        """The type that a unit of its own has. Raises BinaryError."""
        unit = self._by_signature.get(signature)
        return None if unit is None else unit.entry(unit.offset + unit.type_offset)

    def find_unit(self, address: int) -> DebugUnit | None:
        """The unit whose code is at a link address; None where none is known. Raises BinaryError."""
        self.budget.renew()
        for start, end, offset in self._read_ranges():
            if start <= address < end:
                return self.unit_with(offset)
        if self._own_ranges is None:
            self._own_ranges = []
            for unit in self.units:
                # What can't be read of one says nothing of the others.
                with contextlib.suppress(BinaryError):
                    self._own_ranges += [(start, end, unit) for start, end in read_ranges(unit.root) if start]
        found = [unit for start, end, unit in self._own_ranges if start <= address < end]
        return found[0] if found else None

    def find_scopes(self, unit: DebugUnit, address: int) -> list[Entry]:
        """The function at a link address, and what lies in it around that: blocks, functions that are put in place.

        From the outermost on; empty where the unit tells of no function there. Raises BinaryError.
        """
        self.budget.renew()
        if unit.is_split:
            raise BinaryError(
                self.path, "its debugging information is in other files (-gsplit-dwarf), which are not read"
            )
        function = self._find_function(unit.root, address, 0)
        # GNU C has functions inside of others, whose code is elsewhere.
        function = function or self._find_function(unit.root, address, 0, is_thorough=True)
        scopes: list[Entry] = []
        while function is not None and len(scopes) < MAX_DEPTH:
            scopes.append(function)
            inside = (one for one in function.children() if one.tag in _SCOPES and covers(one, address))
            function = next(inside, None)
        return scopes

    def find_global(self, name: str) -> Entry | None:
        """The definition of a variable outside of functions, in any unit; None: none is found, or not soon."""
        if name not in self._globals:
            self._globals[name] = None
            self.budget.renew(SEARCH_STEPS)
            for unit in self.units:
                with contextlib.suppress(BinaryError):
                    for entry in () if unit.is_split else unit.root.children():
                        is_defined = entry.tag == Tag.VARIABLE and entry.find(Attribute.LOCATION) is not None
                        if is_defined and entry.name == name:
                            self._globals[name] = entry
                            return entry
        return self._globals[name]

    def _find_function(self, parent: Entry, address: int, depth: int, *, is_thorough: bool = False) -> Entry | None:
        """The function at an address, inside of an entry; `is_thorough`: also inside of functions and classes."""
        if depth > MAX_DEPTH:
            return None
        for entry in parent.children():
            if entry.tag == Tag.SUBPROGRAM and covers(entry, address):
                return entry
            if entry.tag == Tag.NAMESPACE or (is_thorough and entry.has_children):
                found = self._find_function(entry, address, depth + 1, is_thorough=is_thorough)
                if found is not None:
                    return found
        return None

    def _read_ranges(self) -> list[tuple[int, int, int]]:
        """Ranges of code and the offsets of their units, as .debug_aranges has them."""
        if self._ranges is None:
            content = b"" if self.sections is None else self.sections.read("aranges")
            self._ranges = []
            at = 0
            try:
                while at + 4 <= len(content):
                    at = self._read_range_table(content, at)
            except IndexError:
                pass  # What was read until then is good; other units tell of their ranges themselves.
        return self._ranges

    def _read_range_table(self, content: bytes, at: int) -> int:
        assert self._ranges is not None
        reader = DwarfReader(content, at, len(content))
        n_bytes = reader.word(4)
        is_64_bit = n_bytes == _64_BIT
        if is_64_bit:
            n_bytes = reader.word(8)
        end = reader.at + n_bytes
        reader.word(2)
        unit = reader.word(8 if is_64_bit else 4)
        address_bytes, segment_bytes = reader.word(1), reader.word(1)
        if end > len(content) or address_bytes != 8 or segment_bytes:
            raise IndexError
        # Pairs are aligned to their size, from the table's start on.
        reader.block(-(reader.at - at) % 16)
        while reader.at + 16 <= end:
            self.budget.spend()
            start, size = reader.word(8), reader.word(8)
            if size and start:
                self._ranges.append((start, start + size, unit))
        return end

    def _read_units(self, sections: DebugSections) -> Iterator[DebugUnit]:
        info = sections.read("info")
        at = 0
        for _ in range(MAX_UNITS):
            if at + 4 > len(info):
                return
            try:
                unit, at = self._read_unit(sections, info, at)
            except IndexError:
                return  # From here on nothing can be told apart.
            if unit is not None:
                yield unit

    def _read_unit(self, sections: DebugSections, info: bytes, offset: int) -> tuple[DebugUnit | None, int]:
        self.budget.spend()
        reader = DwarfReader(info, offset, len(info))
        n_bytes = reader.word(4)
        is_64_bit = n_bytes == _64_BIT
        if is_64_bit:
            n_bytes = reader.word(8)
        end = reader.at + n_bytes
        if end > len(info) or not n_bytes:
            raise IndexError
        version = reader.word(2)
        kind = reader.word(1) if version == 5 else _COMPILE
        if version == 5:
            reader.word(1)
        abbreviations_at = reader.word(8 if is_64_bit else 4)
        address_bytes = 8 if version == 5 else reader.word(1)
        signature = reader.word(8) if kind in (_SKELETON, _TYPE) else None
        type_offset = reader.word(8 if is_64_bit else 4) if kind == _TYPE else 0
        is_read = 2 <= version <= 5 and kind in (_COMPILE, _TYPE, _PARTIAL, _SKELETON) and address_bytes == 8
        if not is_read or reader.at >= end:
            return None, end
        unit = DebugUnit(
            sections,
            self.budget,
            self.unit_with,
            self._find_by_signature,
            offset,
            reader.at,
            end,
            version,
            is_64_bit,
            abbreviations_at,
            signature if kind == _TYPE else None,
            type_offset,
        )
        return unit, end
