"""Writes calls as text, as tools for system calls do: `openat(AT_FDCWD, "x", O_RDONLY) = -1 ENOENT (No such ...)`.

Runs in the controller. Pure functions of descriptions and of values that were taken somewhere else: an int is what the
register held, bytes are what it led to, `Pointed` has both, None is what nobody knows.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from clew.api.argument_words import LONG_DOUBLE
from clew.api.decoding import Record, decode
from clew.api.description import Function, Parameter
from clew.api.descriptions import Descriptions
from clew.api.pieces import Pointed, Value, register_of
from clew.api.scalars import name_of, number_text
from clew.api.struct_text import Style, behind_text, item_text, named_text, pointed_text
from clew.api.values import REDACTED, is_error, pointer_text, quoted, signed, size_text, unsigned, width_bits
from clew.api.vocabulary import RESULT

__all__ = ["DEFAULT_LIMIT_BYTES", "Pointed", "Value", "argument_text", "call_text", "result_text"]

DEFAULT_LIMIT_BYTES: Final = 32
"""How much is told of what is no file's name, if nothing else is asked for."""

_ERRORS: Final = "errors"
_SIGNALS: Final = "signals"
"""Names of tables."""


def argument_text(
    parameter: Parameter,
    value: Value,
    descriptions: Descriptions,
    *,
    limit: int | None = DEFAULT_LIMIT_BYTES,
    has_details: bool = False,
    name_of: Callable[[int], str | None] | None = None,
) -> str:
    """An argument by what its parameter is. `limit`: how many bytes of strings and buffers, and elements of arrays, are
    told; None: all. `has_details`: whether all members of structures are. `name_of` says what descriptors stand for
    that are in structures."""
    if parameter.hidden is not None:
        return hidden_text(parameter, value)
    if value is None:
        return "?"
    if isinstance(value, bytes):
        told = pointed_text(parameter, Pointed(0, value), descriptions, Style(limit, has_details))
        return quoted(value, limit) if told is None else told
    if isinstance(value, int):
        return _number_text(parameter, value, descriptions)
    if not parameter.is_pointer:
        return _number_text(parameter, value.address, descriptions)
    if not unsigned(value.address, 64):
        return pointer_text(value.address)
    style = Style(limit, has_details, None, value.before, name_of)
    if parameter.behind is not None:
        shown, style = _as_before(value), Style(limit, has_details, "in", None, name_of)
    elif parameter.is_answered:
        return _answered_text(parameter, value, descriptions, style)
    elif parameter.direction != "out" and (value.data is None or parameter.direction == "in"):
        # Of a call that has left nothing it is told what it found.
        side = "in" if parameter.direction == "inout" else None
        shown, style = _as_before(value), Style(limit, has_details, side, None, name_of)
    else:
        shown = value
    return pointed_text(parameter, shown, descriptions, style) or pointer_text(value.address)


def _answered_text(parameter: Parameter, value: Pointed, descriptions: Descriptions, style: Style) -> str:
    """A structure as a call found it, and behind that what the call has written."""
    before = style.inside()._replace(side="in")
    found = pointed_text(parameter, _as_before(value), descriptions, before) or pointer_text(value.address)
    item = None if value.data is None else decode(parameter, value.data, descriptions, value.inner)
    if not isinstance(item, Record):
        return found
    written = Record(item.struct, tuple(one for one in item.members if one[0].side == "out"), item.is_cut)
    if not written.members:
        return found
    return f"{found} => {item_text(written, descriptions, style.inside()._replace(side='out'))}"


def hidden_text(parameter: Parameter, value: Value) -> str:
    """An argument that is not to be told: of data how much there is."""
    address = register_of(value)
    if parameter.is_pointer and address is not None and not unsigned(address, 64):
        return pointer_text(address)
    if parameter.hidden == "secret":
        return REDACTED
    if isinstance(value, Pointed) and value.total is not None:
        return size_text(value.total)
    return "?" if address is None else pointer_text(address)


def _as_before(value: Pointed) -> Pointed:
    """What an argument led to when the call began, where that was taken besides."""
    if value.before is None:
        return value
    return Pointed(value.address, value.before, value.is_cut, None, value.inner_before)


