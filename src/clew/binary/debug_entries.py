"""Units of debugging information, versions 2 to 5, and the entries in them, read as they are asked for.

Runs in the controller. A file may be hostile: no offset in it is believed, all work is counted against a budget, and
what makes no sense raises BinaryError. Nothing of it is taken for a path.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from clew.binary.debug_names import Attribute
from clew.binary.dwarf_reader import DwarfReader
from clew.dataclass import dataclass, field
from clew.errors import BinaryError

if TYPE_CHECKING:
    from clew.binary.debug_sections import DebugSections

__all__ = ["Budget", "DebugUnit", "Entry", "Value"]

MAX_STEPS: Final = 1 << 19
"""Entries and rows that are read for one question: some seconds' worth."""
MAX_ATTRIBUTES: Final = 256
MAX_ABBREVIATIONS: Final = 1 << 16
MAX_CHAIN: Final = 16
"""Entries that one stands for the next of."""

_ADDR, _BLOCKS, _LEB_BLOCKS = 0x01, {0x03: 2, 0x04: 4, 0x0A: 1}, (0x09, 0x18)
_FIXED: Final = {0x05: 2, 0x06: 4, 0x07: 8, 0x0B: 1, 0x0C: 1, 0x11: 1, 0x12: 2, 0x13: 4, 0x14: 8, 0x20: 8} | {
    0x19: 0,
    0x1E: 16,
    0x25: 1,
    0x26: 2,
    0x27: 3,
    0x28: 4,
    0x29: 1,
    0x2A: 2,
    0x2B: 3,
    0x2C: 4,
    0x1C: 4,
    0x24: 8,
}
"""Forms of a fixed size: data, flags, references, indices."""
_OFFSETS: Final = (0x0E, 0x17, 0x1D, 0x1F, 0x1F20, 0x1F21)
_NUMBERS: Final = (0x0F, 0x15, 0x1A, 0x1B, 0x22, 0x23, 0x1F01, 0x1F02)
_STRING, _STRP, _LINE_STRP, _SDATA, _REF_ADDR, _INDIRECT, _IMPLICIT = 0x08, 0x0E, 0x1F, 0x0D, 0x10, 0x16, 0x21
_STRING_INDICES: Final = (0x1A, 0x25, 0x26, 0x27, 0x28, 0x1F02)
_ADDRESS_INDICES: Final = (0x1B, 0x29, 0x2A, 0x2B, 0x2C, 0x1F01)
_REFERENCES: Final = (0x11, 0x12, 0x13, 0x14, 0x15)
_REF_SIGNATURE: Final = 0x20
_SIGNED_BY_SIZE: Final = {0x0B: 8, 0x05: 16, 0x06: 32, 0x07: 64}

T = TypeVar("T")


