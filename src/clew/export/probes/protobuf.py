"""Messages of protocol buffers as bytes: what a writer of one fixed format needs of them.

Pure. The encoding is protobuf.dev's ("Encoding"): a field is its number and wire type, then its value.
"""

from __future__ import annotations

import struct
from typing import Final

__all__ = ["bytes_field", "double_field", "integer_field", "varint"]

_VARINT, _FIXED64, _LENGTH = 0, 1, 2
_SMALL: Final = [bytes([value]) for value in range(128)]
_DOUBLE: Final = struct.Struct("<d")


def varint(value: int) -> bytes:
    """An integer, seven bits a byte, the lowest first. Negative ones are those of 64 bits."""
    value &= (1 << 64) - 1
    if value < 128:
        return _SMALL[value]
    out = bytearray()
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def integer_field(number: int, value: int) -> bytes:
    """A field of an integer (int32 to uint64, bool, enum)."""
    return varint(number << 3 | _VARINT) + varint(value)


def double_field(number: int, value: float) -> bytes:
    """A field of a double."""
    return varint(number << 3 | _FIXED64) + _DOUBLE.pack(value)


def bytes_field(number: int, value: bytes | str) -> bytes:
    """A field of a message, bytes, or a text."""
    raw = value.encode(errors="backslashreplace") if isinstance(value, str) else value
    return varint(number << 3 | _LENGTH) + varint(len(raw)) + raw
