"""Structures of headers, as libclang sees them: where their members are, and descriptions of those that are simple.

Runs where prototypes are captured, and in the controller where somebody names headers; needs libclang's binding, which
is imported when it is needed. Types are libclang's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from clew.api.description import Member, Struct
from clew.api.header_cursors import spelled_type
from clew.api.library_types import LibraryTypes, describe_number
from clew.api.vocabulary import MAX_STRUCT_BYTES

__all__ = ["leaves_of", "struct_of"]


def leaves_of(kind: Any, start: int = 0) -> Iterator[tuple[int, int]]:
    """Where the members of a structure are that have no members themselves, and how many bytes they have."""
    from clang.cindex import TypeKind

    for field in kind.get_canonical().get_fields():
        if field.is_bitfield():
            continue
        own, offset = field.type.get_canonical(), start + field.get_field_offsetof() // 8
        if own.kind == TypeKind.RECORD:
            yield from leaves_of(own, offset)
        else:
            yield offset, max(own.get_size(), 0)


def struct_of(name: str, kind: Any, types: LibraryTypes) -> Struct | None:
    """The description of a structure under a name; None: it has no size, or a larger one than descriptions have.

    Members that are bits, or have no name, are left out: there is more in it then.
    """
    size = kind.get_canonical().get_size()
    if not 0 < size <= MAX_STRUCT_BYTES:
        return None
    fields = list(kind.get_canonical().get_fields())
    members = [member for field in fields if (member := _member(field, types)) is not None]
    return Struct(name, size, tuple(members), has_more=len(members) < len(fields))


def _member(field: Any, types: LibraryTypes) -> Member | None:
    from clang.cindex import TypeKind

    own, size = field.type.get_canonical(), field.type.get_size()
    if field.is_bitfield() or not field.spelling or size <= 0:
        return None
    offset, c_type = field.get_field_offsetof() // 8, spelled_type(field.type)

    def made(raw_type: str, **more: Any) -> Member:
        return Member(field.spelling, offset, size, c_type, raw_type, **more)

    match own.kind:
        case TypeKind.POINTER:
            if spelled_type(own) == "const char *":
                return made("string", leads=True)
            return made("pointer")
        case TypeKind.CONSTANTARRAY:
            element = own.element_type.get_canonical()
            if element.kind == TypeKind.CHAR_S:
                return made("string")
            plain = types.plain_struct(spelled_type(own.element_type))
            return made("buffer") if plain is None else made("struct", struct=plain, is_many=True)
        case TypeKind.RECORD:
            inner = types.struct(c_type)
            return made("buffer") if inner is None else made("struct", struct=inner)
        case TypeKind.ENUM:
            return made("enum", flags=types.table(c_type))
    raw_type = describe_number(c_type, field.spelling, types)[1]
    return made(raw_type)
