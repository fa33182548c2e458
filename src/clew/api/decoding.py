"""Takes apart what an address leads to, by the descriptions of structures: numbers, bytes, records, and arrays of them.

Runs in the controller. Pure. What is read was written by the program that is looked at: each size is bounded, and what
does not fit is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from clew.api.description import Member, MemberCondition, Parameter, Struct
from clew.api.descriptions import Descriptions
from clew.api.pieces import Path
from clew.api.vocabulary import INLINE
from clew.dataclass import dataclass

__all__ = ["MAX_ELEMENTS", "Address", "Bytes", "Item", "Number", "Record", "Sequence", "decode"]

MAX_ELEMENTS: Final = 256
"""Of one array."""

MAX_DEPTH: Final = 8
"""Of structures within structures."""

_ADDRESS_BYTES: Final = 8
_MAY_BE_EMPTY: Final = frozenset({"buffer", "octets", "path", "string"})
"""Raw types of which no bytes are something: others were not read then."""


@dataclass(frozen=True)
class Number:
    """A number of `bits`, without a sign; `one` says how it is told."""

    one: Member | Parameter
    value: int
    bits: int


@dataclass(frozen=True)
class Bytes:
    """Bytes that are told as a whole."""

    one: Member | Parameter
    data: bytes
    is_cut: bool = False


@dataclass(frozen=True)
class Address:
    """An address, what it leads to is not known."""

    value: int


@dataclass(frozen=True)
class Record:
    """The members of a structure that are there; `is_cut`: of some there was too little."""

    struct: Struct
    members: tuple[tuple[Member, Item], ...]
    is_cut: bool = False


@dataclass(frozen=True)
class Sequence:
    """The elements of an array; `is_cut`: there are more."""

    items: tuple[Item, ...]
    is_cut: bool = False


Item = Number | Bytes | Address | Record | Sequence


def decode(
    parameter: Parameter,
    data: bytes,
    descriptions: Descriptions,
    inner: Mapping[Path, bytes],
    *,
    is_cut: bool = False,
    total: int | None = None,
    has_details: bool = True,
) -> Item | None:
    """What a parameter leads to, if structures are described there. `inner` and `total` are as `Pointed` has them;
    without `has_details` members that are details are left out."""
    struct = descriptions.struct(parameter.struct)
    if struct is None:
        return None
    decoder = _Decoder(descriptions, inner, total, has_details=has_details)
    if parameter.is_array or struct.length is not None:
        return decoder.sequence(struct, data, (), 0, is_cut=is_cut)
    return decoder.record(struct, data, (), 0)


class _Decoder:
    """Takes one argument apart. `left`: how many bytes that were moved are still to be told, if that is known."""

    def __init__(
        self, descriptions: Descriptions, inner: Mapping[Path, bytes], left: int | None, *, has_details: bool
    ) -> None:
        self._descriptions, self._inner, self._left = descriptions, inner, left
        self._has_details = has_details

    def sequence(self, struct: Struct, data: bytes, path: Path, depth: int, *, is_cut: bool) -> Sequence:
        """The elements of an array."""
        items: list[Item] = []
        for index, element in enumerate(_elements(struct, data)):
            if index == MAX_ELEMENTS:
                return Sequence(tuple(items), is_cut=True)
            items.append(self.record(struct, element, (*path, index), depth))
        return Sequence(tuple(items), is_cut=is_cut)

    def record(self, struct: Struct, data: bytes, path: Path, depth: int) -> Item:
        """One structure; of a plain one its value."""
        found = []
        is_cut = False
        for member in struct.members:
            if member.is_detail and not self._has_details:
                continue
            if member.conditions and not all(self._holds(struct, condition, data) for condition in member.conditions):
                continue
            item = self._member(struct, member, data, path if struct.is_plain else (*path, member.name), depth)
            if item is None:
                is_cut = True
            else:
                found.append((member, item))
        if struct.is_plain and found:
            return found[0][1]
        return Record(struct, tuple(found), is_cut)

    def _member(self, struct: Struct, member: Member, data: bytes, path: Path, depth: int) -> Item | None:
        end = member.offset + member.size if member.size else len(data)
        own = data[member.offset : end]
        if len(own) < end - member.offset or depth >= MAX_DEPTH:
            return None
        if member.leads:
            return self._led_to(struct, member, int.from_bytes(own[:_ADDRESS_BYTES], "little"), data, path, depth)
        inner = self._descriptions.struct(member.struct)
        if self._left is not None and member.total_name is not None:
            self._left = number_of(struct, member.total_name, data)
        if inner is not None:
            if member.is_many:
                return self.sequence(inner, own, path, depth + 1, is_cut=False)
            return self.record(inner, own, path, depth + 1)
        if member.raw_type in INLINE:
            length = number_of(struct, member.size_name, data)
            return Bytes(member, own if length is None else own[:length], is_cut=bool(length and length > len(own)))
        bits = 8 * len(own) if member.bits is None else member.bits[1]
        return Number(member, _number(member, own), bits)

    def _led_to(self, struct: Struct, member: Member, address: int, data: bytes, path: Path, depth: int) -> Item:
        piece = self._inner.get(path)
        if piece is None or not address or not (piece or member.raw_type in _MAY_BE_EMPTY or member.is_array):
            return Address(address)
        inner = self._descriptions.struct(member.struct)
        length = number_of(struct, member.size_name, data)
        if inner is None:
            if self._left is not None and member.raw_type == "buffer":
                length = min(len(piece) if length is None else length, self._left)
                self._left -= length
            shown = piece if length is None else piece[:length]
            # A string that ends by itself has more, unless it has ended.
            is_cut = member.raw_type == "wide_string" if length is None else length > len(shown)
            return Bytes(member, shown, is_cut=is_cut)
        if not member.is_array and inner.length is None:
            one = self.record(inner, piece, path, depth + 1)
            # A value without a name, at an address, is told as an array of one.
            return Sequence((one,)) if inner.is_plain else one
        count = number_of(struct, member.count, data)
        if count is not None:
            length = count * inner.size
        return self.sequence(inner, piece, path, depth + 1, is_cut=length is not None and length > len(piece))

    def _holds(self, struct: Struct, condition: MemberCondition, data: bytes) -> bool:
        value = number_of(struct, condition.name, data)
        if value is None:
            return False
        mask = (1 << 64) - 1 if condition.mask is None else condition.mask
        wanted = (self._number(struct, condition.name, one) for one in condition.values)
        size = next(member.size for member in struct.members if member.name == condition.name)
        bits = (1 << 8 * size) - 1
        is_one = any(one is not None and value & mask == one & bits & mask for one in wanted)
        return is_one != condition.is_not

    def _number(self, struct: Struct, name: str, value: int | str) -> int | None:
        """The number that a value of member `name` is, which may be a name of its tables."""
        if isinstance(value, int):
            return value
        tables = (self._descriptions.flag_table(one.flags) for one in struct.members if one.name == name)
        return next((flag.value for table in tables if table and (flag := table.find(value))), None)


def number_of(struct: Struct, name: str | None, data: bytes) -> int | None:
    """The number that a member has, without a sign; None: there is no such member, or it is not in the data."""
    member = None if name is None else struct.find(name)
    if member is None:
        return None
    own = data[member.offset : member.offset + member.size]
    return _number(member, own) if len(own) == member.size else None


def _number(member: Member, data: bytes) -> int:
    """The number that its bytes are, or those of its bits that count."""
    number = int.from_bytes(data, "little")
    return number if member.bits is None else number >> member.bits[0] & (1 << member.bits[1]) - 1


def _elements(struct: Struct, data: bytes) -> Iterator[bytes]:
    """The bytes of each element; of what says itself how long it is, as far as it is there."""
    at = 0
    while at < len(data):
        size = struct.size
        if struct.length is not None:
            size = number_of(struct, struct.length, data[at:]) or 0
            if size < struct.size:
                return
        if at + size > len(data):
            return
        yield data[at : at + size]
        at += -(-size // struct.align) * struct.align
