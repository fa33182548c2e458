"""Types of C as debugging information has them: what values are, where the members of structures lie.

Runs in the controller. A type is read no further than is asked for, since types go in circles. What makes no sense
raises BinaryError.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum, auto
from typing import Final

from clew.binary.debug_entries import Entry
from clew.binary.debug_names import Attribute, Encoding, Tag
from clew.binary.dwarf_expression import evaluate
from clew.dataclass import dataclass
from clew.errors import BinaryError

__all__ = ["DebugType", "Member", "TypeKind", "find_named_type", "type_of"]

MAX_CHAIN: Final = 64
MAX_SIZE_BYTES: Final = 1 << 40
MAX_MEMBERS: Final = 1 << 16
MAX_CLASSES: Final = 8
"""Inside of one another."""
_PASS_BY_REFERENCE, _PASS_BY_VALUE = 4, 5
_QUALIFIERS: Final = {
    Tag.CONST_TYPE: "const",
    Tag.VOLATILE_TYPE: "volatile",
    Tag.RESTRICT_TYPE: "restrict",
    Tag.ATOMIC_TYPE: "_Atomic",
}
_RECORDS: Final = {
    Tag.STRUCTURE_TYPE: "struct",
    Tag.CLASS_TYPE: "class",
    Tag.UNION_TYPE: "union",
    Tag.ENUMERATION_TYPE: "enum",
}
_POINTERS: Final = {Tag.POINTER_TYPE: "*", Tag.REFERENCE_TYPE: "&", Tag.RVALUE_REFERENCE_TYPE: "&&"}


class TypeKind(Enum):
    """What a type is, behind its names and qualifiers."""

    VOID = auto()
    INTEGER = auto()
    BOOL = auto()
    FLOAT = auto()
    COMPLEX = auto()
    ENUM = auto()
    POINTER = auto()
    RECORD = auto()
    UNION = auto()
    ARRAY = auto()
    FUNCTION = auto()


@dataclass(frozen=True)
class Member:
    """Of a structure: `offset` bytes from its start; of a bit-field the bits from the start of the structure on.

    One without a name is a structure or union whose members are the outer one's, too, or a base class.
    """

    name: str
    type: DebugType
    offset: int
    bit_offset: int
    n_bits: int | None


class DebugType:
    """A type by its entry; `entry` None: void, or, with `element`, an array that is what is left of a larger one."""

    def __init__(self, entry: Entry | None, element: DebugType | None = None, counts: tuple[int, ...] = ()) -> None:
        self.named = entry
        self._element, self._counts = element, counts
        self._entry = _strip(entry)
        self._members: list[Member] | None = None

    @property
    def kind(self) -> TypeKind:
        """What it is. Raises BinaryError."""
        entry = self._entry
        if self._element is not None:
            return TypeKind.ARRAY
        if entry is None or entry.tag == Tag.UNSPECIFIED_TYPE:
            return TypeKind.VOID
        if entry.tag in _POINTERS:
            return TypeKind.POINTER
        match entry.tag:
            case Tag.BASE_TYPE:
                return self._base_kind(entry)
            case Tag.ENUMERATION_TYPE:
                return TypeKind.ENUM
            case Tag.STRUCTURE_TYPE | Tag.CLASS_TYPE:
                return TypeKind.RECORD
            case Tag.UNION_TYPE:
                return TypeKind.UNION
            case Tag.ARRAY_TYPE:
                return TypeKind.ARRAY
            case Tag.SUBROUTINE_TYPE:
                return TypeKind.FUNCTION
        raise BinaryError(
            entry.unit.budget.path, f"a type of kind {entry.tag:#x} in its debugging information is not known"
        )

    def _base_kind(self, entry: Entry) -> TypeKind:
        match entry.number(Attribute.ENCODING):
            case Encoding.BOOLEAN:
                return TypeKind.BOOL
            case Encoding.FLOAT:
                return TypeKind.FLOAT
            case Encoding.COMPLEX_FLOAT:
                return TypeKind.COMPLEX
        return TypeKind.INTEGER

    @property
    def is_signed(self) -> bool:
        """Whether an integer, or an enumeration, has a sign. Raises BinaryError."""
        entry = self._underlying()
        if entry is not None and entry.tag == Tag.ENUMERATION_TYPE:
            values = [one.signed(Attribute.CONST_VALUE) for one in entry.children() if one.tag == Tag.ENUMERATOR]
            return any(value is not None and value < 0 for value in values)
        return entry is not None and entry.number(Attribute.ENCODING) in (Encoding.SIGNED, Encoding.SIGNED_CHAR)

    def _underlying(self) -> Entry | None:
        """Of an enumeration the integer that it is kept as, where that is told. Raises BinaryError."""
        entry = self._entry
        if entry is None or entry.tag != Tag.ENUMERATION_TYPE:
            return entry
        found = entry.find(Attribute.TYPE)
        kept = None if found is None else _strip(found[0].unit.follow(found[1]))
        return kept if kept is not None and kept.tag == Tag.BASE_TYPE else entry

    @property
    def size_bytes(self) -> int | None:
        """Its size; None where that is not known, as of void, functions, arrays without an end. Raises BinaryError."""
        whole, n = self, 1
        for _ in range(MAX_CHAIN):
            if whole.kind != TypeKind.ARRAY:
                break
            count = whole._shape()[0]
            if count < 0:
                return None
            whole, n = whole.target, n * count
        else:
            raise self._fault("an array of arrays without an end")
        if whole.kind == TypeKind.POINTER:
            return 8 * n
        entry = whole._complete()
        size = None if entry is None else entry.number(Attribute.BYTE_SIZE)
        if size is None:
            kept = whole._underlying()
            size = None if kept is None else kept.number(Attribute.BYTE_SIZE)
        return size * n if size is not None and 0 <= size * n <= MAX_SIZE_BYTES else None

    @property
    def is_passed_by_reference(self) -> bool:
        """Whether a function that is given one, or gives one, gets its address, as of C++'s classes that have
        destructors, or constructors that copy. Raises BinaryError."""
        return self._is_by_reference(0)

    def _is_by_reference(self, depth: int) -> bool:
        entry = self._complete()
        if entry is None or depth > MAX_CLASSES or self.kind not in (TypeKind.RECORD, TypeKind.UNION):
            return False
        told = entry.number(Attribute.CALLING_CONVENTION)
        if told in (_PASS_BY_REFERENCE, _PASS_BY_VALUE):
            return told == _PASS_BY_REFERENCE
        if entry.number(Attribute.DECLARATION):
            return False
        if any(one.tag == Tag.SUBPROGRAM and _has_effect(entry, one) for one in entry.children()):
            return True
        return any(member.type._is_by_reference(depth + 1) for member in self.members)

    @property
    def is_reference(self) -> bool:
        """Whether it is a reference of C++'s: a pointer that is never seen."""
        return self._entry is not None and self._entry.tag in (Tag.REFERENCE_TYPE, Tag.RVALUE_REFERENCE_TYPE)

    @property
    def tag_name(self) -> str:
        """What a structure, class, union or enumeration is called, whatever other names it has."""
        return "" if self._entry is None else self._entry.name

    @property
    def is_vector(self) -> bool:
        """Whether an array is one that vector registers hold, as of GNU C's vector_size."""
        return self._entry is not None and Attribute.GNU_VECTOR in self._entry.attributes

    def number(self, attribute: Attribute) -> int | None:
        """A number that is said of it; None where none is."""
        entry = self._complete()
        return None if entry is None else entry.number(attribute)

    @property
    def target(self) -> DebugType:
        """What a pointer points at; an array's elements. Raises BinaryError."""
        if self._element is not None:
            return self._element if len(self._counts) <= 1 else DebugType(None, self._element, self._counts[1:])
        if self._entry is None:
            return self
        element = type_of(self._entry)
        if self._entry.tag != Tag.ARRAY_TYPE:
            return element
        counts = self._shape()
        return element if len(counts) <= 1 else DebugType(None, element, counts[1:])

    def _shape(self) -> tuple[int, ...]:
        """How many elements an array has in each dimension, -1: as many as there are."""
        if self._element is not None:
            return self._counts
        if self._entry is None:
            return (-1,)
        ranges = [one for one in self._entry.children() if one.tag == Tag.SUBRANGE_TYPE]
        return tuple(_count(one) for one in ranges) or (-1,)

    @property
    def members(self) -> list[Member]:
        """Of a structure, class or union. Raises BinaryError where it is only declared."""
        if self._members is None:
            entry = self._complete()
            if entry is None:
                return []
            if entry.number(Attribute.DECLARATION):
                raise self._fault(f"what is in {self} is not known here")
            self._members = [_read_member(one) for one in entry.children() if _is_member(one)][:MAX_MEMBERS]
        return self._members

    def find_member(self, name: str, depth: int = 0) -> Member | None:
        """A member of that name, also one of a member without a name. Raises BinaryError."""
        for member in self.members:
            if member.name == name:
                return member
        inner = (one for one in self.members if not one.name and one.type.kind in (TypeKind.RECORD, TypeKind.UNION))
        for member in inner if depth < MAX_CHAIN else ():
            found = member.type.find_member(name, depth + 1)
            if found is not None:
                bits = found.bit_offset + 8 * member.offset
                return Member(name, found.type, found.offset + member.offset, bits, found.n_bits)
        return None

    def _complete(self) -> Entry | None:
        """The entry; of a declaration the definition in the same unit, where there is one."""
        entry = self._entry
        if entry is not None and Attribute.SIGNATURE in entry.attributes:
            return entry.refer(Attribute.SIGNATURE)
        if entry is not None and entry.number(Attribute.DECLARATION) and entry.name:
            found = find_named_type(entry.unit.root, entry.tag, entry.name)
            return found or entry
        return entry

    def _fault(self, why: str) -> BinaryError:
        assert self._entry is not None
        return BinaryError(self._entry.unit.budget.path, why)

    def __str__(self) -> str:
        """As C writes it."""
        return self._text(0)

    def _text(self, depth: int) -> str:
        entry = self.named
        if depth > MAX_CHAIN:
            return "..."
        if self._element is not None:
            sizes = "".join(f"[{count if count >= 0 else ''}]" for count in self._counts)
            return f"{self._element._text(depth + 1)}{sizes}"
        if entry is None:
            return "void"
        if entry.tag in _QUALIFIERS:
            inner = type_of(entry)
            is_pointer = inner.named is not None and inner.named.tag in _POINTERS
            text, word = inner._text(depth + 1), _QUALIFIERS[Tag(entry.tag)]
            return f"{text} {word}" if is_pointer else f"{word} {text}"
        if entry.tag in _POINTERS:
            text = type_of(entry)._text(depth + 1)
            return f"{text}{'' if text.endswith('*') else ' '}{_POINTERS[Tag(entry.tag)]}"
        if entry.tag == Tag.ARRAY_TYPE:
            sizes = "".join(f"[{count if count >= 0 else ''}]" for count in self._shape())
            return f"{type_of(entry)._text(depth + 1)}{sizes}"
        if entry.tag == Tag.SUBROUTINE_TYPE:
            return f"{type_of(entry)._text(depth + 1)} ()"
        complete = self._complete() if Attribute.SIGNATURE in entry.attributes else entry
        name = (entry if complete is None else complete).name or "{...}"
        return f"{_RECORDS[Tag(entry.tag)]} {name}" if entry.tag in _RECORDS else name


