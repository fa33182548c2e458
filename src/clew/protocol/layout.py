"""Structs as bytes, without numpy: for what is written before the target runs.

Runs in the controller. Pure.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from clew.protocol._constants import LAYOUTS

__all__ = ["field_offset", "pack_struct", "row_of", "unpack_number"]


def pack_struct(name: str, **values: int | bytes | Sequence[int]) -> bytes:
    """The bytes of struct `name`: the fields given, zeros elsewhere. Integer arrays may be given in part.

    Raises KeyError for an unknown field, struct.error for a value out of range.
    """
    size_bytes, fields = LAYOUTS[name]
    data = bytearray(size_bytes)
    for field, value in values.items():
        offset, layout = fields[field]
        if isinstance(value, int | bytes):
            struct.pack_into(layout, data, offset, value)
        else:
            if len(value) * struct.calcsize("<" + layout[-1]) > struct.calcsize(layout):
                raise struct.error(f"{name}.{field}: {len(value)} values don't fit")
            struct.pack_into(f"<{len(value)}{layout[-1]}", data, offset, *value)
    return bytes(data)


def field_offset(name: str, field: str) -> int:
    """Offset of `field` in struct `name`, in bytes."""
    return LAYOUTS[name][1][field][0]


def row_of(name: str) -> struct.Struct:
    """All fields of struct `name`, in their order: it has no arrays and no gaps."""
    return struct.Struct("<" + "".join(layout.removeprefix("<") for _, layout in LAYOUTS[name][1].values()))


def unpack_number(data: bytes, name: str, field: str) -> int:
    """`field` of struct `name` in `data`, an integer; of an array the first. Raises struct.error if `data` is short."""
    offset, layout = LAYOUTS[name][1][field]
    return int(struct.unpack_from("<" + layout[-1], data, offset)[0])
