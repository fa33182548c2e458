"""Lists of addresses in debugging information: where the code of an entry is, and where a variable is in which of it.

Runs in the controller. Of versions 2 to 4 (.debug_ranges, .debug_loc) and 5 (.debug_rnglists, .debug_loclists). All
addresses are link addresses.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from clew.binary.debug_entries import DebugUnit, Entry, Value
from clew.binary.debug_names import Attribute
from clew.binary.dwarf_reader import DwarfReader

__all__ = ["covers", "find_location", "read_ranges"]

_MASK: Final = (1 << 64) - 1
_INDEXED: Final = (0x22, 0x23)
"""DW_FORM_loclistx, DW_FORM_rnglistx."""
_SECTION_OFFSET: Final = 0x17

_Range = tuple[int, int]
_Row = tuple[int, int, bytes]


def read_ranges(entry: Entry) -> list[_Range]:
    """Where the code of an entry is, from a start up to an end each. Raises BinaryError."""
    ranges = entry.attributes.get(Attribute.RANGES)
    unit = entry.unit
    if ranges is not None:
        return [(start, end) for start, end, _ in _rows(unit, ranges, is_location=False)]
    low, high = entry.address(Attribute.LOW_PC), entry.attributes.get(Attribute.HIGH_PC)
    if low is None or high is None:
        return []
    number = unit.address(high)
    if number is None:
        return []
    # A number that is no address counts from the start.
    return [(low, number if high.is_address else low + number)]


def covers(entry: Entry, address: int) -> bool:
    """Whether code of an entry is at an address. Raises BinaryError."""
    return any(start <= address < end for start, end in read_ranges(entry))


def find_location(entry: Entry, value: Value, address: int) -> bytes | None:
    """The expression of a variable's place where the thread is at an address; None: it is nowhere. Raises BinaryError.

    `value` is an attribute of `entry`.
    """
    if isinstance(value.raw, bytes):
        return value.raw
    if not value.is_list:
        return None
    default = None
    for start, end, expression in _rows(entry.unit, value, is_location=True):
        if start <= address < end:
            return expression
        if (start, end) == (0, _MASK):
            default = expression
    return default


def _rows(unit: DebugUnit, value: Value, *, is_location: bool) -> Iterator[_Row]:
    place = value.number
    if place is None:
        return
    try:
        yield from _rows_new(unit, value, is_location) if unit.version >= 5 else _rows_old(unit, place, is_location)
    except IndexError as error:
        raise unit.budget.refuse("a list of addresses ends too early") from error


def _rows_old(unit: DebugUnit, place: int, is_location: bool) -> Iterator[_Row]:
    content = unit.sections.read("loc" if is_location else "ranges")
    reader = DwarfReader(content, place, len(content))
    base = unit.root.address(Attribute.LOW_PC) or 0
    while True:
        unit.budget.spend()
        start, end = reader.word(8), reader.word(8)
        if start == end == 0:
            return
        if start == _MASK:
            base = end
            continue
        expression = reader.block(reader.word(2)) if is_location else b""
        yield base + start & _MASK, base + end & _MASK, expression


def _rows_new(unit: DebugUnit, value: Value, is_location: bool) -> Iterator[_Row]:
    """DW_RLE_* and DW_LLE_*, which have other numbers for the same."""
    name, attribute = ("loclists", Attribute.LOCLISTS_BASE) if is_location else ("rnglists", Attribute.RNGLISTS_BASE)
    content = unit.sections.read(name)
    place = value.number or 0
    if value.form in _INDEXED:
        start = unit.base(attribute, 20 if unit.is_64_bit else 12)
        reader = DwarfReader(content, start + unit.offset_bytes * place, len(content))
        place = start + reader.word(unit.offset_bytes)
    reader = DwarfReader(content, place, len(content))
    base = unit.root.address(Attribute.LOW_PC) or 0
    while True:
        unit.budget.spend()
        kind = reader.word(1)
        # A location's default comes in between.
        if is_location and kind >= 5:
            kind = 99 if kind == 5 else kind - 1 if kind <= 8 else 100
        match kind:
            case 0:  # end_of_list
                return
            case 1:  # base_addressx
                base = unit.indexed_address(reader.number())
                continue
            case 2:  # startx_endx
                start, end = unit.indexed_address(reader.number()), unit.indexed_address(reader.number())
            case 3:  # startx_length
                start = unit.indexed_address(reader.number())
                end = start + reader.number()
            case 4:  # offset_pair
                start, end = base + reader.number(), base + reader.number()
            case 5:  # base_address
                base = reader.word(8)
                continue
            case 6:  # start_end
                start, end = reader.word(8), reader.word(8)
            case 7:  # start_length
                start = reader.word(8)
                end = start + reader.number()
            case 99:  # default_location
                start, end = 0, _MASK
            case _:
                raise IndexError
        yield start & _MASK, end & _MASK, reader.block(reader.number()) if is_location else b""