def type_of(entry: Entry) -> DebugType:
    """The type that an entry says it is of; void where it says none. Raises BinaryError."""
    found = entry.find(Attribute.TYPE)
    return DebugType(None if found is None else found[0].unit.follow(found[1]))


def find_named_type(parent: Entry, tag: int | None, name: str) -> Entry | None:
    """The definition of a structure, union, enumeration, or, where `tag` is None, of another type, right inside of an
    entry or in a namespace in it. Raises BinaryError."""
    for one in _iter_types(parent, 0):
        is_wanted = one.tag == tag if tag is not None else one.tag in (Tag.TYPEDEF, Tag.BASE_TYPE, Tag.CLASS_TYPE)
        is_known = not one.number(Attribute.DECLARATION) or Attribute.SIGNATURE in one.attributes
        if is_wanted and is_known and one.name == name:
            return one
    return None


def _iter_types(parent: Entry, depth: int) -> Iterator[Entry]:
    for one in parent.children():
        if one.tag == Tag.NAMESPACE and depth < MAX_CHAIN:
            yield from _iter_types(one, depth + 1)
        yield one


def _strip(entry: Entry | None) -> Entry | None:
    """The type behind other names and qualifiers. Raises BinaryError."""
    for _ in range(MAX_CHAIN):
        if entry is None or not (entry.tag in _QUALIFIERS or entry.tag == Tag.TYPEDEF):
            return entry
        entry = entry.refer(Attribute.TYPE)
    assert entry is not None
    raise entry.unit.budget.refuse("a type is another name of itself")


