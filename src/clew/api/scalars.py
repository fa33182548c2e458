"""How single numbers are written by their raw types and tables.

Runs in the controller. Pure.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from clew.api.description import Member, Parameter
from clew.api.descriptions import Descriptions
from clew.api.values import (
    address4_text,
    device_text,
    enum_text,
    flags_text,
    float_text,
    hexadecimal,
    limit_text,
    mode_text,
    pointer_text,
    real_time_signal,
    request_text,
    signed,
    unsigned,
    wait_status_text,
)
from clew.api.vocabulary import POINTERS

__all__ = ["name_of", "number_text", "signal_text"]

_SIGNALS: Final = "signals"
_CLOCKS: Final = "clocks"
_DIRECTORY_FD: Final = "directory_fd"
"""Names of tables that raw types have of themselves."""


def number_text(one: Member | Parameter, value: int, bits: int, descriptions: Descriptions) -> str:
    """A number of `bits` by what it is."""
    raw_type = one.raw_type
    table = descriptions.flag_table(one.flags or _OWN_TABLES.get(raw_type))
    if table is not None and raw_type in _OWN_TABLES:
        named = name_of(table.name, value, descriptions)
        return named or (real_time_signal(signed(value, 32)) if raw_type == "signal" else str(signed(value, 32)))
    if raw_type == "wait_status":
        return wait_status_text(value, lambda signal: signal_text(signal, descriptions))
    if table is not None and raw_type in _NAMED:
        # A few numbers have names.
        named = next((flag.name for flag in table.flags if unsigned(flag.value, bits) == unsigned(value, bits)), None)
        return named or _WRITERS[raw_type](value, bits)
    if table is not None and raw_type == "mode":
        number = unsigned(value, bits)
        return flags_text(table, number, mode_text) if number else mode_text(number)
    if table is not None:
        return flags_text(table, unsigned(value, bits)) if table.kind == "flags" else enum_text(table, value, bits)
    return _WRITERS[raw_type](value, bits)


def name_of(table_name: str, value: int, descriptions: Descriptions) -> str | None:
    """The name that a table has for a number of 32 bits."""
    number = signed(value, 32)
    table = descriptions.flag_table(table_name)
    return next((flag.name for flag in table.flags if flag.value == number), None) if table else None


def signal_text(value: int, descriptions: Descriptions) -> str:
    """A signal by its name, or its number."""
    return name_of(_SIGNALS, value, descriptions) or real_time_signal(value)


def _decimal(value: int, bits: int) -> str:
    return str(signed(value, bits))


def _natural(value: int, bits: int) -> str:
    return str(unsigned(value, bits))


def _hexadecimal(value: int, bits: int) -> str:
    return hexadecimal(unsigned(value, bits))


def _mode(value: int, bits: int) -> str:
    return mode_text(unsigned(value, bits))


def _pointer(value: int, _: int) -> str:
    return pointer_text(value)


def _user(value: int, bits: int) -> str:
    # All ones stand for no user and no group.
    number = unsigned(value, bits)
    return "-1" if number == (1 << bits) - 1 else str(number)


def _descriptor(value: int, _: int) -> str:
    return str(signed(value, 32))


_OWN_TABLES: Final = {"fd": _DIRECTORY_FD, "signal": _SIGNALS, "clock": _CLOCKS}
_NAMED: Final = frozenset({"limit", "request", "int", "uint", "long", "ulong", "size", "offset", "hex"})
"""Raw types of which a table has names for some numbers."""

_WRITERS: Final[dict[str, Callable[[int, int], str]]] = {
    "int": _decimal,
    "uint": _natural,
    "long": _decimal,
    "ulong": _natural,
    "hex": _hexadecimal,
    "fd": _descriptor,
    "size": _natural,
    "offset": _decimal,
    "mode": _mode,
    "pid": _descriptor,
    "tid": _descriptor,
    "uid": _user,
    "gid": _user,
    "signal": _decimal,
    "clock": _decimal,
    "flags": _hexadecimal,
    "enum": _hexadecimal,
    "device": lambda value, bits: device_text(unsigned(value, bits)),
    "address4": lambda value, _: address4_text(unsigned(value, 32)),
    "limit": lambda value, bits: limit_text(unsigned(value, bits)),
    "request": lambda value, _: request_text(unsigned(value, 32)),
    "wait_status": _hexadecimal,
    "float": float_text,
    # Where it is nobody has looked.
    "raw": lambda _, __: "?",
    **dict.fromkeys(POINTERS, _pointer),
}
