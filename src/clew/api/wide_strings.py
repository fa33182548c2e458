"""Strings of wide characters, `wchar_t`, which have four bytes each: where they end, and how they are written.

Runs in the controller. Pure. What a program has there may be no characters at all.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from clew.api.values import escaped

__all__ = ["WIDE_BYTES", "narrowed", "wide_characters", "wide_text"]

WIDE_BYTES: Final = 4
"""Of a character."""

_OCTAL_END: Final = 128
_MOST: Final = 0x10FFFF
_SURROGATES: Final = range(0xD800, 0xE000)


def wide_characters(data: bytes) -> tuple[list[int], bool]:
    """The numbers of the characters up to one that is 0, and whether there is one."""
    whole = (data[at : at + WIDE_BYTES] for at in range(0, len(data) - WIDE_BYTES + 1, WIDE_BYTES))
    found: list[int] = []
    for character in whole:
        number = int.from_bytes(character, "little")
        if not number:
            return found, True
        found.append(number)
    return found, False


def narrowed(data: bytes) -> bytes:
    """The characters as bytes, one each: those that are no ASCII are no part of any directive."""
    return bytes(number if number < 128 else 0xFF for number in wide_characters(data)[0])


def wide_text(data: bytes, limit: int | None, redact: Callable[[bytes], bytes] | None, *, is_cut: bool = False) -> str:
    """`L"..."`, the first `limit` characters; `...` behind it where there are more, or where `is_cut` and it does not
    end in the data. `redact` cuts out of the text, in UTF-8, what is not to be told."""
    numbers, has_ended = wide_characters(data)
    if redact is not None:
        text = "".join(chr(one) if _is_character(one) else "\ufffd" for one in numbers)
        shown = redact(text.encode())
        if shown != text.encode():
            numbers = [ord(one) for one in shown.decode(errors="replace")]
    told = numbers if limit is None else numbers[:limit]
    return f'L"{escaped(told, _OCTAL_END)}"{"..." if (is_cut and not has_ended) or len(told) < len(numbers) else ""}'


def _is_character(number: int) -> bool:
    return number <= _MOST and number not in _SURROGATES
