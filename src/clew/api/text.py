"""Writes calls as text, as tools for system calls do: `openat(AT_FDCWD, "x", O_RDONLY) = -1 ENOENT (No such ...)`.

Runs in the controller. Pure functions of descriptions and of values that were taken somewhere else: an int is what the
register held, bytes are what it led to, `Pointed` has both, None is what nobody knows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Final

from clew.api.description import RESULT, Function, Parameter
from clew.api.descriptions import Descriptions
from clew.api.values import (
    enum_text,
    flags_text,
    mode_text,
    pointer_text,
    quoted,
    signed,
    sockaddr_text,
    timespec_text,
    unsigned,
    width_bits,
)
from clew.dataclass import dataclass

__all__ = ["DEFAULT_LIMIT_BYTES", "Pointed", "Value", "argument_text", "call_text", "result_text"]

DEFAULT_LIMIT_BYTES: Final = 32
"""How much is told of what is no file's name, if nothing else is asked for."""

_ERRORS: Final = "errors"
_SIGNALS: Final = "signals"
_CLOCKS: Final = "clocks"
_DIRECTORY_FD: Final = "directory_fd"
_FAMILIES: Final = "socket_families"
"""Names of tables that raw types have of themselves."""


@dataclass(frozen=True)
class Pointed:
    """An argument that leads somewhere: its `address`, and what is there. `data` is None where that could not be read,
    and `is_cut` says that there is more of it than `data` has."""

    address: int
    data: bytes | None = None
    is_cut: bool = False


Value = int | bytes | Pointed | None


def argument_text(
    parameter: Parameter, value: Value, descriptions: Descriptions, *, limit: int | None = DEFAULT_LIMIT_BYTES
) -> str:
    """An argument by what its parameter is. `limit`: how many bytes of strings and buffers are told; None: all."""
    if value is None:
        return "?"
    if isinstance(value, Pointed):
        if value.data is None or not unsigned(value.address, 64):
            return pointer_text(value.address)
        told = _pointed_text(parameter, value.data, descriptions, limit, is_cut=value.is_cut)
        return pointer_text(value.address) if told is None else told
    if isinstance(value, bytes):
        told = _pointed_text(parameter, value, descriptions, limit, is_cut=False)
        return quoted(value, limit) if told is None else told
    return _number_text(parameter, value, descriptions)


def _pointed_text(
    parameter: Parameter, data: bytes, descriptions: Descriptions, limit: int | None, *, is_cut: bool
) -> str | None:
    """What a pointer leads to; None: nothing is known of how to write that."""
    raw_type = parameter.raw_type
    if raw_type in ("path", "string"):
        text, end, _ = data.partition(b"\0")
        return quoted(text, None if raw_type == "path" else limit, is_cut=is_cut and not end)
    if raw_type == "buffer":
        return quoted(data, limit, is_cut=is_cut)
    if raw_type == "timespec":
        return timespec_text(data)
    if raw_type == "sockaddr":
        return sockaddr_text(data, descriptions.flag_table(_FAMILIES))
    return None


def _number_text(parameter: Parameter, value: int, descriptions: Descriptions) -> str:
    raw_type, bits = parameter.raw_type, width_bits(parameter.c_type)
    if parameter.is_pointer:
        return pointer_text(value)
    table = descriptions.flag_table(parameter.flags or _OWN_TABLES.get(raw_type))
    if table is not None and raw_type in _OWN_TABLES:
        return _named_or_number(table.name, value, descriptions)
    if table is not None:
        return flags_text(table, unsigned(value, bits)) if table.kind == "flags" else enum_text(table, value, bits)
    return _WRITERS[raw_type](value, bits)


def _named_or_number(table_name: str, value: int, descriptions: Descriptions) -> str:
    """A number that has a name in few cases, or is a plain one: both of 32 bits."""
    number = signed(value, 32)
    table = descriptions.flag_table(table_name)
    named = next((flag.name for flag in table.flags if flag.value == number), None) if table else None
    return named or str(number)


def _decimal(value: int, bits: int) -> str:
    return str(signed(value, bits))


def _natural(value: int, bits: int) -> str:
    return str(unsigned(value, bits))


