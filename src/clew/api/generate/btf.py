"""Reads BTF, the types of a kernel as it has them itself: structures that headers lack, or have as they once were.

Runs on a developer's machine. Only what layouts and enumerations need is read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["KERNEL_TYPES", "Btf"]

KERNEL_TYPES: Final = Path("/sys/kernel/btf/vmlinux")

_MAGIC: Final = 0xEB9F
_HEADER: Final = struct.Struct("<HBBIIIII")
_TYPE: Final = struct.Struct("<III")
_INT, _PTR, _ARRAY, _STRUCT, _UNION, _ENUM, _FORWARD, _TYPEDEF = range(1, 9)
_VOLATILE, _CONST, _RESTRICT, _FUNCTION, _PROTOTYPE, _VARIABLE, _SECTION, _FLOAT, _DECL_TAG, _TYPE_TAG, _ENUM64 = range(
    9, 20
)
_NAMED_BELOW: Final = frozenset({_TYPEDEF, _VOLATILE, _CONST, _RESTRICT, _TYPE_TAG})
_BEHIND: Final = {_INT: 4, _ARRAY: 12, _VARIABLE: 4, _DECL_TAG: 4}
_BEHIND_EACH: Final = {_STRUCT: 12, _UNION: 12, _ENUM: 8, _PROTOTYPE: 8, _SECTION: 12, _ENUM64: 12}
_WORDS: Final = {_STRUCT: "struct", _UNION: "union", _ENUM: "enum", _ENUM64: "enum"}
_ADDRESS_BYTES: Final = 8


@dataclass(frozen=True)
class _Type:
    name: str
    kind: int
    n: int
    """How many members, values and so on are behind it."""
    has_bits: bool
    """Members say in bits how large they are; values have a sign."""
    size: int
    """In bytes, or which type it is of."""
    at: int
    """Where what is behind it begins."""


class Btf:
    """The types in `data`. Raises ValueError where it is none, or of another version."""

    def __init__(self, data: bytes) -> None:
        magic, version, _, head, type_at, type_bytes, text_at, text_bytes = _HEADER.unpack_from(data)
        if magic != _MAGIC or version != 1:
            raise ValueError("no BTF of version 1")
        self._data = data
        self._texts = data[head + text_at : head + text_at + text_bytes]
        self._types = [_Type("void", 0, 0, False, 0, 0)]
        at, end = head + type_at, head + type_at + type_bytes
        while at < end:
            name, info, size = _TYPE.unpack_from(data, at)
            kind, n = info >> 24 & 0x1F, info & 0xFFFF
            at += _TYPE.size
            self._types.append(_Type(self._text(name), kind, n, bool(info >> 31), size, at))
            at += _BEHIND.get(kind, 0) + n * _BEHIND_EACH.get(kind, 0)
        self._named = {(one.kind, one.name): number for number, one in enumerate(self._types) if one.name}

    def _text(self, at: int) -> str:
        return self._texts[at : self._texts.index(0, at)].decode("ascii")

    def layout(self, name: str, part: int | None = None) -> tuple[int, list[tuple[str, int, int, str]]]:
        """The size of `struct NAME` or `union NAME`, and its members: path with dots, offset, size, C type. What is
        nameless is left out of paths; with a `part` only what is in the member of that number is told. Raises
        KeyError."""
        number = self._named.get((_STRUCT, name), self._named.get((_UNION, name)))
        if number is None:
            raise KeyError(name)
        if part is not None:
            members = list(self._fields(number))
            return self._size(number), list(self._members(members[part][2], "", 0))
        return self._size(number), list(self._members(number, "", 0))

    def values(self, name: str) -> list[tuple[str, int]]:
        """The names and values of `enum NAME`. Raises KeyError."""
        number = self._named.get((_ENUM, name), self._named.get((_ENUM64, name)))
        if number is None:
            raise KeyError(name)
        one = self._types[number]
        form = struct.Struct(("<Ii" if one.has_bits else "<II") if one.kind == _ENUM else "<III")
        found = []
        for index in range(one.n):
            text, value, *high = form.unpack_from(self._data, one.at + index * form.size)
            found.append((self._text(text), value | high[0] << 32 if high else value))
        return found

    def _fields(self, number: int) -> Iterator[tuple[str, int, int]]:
        """Members of a structure: name, offset in bytes, type. Bit fields are left out."""
        one = self._types[number]
        for index in range(one.n):
            text, kind, offset = struct.unpack_from("<III", self._data, one.at + 12 * index)
            if one.has_bits and offset >> 24:
                continue
            yield self._text(text), (offset & 0xFFFFFF if one.has_bits else offset) // 8, kind

    def _members(self, number: int, path: str, start: int) -> Iterator[tuple[str, int, int, str]]:
        for name, offset, kind in self._fields(number):
            own = f"{path}.{name}".strip(".") if name else path
            if name:
                yield own, start + offset, self._size(kind), self._spelling(kind)
            below = self._plain(kind)
            if self._types[below].kind in (_STRUCT, _UNION):
                yield from self._members(below, own, start + offset)

    def _plain(self, number: int) -> int:
        while self._types[number].kind in _NAMED_BELOW:
            number = self._types[number].size
        return number

    def _array(self, one: _Type) -> tuple[int, int]:
        """The type of an array's elements, and how many there are."""
        element, _, count = struct.unpack_from("<III", self._data, one.at)
        return element, count

    def _size(self, number: int) -> int:
        one = self._types[self._plain(number)]
        if one.kind == _PTR:
            return _ADDRESS_BYTES
        if one.kind == _ARRAY:
            element, count = self._array(one)
            return self._size(element) * count
        return one.size if one.kind in (_INT, _STRUCT, _UNION, _ENUM, _ENUM64, _FLOAT) else 0

    def _spelling(self, number: int) -> str:
        """A type as C has it, as far as a line has room."""
        one = self._types[number]
        match one.kind:
            case 8 | 1 | 16:
                return one.name
            case 2:
                return f"{self._spelling(one.size)} *"
            case 3:
                counts, element = "", number
                while self._types[element].kind == _ARRAY:
                    element, count = self._array(self._types[element])
                    counts += f"[{count or ''}]"
                return f"{self._spelling(element)}{counts}"
            case 10 | 9:
                word = "const" if one.kind == _CONST else "volatile"
                return f"{word} {self._spelling(one.size)}"
            case 11 | 18:
                return self._spelling(one.size)
            case 12 | 13:
                return "function"
            case 7:
                return f"{'union' if one.has_bits else 'struct'} {one.name}"
        return f"{_WORDS.get(one.kind, '')} {one.name or 'nameless'}".strip()