def _has_effect(record: Entry, function: Entry) -> bool:
    """Whether a function of a class is why its objects can't be in registers: something is done when one is copied, or
    goes, or it has virtual functions."""
    if function.number(Attribute.VIRTUALITY):
        return True
    if function.number(Attribute.DEFAULTED) == 1:
        return False
    if function.name.startswith("~"):
        return True
    parameters = [one for one in function.children() if one.tag == Tag.FORMAL_PARAMETER]
    if function.name != record.name or len(parameters) != 2:
        return False
    copied = type_of(parameters[1])
    return copied.is_reference and copied.target.tag_name == record.name


def _count(subrange: Entry) -> int:
    count, last = subrange.number(Attribute.COUNT), subrange.number(Attribute.UPPER_BOUND)
    if count is None and last is None:
        return -1
    # One without elements has -1 for its last.
    number = count if count is not None else (last or 0) + 1 & 0xFFFFFFFFFFFFFFFF
    if number in (1 << 32, 1 << 64):
        number = 0
    return number if 0 <= number <= MAX_SIZE_BYTES else -1


def _is_member(entry: Entry) -> bool:
    if entry.tag == Tag.INHERITANCE:
        return True
    # One of the class, not of each object, is a declaration.
    return entry.tag == Tag.MEMBER and Attribute.DECLARATION not in entry.attributes


