"""The values of events as arguments and results of calls, as the table `calls` has them.

Pure. Values are JSON that the program had a hand in.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

from clew.analysis.tables.told_json import read_json

__all__ = ["make_printable", "read_values", "tell_arguments", "tell_result"]

_RESULT: Final = "retval"
_OF_PLACES: Final = ("ip", "parent_ip")
"""Told behind all that was asked for."""
_OF_RETURNS: Final = ("ip", "duration", _RESULT)
"""Not among what a return adds to its call."""
_ADDRESS: Final = re.compile(r"0x[0-9a-f]{1,16}")
_MOST_LISTED: Final = 128


def read_values(text: str) -> dict[str, Any]:
    """The values by their names; none where the text is no object of JSON."""
    found = read_json(text)
    return found if isinstance(found, dict) else {}


def tell_arguments(
    values: dict[str, Any], returned: dict[str, Any], name_of: Callable[[int], str | None]
) -> list[dict[str, Any]]:
    """What was taken where a call began, or at a place; then what was where it returned. `name_of` names addresses of
    places, and of callers."""
    asked = [pair for pair in values.items() if pair[0] not in _OF_PLACES]
    asked += [pair for pair in returned.items() if pair[0] not in _OF_RETURNS]
    asked += [(name, values[name]) for name in _OF_PLACES if name in values]
    found: list[dict[str, Any]] = []
    for name, value in asked:
        if isinstance(value, list) or name in _OF_PLACES:
            found.append({"name": make_printable(name)} | _tell_places(value, name_of))
            continue
        members = value.items() if isinstance(value, dict) else [(name, value)]
        found += [{"name": make_printable(inner)} | _tell(one) for inner, one in members]
    return found


def _tell_places(value: Any, name_of: Callable[[int], str | None]) -> dict[str, Any]:
    """An address with its name, or several, from the innermost call on."""
    if not isinstance(value, list):
        name = _name(value, name_of)
        return _tell(value) if name is None else {"value": value, "text": name}
    return {"text": " < ".join(_name(one, name_of) or make_printable(str(one)) for one in value[:_MOST_LISTED])}


def _name(value: Any, name_of: Callable[[int], str | None]) -> str | None:
    if not isinstance(value, str) or not _ADDRESS.fullmatch(value):
        return None
    name = name_of(int(value, 16))
    return None if name is None else make_printable(name)


def tell_result(returned: dict[str, Any]) -> tuple[int | None, str | None]:
    """The result as a signed number of 64 bits, or None; and what it is otherwise, or None."""
    value = returned.get(_RESULT)
    if isinstance(value, int):
        return (value + (1 << 63)) % (1 << 64) - (1 << 63), None
    return None, None if value is None else str(_tell(value).get("value", _tell(value).get("text")))


def make_printable(text: str) -> str:
    """`text` with what is not printable, and halves of characters, as escapes."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else _escape(ord(one)) for one in text)


def _escape(code: int) -> str:
    # A byte that is no UTF-8 (PEP 383).
    code = code - 0xDC00 if 0xDC80 <= code <= 0xDCFF else code
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _tell(value: Any) -> dict[str, Any]:
    if isinstance(value, bool) or value is None:
        return {"text": "<missing>"}
    if isinstance(value, int) or (isinstance(value, str) and _ADDRESS.fullmatch(value)):
        return {"value": value}
    if isinstance(value, str):
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        return {"text": f'"{make_printable(quoted)}"'}
    return {"text": str(value) if isinstance(value, float) else "?"}