class Budget:
    """How much may still be read for one question, about the file at `path`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._left = MAX_STEPS

    def renew(self, n_steps: int = MAX_STEPS) -> None:
        """Another question."""
        self._left = n_steps

    def spend(self, n_steps: int = 1) -> None:
        """Raises BinaryError where that is too much."""
        self._left -= n_steps
        if self._left < 0:
            raise BinaryError(self.path, "its debugging information is too large, or goes in circles")

    def refuse(self, why: str) -> BinaryError:
        """What is raised about the file."""
        return BinaryError(self.path, f"its debugging information makes no sense: {why}")


class Value(NamedTuple):
    """The value of an attribute as it is stored: `form` says how (DW_FORM_*)."""

    form: int
    raw: int | bytes | str

    @property
    def number(self) -> int | None:
        """It, where it is a number."""
        return self.raw if isinstance(self.raw, int) else None

    @property
    def is_address(self) -> bool:
        """Whether it is a link address, or the index of one, and no number that counts from somewhere."""
        return self.form == _ADDR or self.form in _ADDRESS_INDICES

    @property
    def is_list(self) -> bool:
        """Whether it says where a list is, in another section."""
        return self.form in (0x06, 0x07, 0x17, 0x22, 0x23)


class _Abbreviation(NamedTuple):
    tag: int
    has_children: bool
    attributes: tuple[tuple[int, int, int], ...]
    """Name, form, and of an implicit constant its value."""


class Entry(NamedTuple):
    """An entry of `unit`, at `offset` of its section and up to `end`; `attributes` by their numbers (DW_AT_*)."""

    unit: DebugUnit
    offset: int
    end: int
    tag: int
    has_children: bool
    attributes: dict[int, Value]

    def number(self, attribute: Attribute) -> int | None:
        """A number that is said of it; None where none is."""
        value = self.attributes.get(attribute)
        return None if value is None else value.number

    def signed(self, attribute: Attribute) -> int | None:
        """The same, where numbers of a fixed size have a sign."""
        value = self.attributes.get(attribute)
        number = None if value is None else value.number
        bits = _SIGNED_BY_SIZE.get(value.form, 0) if value is not None else 0
        if number is not None and bits and number >> bits - 1:
            number -= 1 << bits
        return number

    @property
    def name(self) -> str:
        """What it is called; empty where it has no name, not even by what it stands for."""
        for entry in self.origins():
            value = entry.attributes.get(Attribute.NAME)
            if value is not None:
                return entry.unit.text(value)
        return ""

    def refer(self, attribute: Attribute) -> Entry | None:
        """The entry that an attribute names; None where it names none. Raises BinaryError."""
        value = self.attributes.get(attribute)
        return None if value is None else self.unit.follow(value)

    def origins(self) -> Iterator[Entry]:
        """It, and what it is an instance or a definition of. Raises BinaryError."""
        entry: Entry | None = self
        for _ in range(MAX_CHAIN):
            if entry is None:
                return
            yield entry
            entry = entry.refer(Attribute.ABSTRACT_ORIGIN) or entry.refer(Attribute.SPECIFICATION)

    def find(self, attribute: Attribute) -> tuple[Entry, Value] | None:
        """An attribute of it, or of what it stands for, and of whom. Raises BinaryError."""
        for entry in self.origins():
            value = entry.attributes.get(attribute)
            if value is not None:
                return entry, value
        return None

    def children(self) -> list[Entry]:
        """The entries right inside of it. Raises BinaryError."""
        return self.unit.children(self)

    def address(self, attribute: Attribute) -> int | None:
        """A link address that is said of it. Raises BinaryError."""
        value = self.attributes.get(attribute)
        return None if value is None else self.unit.address(value)


@dataclass
class DebugUnit:
    """A unit at `offset` of .debug_info, up to `end`; its first entry is at `first`.

    `find_unit` gives the unit that an offset of the section lies in, `find_type` the type of a signature, None where no
    unit has it. A unit that is there for a type has its `signature`, and the type's place in it.
    """

    sections: DebugSections
    budget: Budget
    find_unit: Callable[[int], DebugUnit]
    find_type: Callable[[int], Entry | None]
    offset: int
    first: int
    end: int
    version: int
    is_64_bit: bool
    abbreviations_at: int
    signature: int | None = None
    type_offset: int = 0
    _abbreviations: dict[int, _Abbreviation] = field(default_factory=dict)
    _abbreviations_end: int = -1
    _children: dict[int, list[Entry]] = field(default_factory=dict)
    _root: Entry | None = None

    @property
    def offset_bytes(self) -> int:
        """Bytes of an offset in it."""
        return 8 if self.is_64_bit else 4

    @property
    def root(self) -> Entry:
        """The entry of the unit itself. Raises BinaryError."""
        if self._root is None:
            entry = self._guarded(lambda: self._read(self.first))
            if entry is None:
                raise self.budget.refuse("a unit is empty")
            self._root = entry
        return self._root

    @property
    def is_split(self) -> bool:
        """Whether what it tells is in another file (-gsplit-dwarf)."""
        names = self.root.attributes
        return Attribute.DWO_NAME in names or Attribute.GNU_DWO_NAME in names

    def base(self, attribute: Attribute, default: int) -> int:
        """Where the unit's part of another section begins."""
        number = self.root.number(attribute)
        return default if number is None else number

    def entry(self, offset: int) -> Entry:
        """The entry at an offset of the section. Raises BinaryError."""
        entry = self._guarded(lambda: self._read(offset)) if self.first <= offset < self.end else None
        if entry is None:
            raise self.budget.refuse(f"there is no entry at {offset:#x}")
        return entry

    def follow(self, value: Value) -> Entry | None:
        """The entry that a reference leads to; None: it is none. Raises BinaryError, also of one in another file."""
        number = value.number
        if number is None:
            return None
        if value.form in _REFERENCES:
            return self.entry(self.offset + number)
        if value.form == _REF_ADDR:
            return self.find_unit(number).entry(number)
        found = self.find_type(number) if value.form == _REF_SIGNATURE else None
        if found is None:
            raise BinaryError(self.budget.path, "its debugging information goes on elsewhere (dwz, .debug_types)")
        return found

    def text(self, value: Value) -> str:
        """A string that is inside, in a table, or in a table of places of one. Raises BinaryError."""
        if isinstance(value.raw, str):
            return value.raw
        number = value.number
        if number is None:
            return ""
        name = "line_str" if value.form == _LINE_STRP else "str"
        if value.form in _STRING_INDICES:
            base = self.base(Attribute.STR_OFFSETS_BASE, 2 * self.offset_bytes)
            number = self._word("str_offsets", base + self.offset_bytes * number, self.offset_bytes)
        elif value.form not in (_STRP, _LINE_STRP):
            return ""
        content = self.sections.read(name)
        return self._guarded(lambda: DwarfReader(content, number, len(content)).text())

    def address(self, value: Value) -> int | None:
        """A link address, stored or by its index. Raises BinaryError."""
        if value.form in _ADDRESS_INDICES and value.number is not None:
            return self.indexed_address(value.number)
        return value.number

    def indexed_address(self, index: int) -> int:
        """The address of that number in the unit's table (.debug_addr). Raises BinaryError."""
        return self._word("addr", self.base(Attribute.ADDR_BASE, 2 * self.offset_bytes) + 8 * index, 8)

    def children(self, entry: Entry) -> list[Entry]:
        """The entries right inside of one. Raises BinaryError."""
        if not entry.has_children:
            return []
        if entry.offset not in self._children:
            self._children[entry.offset] = self._guarded(lambda: self._read_children(entry))
        return self._children[entry.offset]

    def _read_children(self, entry: Entry) -> list[Entry]:
        found = []
        at = entry.end
        while (child := self._read(at)) is not None:
            found.append(child)
            at = self._find_behind(child)
        return found

    def _find_behind(self, entry: Entry) -> int:
        """Where what comes after an entry and all that is inside of it begins."""
        if not entry.has_children:
            return entry.end
        sibling = entry.number(Attribute.SIBLING)
        if sibling is not None and entry.end < self.offset + sibling <= self.end:
            return self.offset + sibling
        at, depth = entry.end, 1
        while depth:
            inside = self._read(at)
            if inside is None:
                at, depth = at + 1, depth - 1
            else:
                at, depth = inside.end, depth + int(inside.has_children)
        return at

    def _read(self, offset: int) -> Entry | None:
        """The entry at an offset; None: one that ends others. Raises IndexError."""
        self.budget.spend()
        reader = DwarfReader(self.sections.read("info"), offset, self.end, is_64_bit=self.is_64_bit)
        code = reader.number()
        if not code:
            return None
        kind = self._abbreviation(code)
        attributes = {name: self._read_value(reader, form, implicit) for name, form, implicit in kind.attributes}
        return Entry(self, offset, reader.at, kind.tag, kind.has_children, attributes)

    def _read_value(self, reader: DwarfReader, form: int, implicit: int) -> Value:
        if form == _INDIRECT:
            form = reader.number()
        if form in _FIXED:
            return Value(form, reader.word(_FIXED[form]) if _FIXED[form] else 1)
        if form == _ADDR:
            return Value(form, reader.word(8))
        if form in _OFFSETS or (form == _REF_ADDR and self.version > 2):
            return Value(form, reader.word(self.offset_bytes))
        if form == _REF_ADDR:
            return Value(form, reader.word(8))
        if form in _NUMBERS:
            return Value(form, reader.number())
        if form == _SDATA:
            return Value(form, reader.signed_number())
        if form == _STRING:
            return Value(form, reader.text())
        if form in _BLOCKS:
            return Value(form, reader.block(reader.word(_BLOCKS[form])))
        if form in _LEB_BLOCKS:
            return Value(form, reader.block(reader.number()))
        if form == _IMPLICIT:
            return Value(form, implicit)
        raise IndexError

    def _abbreviation(self, code: int) -> _Abbreviation:
        """The kind of entries of that code; of the table no more is read than is asked for. Raises IndexError."""
        known = self._abbreviations.get(code)
        if known is not None:
            return known
        content = self.sections.read("abbrev")
        at = self.abbreviations_at if self._abbreviations_end < 0 else self._abbreviations_end
        reader = DwarfReader(content, at, len(content))
        while code not in self._abbreviations:
            self.budget.spend()
            found = reader.number()
            if not found or len(self._abbreviations) > MAX_ABBREVIATIONS:
                raise IndexError
            tag, has_children = reader.number(), bool(reader.word(1))
            attributes = []
            while (pair := (reader.number(), reader.number())) != (0, 0):
                attributes.append((*pair, reader.signed_number() if pair[1] == _IMPLICIT else 0))
                if len(attributes) > MAX_ATTRIBUTES:
                    raise IndexError
            self._abbreviations[found] = _Abbreviation(tag, has_children, tuple(attributes))
            self._abbreviations_end = reader.at
        return self._abbreviations[code]

    def _word(self, section: str, place: int, n_bytes: int) -> int:
        content = self.sections.read(section)
        return self._guarded(lambda: DwarfReader(content, place, len(content)).word(n_bytes))

    def _guarded(self, read: Callable[[], T]) -> T:
        try:
            return read()
        except IndexError as error:
            raise self.budget.refuse("it ends too early, or has a form that is not known") from error
