"""What the checks of description files share: keys of objects, items of lists, and how what is wrong is told.

Runs in the controller. Pure functions of JSON values; each yields places, as paths in the JSON, and reasons.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from clew.api.shapes import Key

__all__ = [
    "Found",
    "Tables",
    "check_flag_name",
    "check_object",
    "check_once",
    "is_a",
    "items_of",
    "names_in",
    "names_of",
    "number_of",
    "told",
]

_TYPE_NAMES: Final = {str: "a string", int: "a whole number", list: "a list", dict: "an object", bool: "true or false"}

Found = Iterator[tuple[str, str]]
"""Places and reasons."""

Tables = Mapping[str, frozenset[str]]
"""The names in each table of flags."""


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def told(value: object) -> str:
    """What a value is, in a message: itself if that is short."""
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else f"{value[:40]}...")
    if value is None or isinstance(value, bool | int | float):
        return "null" if value is None else str(value).lower()
    return _TYPE_NAMES.get(type(value), type(value).__name__)


def is_a(value: object, kind: type) -> bool:
    # JSON's true is no number.
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))


def number_of(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _check_value(path: str, value: object, key: Key) -> Found:
    if not is_a(value, key.type):
        yield path, f"{told(value)} is not {_TYPE_NAMES[key.type]}"
    elif isinstance(value, str):
        if key.words and value not in key.words:
            yield path, f"{told(value)} is none of {', '.join(key.words)}"
        elif not value and not key.may_be_empty:
            yield path, "is empty"
    elif isinstance(value, int):
        if key.least is not None and value < key.least:
            yield path, f"{value} is below {key.least}"
        elif key.most is not None and value > key.most:
            yield path, f"{value} is above {key.most}"


def check_object(path: str, value: object, keys: Mapping[str, Key]) -> Found:
    """What is wrong with the keys of an object, and with values that have no parts."""
    if not isinstance(value, dict):
        yield path, f"{told(value)} is not an object"
        return
    for name in value:
        if name not in keys:
            yield _join(path, name), f"unknown key; known are {', '.join(keys)}"
    for name, key in keys.items():
        if name in value:
            yield from _check_value(_join(path, name), value[name], key)
        elif key.is_needed:
            yield path, f"{name} is missing"


def items_of(path: str, value: object, name: str) -> Iterator[tuple[str, Any]]:
    """The places and values of a list in an object, nothing where there is none."""
    items = value.get(name) if isinstance(value, dict) else None
    if isinstance(items, list):
        for index, item in enumerate(items):
            yield f"{_join(path, name)}[{index}]", item


def names_in(value: object, name: str) -> frozenset[str]:
    """The names of the objects in a list."""
    objects = (item for _, item in items_of("", value, name) if isinstance(item, dict))
    return frozenset(found for one in objects if isinstance(found := one.get("Name"), str))


def names_of(table: object) -> frozenset[str]:
    values = table.get("Values") if isinstance(table, dict) else None
    rows = values if isinstance(values, list) else []
    return frozenset(row[0] for row in rows if isinstance(row, list) and row and isinstance(row[0], str))


def check_once(path: str, value: object, name: str, seen: dict[Any, str]) -> Found:
    """What is named twice, by the places that `seen` has of those in front."""
    key = value.get(name) if isinstance(value, dict) else None
    if isinstance(key, str | int) and seen.setdefault(key, path) != path:
        yield path, f"{told(key)} is there already, at {seen[key]}"


def check_flag_name(path: str, name: object, parameter: object, tables: Tables) -> Found:
    """What is wrong with a name out of the table of `parameter`."""
    table = parameter.get("Flags") if isinstance(parameter, dict) else None
    if not isinstance(name, str):
        yield path, f"{told(name)} is no name of a flag"
    elif not isinstance(table, str):
        yield path, f"{told(name)} is a name, but the parameter that is asked has no table of flags"
    elif table in tables and name not in tables[table]:
        yield path, f"{told(name)} is not in the table {told(table)}"
