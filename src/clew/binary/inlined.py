"""Functions that were put in place where they are called: where each such instance begins.

Runs in the controller. Debugging information is large, so units are looked into only if they name the function: its
name is a string that they refer to by its place, and such references are found in the bytes. What is found there is
read as ever, so a reference that only looks like one costs time and nothing else.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Final

from clew.binary.debug_entries import DebugUnit, Entry
from clew.binary.debug_file import DebugFile
from clew.binary.debug_lists import read_ranges
from clew.binary.debug_names import Attribute, Tag
from clew.dataclass import dataclass
from clew.errors import BinaryError

__all__ = ["InlinedInstance", "find_inlined"]

MAX_REFERENCES: Final = 1 << 14
MAX_INSTANCES: Final = 1 << 14
SEARCHED_BYTES: Final = 1 << 14
"""That are searched in the time in which an entry is read."""
MAX_DEPTH: Final = 200
MAX_BYTES_BEFORE_NAME: Final = 24
"""Of an entry: its kind, and what else may come in front of its name."""
_C: Final = (0x01, 0x02, 0x0C, 0x1D, 0x2C, 0x3E)
"""DW_LANG_* of C, by its years."""
SEARCH_STEPS: Final = 1 << 20
_WITH_FUNCTIONS: Final = (
    Tag.NAMESPACE,
    Tag.STRUCTURE_TYPE,
    Tag.CLASS_TYPE,
    Tag.UNION_TYPE,
    Tag.ENUMERATION_TYPE,
    Tag.SUBPROGRAM,
    Tag.LEXICAL_BLOCK,
)


@dataclass(frozen=True)
class InlinedInstance:
    """An instance of the function `name`, whose code begins at a link address; `inside` is the function that has it.

    Both are what linkers call them, or would."""

    name: str
    address: int
    inside: str


def find_inlined(
    file: DebugFile, last_name: str | None, is_wanted: Callable[[str], bool], n_steps: int = SEARCH_STEPS
) -> list[InlinedInstance]:
    """Where functions were inlined whose names, as linkers have them, are wanted, by their addresses.

    `last_name` is the name without classes and namespaces, None: there are several. Raises BinaryError, also where
    more than `n_steps` entries would have to be read.
    """
    if file.sections is None:
        return []
    file.budget.renew(n_steps)
    units = [one for one in (file.units if last_name is None else _units_naming(file, last_name)) if not one.is_split]
    wanted = {
        one.offset: name
        for unit in units
        for one in _iter_subprograms(unit)
        if (last_name is None or _is_called(one, last_name)) and is_wanted(name := _linked_name(one))
    }
    if last_name is not None:
        # Of programs that were optimised as a whole, instances lie in other units than the function.
        units = list({one.offset: one for one in [*units, *_units_referring(file, wanted)]}.values())
    found: dict[tuple[int, str], InlinedInstance] = {}
    for unit in units if wanted else ():
        for instance in _iter_instances(unit, wanted):
            found[instance.address, instance.name] = instance
            if len(found) >= MAX_INSTANCES:
                break
    return sorted(found.values(), key=lambda one: one.address)


def _units_naming(file: DebugFile, name: str) -> list[DebugUnit]:
    """The units that may have a function of that name that was inlined."""
    if file.sections is None or not name:
        return []
    info, strings, indices = (file.sections.read(one) for one in ("info", "str", "str_offsets"))
    text = name.encode("utf-8", "surrogateescape")
    # Written in the unit itself, by the place in the table of strings, or by an index into a table of such places;
    # behind it may be what a template was given.
    ends = (b"\0", b"<")
    places = [place for end in ends for place in _find_places(file, info, text + end)]
    is_indexed = False
    for at in (at for end in ends for at in _find_places(file, strings, text + end)):
        if strings[at + len(text)] != 0 and at and strings[at - 1] != 0:
            continue
        reference = struct.pack("<I", at & 0xFFFFFFFF)
        places += _find_places(file, info, reference)
        is_indexed = is_indexed or reference in indices
    found: dict[int, DebugUnit] = {}
    if is_indexed:
        found = {one.offset: one for one in file.units if one.root.number(Attribute.STR_OFFSETS_BASE) is not None}
    for place in places:
        unit = _unit_at(file, place)
        if unit is not None and unit.offset not in found and _may_be_function(unit, place, name):
            found[unit.offset] = unit
    return list(found.values())


def _may_be_function(unit: DebugUnit, place: int, name: str) -> bool:
    """Whether the name of a function that may have been inlined is at a place: an entry begins not far in front."""
    is_c = unit.root.number(Attribute.LANGUAGE) in _C
    for start in range(max(place - MAX_BYTES_BEFORE_NAME, unit.first), place):
        try:
            entry = unit.entry(start)
            told = entry.attributes
            # Classes declare their functions, and what was inlined refers to that; so it does to what has no code,
            # where programs are optimised as a whole.
            is_inlined = Attribute.INLINE in told or (
                not is_c if Attribute.DECLARATION in told else not {Attribute.LOW_PC, Attribute.RANGES} & told.keys()
            )
            if entry.tag == Tag.SUBPROGRAM and entry.end > place and is_inlined and _is_called(entry, name):
                return True
        except BinaryError:
            continue
    return False


def _is_called(entry: Entry, name: str) -> bool:
    """Whether a function has a name, but for what it was given as a template."""
    own = entry.name
    return own == name or own.startswith(f"{name}<")


def _units_referring(file: DebugFile, wanted: dict[int, str]) -> list[DebugUnit]:
    """The units that may refer to some entries by their places in the whole section."""
    assert file.sections is not None
    info = file.sections.read("info")
    places = [place for offset in wanted for place in _find_places(file, info, struct.pack("<I", offset & 0xFFFFFFFF))]
    return [unit for unit in (_unit_at(file, place) for place in places) if unit is not None]


def _unit_at(file: DebugFile, place: int) -> DebugUnit | None:
    file.budget.spend()
    try:
        return file.unit_with(place)
    except BinaryError:
        return None


def _find_places(file: DebugFile, content: bytes, text: bytes) -> list[int]:
    """Where something is written in a section."""
    file.budget.spend(1 + len(content) // SEARCHED_BYTES)
    found: list[int] = []
    at = content.find(text)
    while at >= 0 and len(found) < MAX_REFERENCES:
        found.append(at)
        at = content.find(text, at + 1)
    return found


def _iter_subprograms(unit: DebugUnit) -> Iterator[Entry]:
    """The functions of a unit, also those in classes, namespaces and other functions."""
    stack = [(unit.root, 0)]
    while stack:
        parent, depth = stack.pop()
        for one in parent.children():
            if one.tag == Tag.SUBPROGRAM:
                yield one
            if one.has_children and depth < MAX_DEPTH and one.tag in _WITH_FUNCTIONS:
                stack.append((one, depth + 1))


def _linked_name(entry: Entry) -> str:
    """What linkers call a function, or would; of languages that have no other its name."""
    linked = entry.find(Attribute.LINKAGE_NAME)
    return linked[0].unit.text(linked[1]) if linked is not None else entry.name


def _iter_instances(unit: DebugUnit, wanted: dict[int, str]) -> Iterator[InlinedInstance]:
    """Instances of functions by the places of their entries, in the functions of a unit."""
    for function in _iter_subprograms(unit):
        # Those of what is itself not there are no code.
        if not read_ranges(function):
            continue
        stack = [function]
        while stack:
            parent = stack.pop()
            for one in parent.children():
                if one.tag == Tag.INLINED_SUBROUTINE:
                    instance = _instance_of(one, function, wanted)
                    if instance is not None:
                        yield instance
                if one.has_children and one.tag in (Tag.INLINED_SUBROUTINE, Tag.LEXICAL_BLOCK):
                    stack.append(one)


def _instance_of(entry: Entry, function: Entry, wanted: dict[int, str]) -> InlinedInstance | None:
    name = next((wanted[one.offset] for one in entry.origins() if one.offset in wanted), None)
    address = None if name is None else _entry_address(entry)
    return None if name is None or address is None else InlinedInstance(name, address, _linked_name(function))


def _entry_address(entry: Entry) -> int | None:
    """Where an instance is entered; None where nothing is left of it."""
    ranges = read_ranges(entry)
    told = entry.attributes.get(Attribute.ENTRY_PC)
    if told is None:
        return ranges[0][0] if ranges and ranges[0][0] else None
    address = entry.unit.address(told)
    if address is not None and not told.is_address:
        # A number that is no address counts from the start (DWARF 5, 2.18).
        first = entry.address(Attribute.LOW_PC)
        start = first if first is not None else ranges[0][0] if ranges else None
        address = None if start is None else start + address
    return address or None
