"""Values of events as text, as babeltrace2 prints them, and as values of JSON.

Pure. Texts are the program's: what drives a terminal, and what is no UTF-8, is written as an escape.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from clew.export.probes.event_types import Field, Shape
from clew.protocol._constants import CaptureType

__all__ = ["MISSING", "fields_text", "plain_text", "quoted_text", "to_json"]

MISSING: Final = "<missing>"
"""What stands for a value that could not be had: no value looks like it."""
_ESCAPES: Final = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\a": "\\a", "\b": "\\b", "\f": "\\f", "\v": "\\v"}


def plain_text(text: str | bytes) -> str:
    """A name on a line: printable."""
    decoded = text.decode(errors="surrogateescape") if isinstance(text, bytes) else text
    return decoded if decoded.isprintable() else "".join(map(_escape, decoded))


def quoted_text(text: bytes) -> str:
    """A text in quotes."""
    decoded = text.decode(errors="surrogateescape")
    if decoded.isprintable():
        # Most are.
        return '"' + decoded.replace("\\", "\\\\").replace('"', '\\"') + '"'
    return '"' + "".join(f"\\{one}" if one in '"\\' else _escape(one) for one in decoded) + '"'


def _escape(one: str) -> str:
    if one.isprintable():
        return one
    if one in _ESCAPES:
        return _ESCAPES[one]
    code = ord(one)
    # A byte that is no UTF-8 (PEP 383).
    code = code - 0xDC00 if 0xDC80 <= code <= 0xDCFF else code
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def fields_text(fields: Sequence[Field], values: Sequence[Any]) -> str:
    """`name = value, ...`."""
    listed = zip(fields, values, strict=True)
    return ", ".join(f"{plain_text(field.name)} = {_value_text(field, value)}" for field, value in listed)


def _value_text(field: Field, value: Any) -> str:
    if value is None:
        return MISSING
    if field.type is Shape.POINTER:
        return _hex(value)
    if field.type is Shape.BYTES or field.type is Shape.BACKTRACE:
        inner = ", ".join(f"[{index}] = {_hex(one)}" for index, one in enumerate(value))
        return f"[ {inner} ]" if inner else "[ ]"
    if field.type is Shape.REGISTERS:
        inner = ", ".join(f"{plain_text(name)} = {_hex(value[name])}" for name in field.members)
        return f"{{ {inner} }}" if inner else "{ }"
    if field.type is CaptureType.TEXT:
        return quoted_text(value)
    if isinstance(value, float):
        # Whole numbers as babeltrace2 has them; others as short as they can be told exactly.
        return f"{value:g}" if float(f"{value:g}") == value or value != value else repr(value)
    return str(value)


def _hex(value: int) -> str:
    return f"0x{value:X}"


def to_json(field: Field, value: Any) -> Any:
    """A value of JSON. Addresses and registers are hexadecimal strings, floating-point numbers that JSON has no form
    for strings, bytes hexadecimal digits; text that is no UTF-8 has surrogates (PEP 383) for its bytes."""
    if value is None:
        return None
    if field.type is Shape.POINTER:
        return f"{value:#x}"
    if field.type is Shape.BACKTRACE:
        return [f"{one:#x}" for one in value]
    if field.type is Shape.REGISTERS:
        return {name: f"{value[name]:#x}" for name in field.members}
    if field.type is Shape.BYTES:
        return value.hex()
    if isinstance(value, bytes):
        return value.decode(errors="surrogateescape")
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return str(value)
    return value