def _hexadecimal(value: int, bits: int) -> str:
    number = unsigned(value, bits)
    return f"{number:#x}" if number else "0"


def _mode(value: int, bits: int) -> str:
    return mode_text(unsigned(value, bits))


def _user(value: int, bits: int) -> str:
    # All ones stand for no user and no group.
    number = unsigned(value, bits)
    return "-1" if number == (1 << bits) - 1 else str(number)


_OWN_TABLES: Final = {"fd": _DIRECTORY_FD, "signal": _SIGNALS, "clock": _CLOCKS}

_WRITERS: Final[dict[str, Callable[[int, int], str]]] = {
    "int": _decimal,
    "uint": _natural,
    "long": _decimal,
    "ulong": _natural,
    "hex": _hexadecimal,
    "fd": lambda value, _: str(signed(value, 32)),
    "size": _natural,
    "offset": _decimal,
    "mode": _mode,
    "pid": lambda value, _: str(signed(value, 32)),
    "tid": lambda value, _: str(signed(value, 32)),
    "uid": _user,
    "gid": _user,
    "signal": _decimal,
    "clock": _decimal,
    "flags": _hexadecimal,
    "enum": _hexadecimal,
}


def result_text(
    function: Function, value: int | None, descriptions: Descriptions | None = None, *, errno: int | None = None
) -> str:
    """What a call returned, with the error if it is one; `?` for a call that did not return.

    `errno` is the number that a library's function left; system calls have it in their result. Without descriptions
    errors have no names.
    """
    if value is None:
        return "?"
    descriptions = Descriptions() if descriptions is None else descriptions
    number = signed(value, 64)
    if function.has_failed(number):
        return f"-1 {_error_text(-number, descriptions)}"
    result = function.result
    if result is None:
        return str(number) if function.error == "negative_errno" else f"{unsigned(value, 64):#x}"
    if result.c_type == "void":
        return "<void>"
    if function.error == "minus_one_errno" and signed(value, width_bits(result.c_type)) == -1:
        return "-1" if errno is None else f"-1 {_error_text(errno, descriptions)}"
    if function.error == "null_errno" and not number:
        return "NULL" if errno is None else f"NULL {_error_text(errno, descriptions)}"
    text = _number_text(result, value, descriptions)
    table = descriptions.flag_table(result.flags)
    if table is not None and table.kind == "flags":
        # Who reads results looks for the number.
        bits = unsigned(value, width_bits(result.c_type))
        return f"{bits:#x} (flags {text})" if bits or text != "0" else "0"
    return text


def _error_text(errno: int, descriptions: Descriptions) -> str:
    table = descriptions.flag_table(_ERRORS)
    name = next((flag.name for flag in table.flags if flag.value == errno), None) if table else None
    return f"(errno {errno})" if name is None else f"{name} ({os.strerror(errno)})"


def call_text(
    function: Function,
    values: Sequence[Value],
    result: int | None,
    descriptions: Descriptions,
    *,
    limit: int | None = DEFAULT_LIMIT_BYTES,
    errno: int | None = None,
) -> str:
    """A whole call: name, arguments, result. `values` are by index of the argument; what is missing is not known.

    Of a function whose parameters nobody knows all values are told, in hexadecimal.
    """
    registers = [_register(value) for value in values]
    seen = descriptions.with_values(function, registers)
    if seen.parameters is None:
        arguments = [_unknown_text(value, limit) for value in values]
    else:
        by_index: dict[int, Value] = dict(enumerate(values))
        arguments = [
            argument_text(parameter, by_index.get(parameter.index), descriptions, limit=limit)
            for parameter in seen.parameters
            if parameter.index != RESULT
        ]
    return f"{function.name}({', '.join(arguments)}) = {result_text(seen, result, descriptions, errno=errno)}"


def _register(value: Value) -> int | None:
    """The number that an argument is, if one is there; variants and conditions ask for no others."""
    if isinstance(value, Pointed):
        return value.address
    return value if isinstance(value, int) else None


def _unknown_text(value: Value, limit: int | None) -> str:
    if isinstance(value, bytes):
        return quoted(value, limit)
    number = _register(value)
    return "?" if number is None else f"{unsigned(number, 64):#x}"