def _read_member(entry: Entry) -> Member:
    offset = _member_offset(entry)
    kind = type_of(entry)
    n_bits, first = entry.number(Attribute.BIT_SIZE), entry.number(Attribute.DATA_BIT_OFFSET)
    bit_offset = 8 * offset
    if n_bits is not None and first is not None:
        bit_offset = first
    elif n_bits is not None:
        # As versions before 4 have it: from the upper end of the unit that it is stored in.
        size = entry.number(Attribute.BYTE_SIZE) or kind.size_bytes or 0
        bit_offset += 8 * size - (entry.number(Attribute.BIT_OFFSET) or 0) - n_bits
    if not 0 <= bit_offset < 8 * MAX_SIZE_BYTES or (n_bits is not None and not 0 < n_bits <= 64):
        raise entry.unit.budget.refuse("a member lies outside of its structure")
    name = "" if entry.tag == Tag.INHERITANCE else entry.name
    return Member(name, kind, bit_offset // 8 if n_bits is None else offset, bit_offset, n_bits)


def _member_offset(entry: Entry) -> int:
    value = entry.attributes.get(Attribute.DATA_MEMBER_LOCATION)
    if value is None:
        return 0
    found = value.number
    if isinstance(value.raw, bytes):
        found = evaluate(value.raw, {}, lambda address, size_bytes: None, (0,))
    if found is None or not 0 <= found <= MAX_SIZE_BYTES:
        raise entry.unit.budget.refuse("where a member lies is not told by a number (virtual base classes)")
    return found
