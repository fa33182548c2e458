"""What of a call tables and JSON have: its arguments by name, type, number and text, its result, its error.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

from clew.api.description import Function
from clew.api.descriptions import Descriptions
from clew.api.pieces import register_of
from clew.api.text import argument_text, result_text
from clew.api.values import number_of
from clew.api.vocabulary import RESULT

if TYPE_CHECKING:
    from clew.sessions.api_calls import ApiCall

__all__ = ["iter_arguments", "result_of"]

_UNKNOWN_ERROR: Final = "failed"
"""Of a function of a library: the number is in errno, which is not taken."""
_NUMBER_BITS: Final = 64
"""What is longer, as numbers of x87's are, has only its text."""


def result_of(call: ApiCall, seen: Function, descriptions: Descriptions) -> dict[str, Any]:
    """Its `result` as a number of its type, that as text, and its `error`, a name or `failed`; None for none of them.
    `seen`: the function as it looks with the call's values."""
    if call.result is None:
        return {"result": None, "result_text": None, "error": None}
    text, own = result_text(seen, call.result, descriptions), seen.result
    words, error = text.split(), None
    if call.has_failed:
        error = words[1] if len(words) > 1 else _UNKNOWN_ERROR
    result = call.result if own is None or call.function.has_failed(call.result) else number_of(call.result, own.c_type)
    return {"result": result, "result_text": text, "error": error}


def iter_arguments(
    call: ApiCall, seen: Function, descriptions: Descriptions, limit: int | None
) -> Iterator[dict[str, Any]]:
    """Each argument: `name`, `type`, `value` (a number, an address in hexadecimal; not there where nobody knows it) and
    `text`, with so many bytes of strings and buffers at most. Of what nobody describes the values alone."""
    if seen.parameters is None:
        for value in call.values:
            yield {"value": hex((value if isinstance(value, int) else 0) & 0xFFFFFFFFFFFFFFFF)}
        return
    for parameter in seen.parameters:
        if parameter.index == RESULT:
            continue
        value = call.values[parameter.index] if parameter.index < len(call.values) else None
        number = register_of(value)
        told: dict[str, Any] = {"name": parameter.name, "type": parameter.c_type}
        if number is not None and parameter.hidden != "secret" and number.bit_length() <= _NUMBER_BITS:
            is_address = parameter.is_pointer
            told["value"] = hex(number & 0xFFFFFFFFFFFFFFFF) if is_address else number_of(number, parameter.c_type)
        told["text"] = argument_text(parameter, value, descriptions, limit=limit)
        yield told