def _number_text(parameter: Parameter, value: int, descriptions: Descriptions) -> str:
    return number_text(parameter, value, width_bits(parameter.c_type), descriptions)


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
    if result.raw_type == "raw" and result.c_type == LONG_DOUBLE:
        return "? (in st(0))"
    text = _number_text(result, value, descriptions)
    table = descriptions.flag_table(result.flags)
    # Who reads results looks for the number.
    if table is not None and table.kind == "flags":
        bits = unsigned(value, width_bits(result.c_type))
        if table.macro is not None:
            return f"{bits} ({text})"
        return f"{bits:#x} (flags {text})" if bits or text != "0" else "0"
    if table is not None and table.kind == "enum":
        named = name_of(table.name, value, descriptions)
        own = signed(value, width_bits(result.c_type))
        return f"{own} ({named})" if named else str(own)
    if result.raw_type == "signal" and name_of(_SIGNALS, value, descriptions):
        return f"{number} ({text})"
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
    has_details: bool = False,
    names: Mapping[int, str] | None = None,
    name_of: Callable[[int], str | None] | None = None,
) -> str:
    """A whole call: name, arguments, result. `values` are by index of the argument; what is missing is not known.

    Of a function whose parameters nobody knows all values are told, in hexadecimal. `names`: what descriptors stand
    for, by index of the argument, RESULT for the result; `name_of` says it of those that are in structures.
    """
    names = names or {}
    registers = [register_of(value) for value in values]
    seen = descriptions.with_values(function, registers)
    if seen.parameters is None:
        arguments = [_unknown_text(value, limit) for value in values]
    else:
        by_index: dict[int, Value] = dict(enumerate(values))
        arguments = [
            _name_in_front(parameter)
            + (
                "[]"
                if _is_empty_array(parameter, by_index)
                else argument_text(
                    parameter,
                    by_index.get(parameter.index),
                    descriptions,
                    limit=limit,
                    has_details=has_details,
                    name_of=name_of,
                )
            )
            + named_text(names.get(parameter.index))
            for parameter in _told_arguments(seen)
            if not _is_left_out(parameter, by_index.get(parameter.index))
        ]
    behind = _behind(seen, values, result, descriptions, Style(limit, has_details, "out", None, name_of))
    told = result_text(seen, result, descriptions, errno=errno) + named_text(names.get(RESULT))
    return f"{function.name}({', '.join(arguments)}) = {told}{behind}"


def _is_empty_array(parameter: Parameter, values: Mapping[int, Value]) -> bool:
    """Whether it leads to elements of which there are none, so that nothing was taken."""
    own = values.get(parameter.index)
    if (
        parameter.count is None
        or parameter.raw_type == "wide_string"
        or parameter.hidden is not None
        or (isinstance(own, Pointed) and own.data is not None)
    ):
        return False
    count = register_of(values.get(parameter.count))
    return bool(register_of(own)) and count is not None and not unsigned(count, 32)


def _told_arguments(function: Function) -> Sequence[Parameter]:
    """The arguments that are told, in their order."""
    if function.told is None:
        return function.arguments
    by_index = {parameter.index: parameter for parameter in function.arguments}
    return [by_index[index] for index in function.told if index in by_index]


def _name_in_front(parameter: Parameter) -> str:
    name = parameter.called or (parameter.name if parameter.is_named else None)
    return "" if name is None else f"{name}="


def _is_left_out(parameter: Parameter, value: Value) -> bool:
    """Whether it is no argument to tell: nothing is there, or it is told behind the result."""
    return (parameter.is_named and not register_of(value)) or (
        parameter.behind is not None and not parameter.is_pointer
    )


def _behind(
    function: Function, values: Sequence[Value], result: int | None, descriptions: Descriptions, style: Style
) -> str:
    """What is told behind the result of a call that found something."""
    if not function.arguments_behind:
        return ""
    by_index = dict(enumerate(values))
    found = [(one, by_index.get(one.index)) for one in function.arguments_behind]
    told: list[str | None] = [
        f"{one.behind} {_number_text(one, value, descriptions)}".lstrip()
        for one, value in found
        if isinstance(value, int) and value and not one.is_pointer
    ]
    if result and not is_error(function, signed(result, 64)):
        told += [behind_text(one, value, descriptions, style) for one, value in found if isinstance(value, Pointed)]
    pieces = [one for one in told if one]
    return f" ({', '.join(pieces)})" if pieces else ""


def _unknown_text(value: Value, limit: int | None) -> str:
    if isinstance(value, bytes):
        return quoted(value, limit)
    number = register_of(value)
    return "?" if number is None else f"{unsigned(number, 64):#x}"
