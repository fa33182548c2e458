"""Holds the content of a description file against the rules: what is wrong, where in it, and why.

Runs in the controller. A pure function of JSON values: who reads files is `reading.py`. All that is wrong is told, not
the first of it only; what can't be looked into because it is of the wrong type is told once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from clew.api import shapes
from clew.api.description import MAX_ARGUMENTS, POINTERS, RESULT
from clew.api.shapes import Key
from clew.dataclass import dataclass

__all__ = ["ARCHITECTURES", "Problem", "find_problems"]

ARCHITECTURES: Final = frozenset({"x86_64", "aarch64", "riscv64"})
"""By what system calls may have numbers."""

_TYPE_NAMES: Final = {str: "a string", int: "a whole number", list: "a list", dict: "an object", bool: "true or false"}


@dataclass(frozen=True)
class Problem:
    """What is wrong in `file`, at `path` in its JSON as `SystemCalls[3].Parameters[1].RawType`, empty for all of it."""

    file: str
    path: str
    reason: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.path, self.reason) if part)


Found = Iterator[tuple[str, str]]
"""Places and reasons."""

Tables = Mapping[str, frozenset[str]]
"""The names in each table of flags."""


def find_problems(content: Any, file: str = "", tables: Tables | None = None) -> list[Problem]:
    """All that is wrong with the `content` of `file`; `tables` are those that it may name besides its own."""
    return [Problem(file, path, reason) for path, reason in _document(content, tables or {})]


def _join(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key


def _told(value: object) -> str:
    """What a value is, in a message: itself if that is short."""
    if isinstance(value, str):
        return repr(value if len(value) <= 40 else f"{value[:40]}...")
    if value is None or isinstance(value, bool | int | float):
        return "null" if value is None else str(value).lower()
    return _TYPE_NAMES.get(type(value), type(value).__name__)


def _is(value: object, kind: type) -> bool:
    # JSON's true is no number.
    return isinstance(value, kind) and not (kind is int and isinstance(value, bool))


def _number(value: object) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _value(path: str, value: object, key: Key) -> Found:
    if not _is(value, key.type):
        yield path, f"{_told(value)} is not {_TYPE_NAMES[key.type]}"
    elif isinstance(value, str):
        if key.words and value not in key.words:
            yield path, f"{_told(value)} is none of {', '.join(key.words)}"
        elif not value:
            yield path, "is empty"
    elif isinstance(value, int):
        if key.least is not None and value < key.least:
            yield path, f"{value} is below {key.least}"
        elif key.most is not None and value > key.most:
            yield path, f"{value} is above {key.most}"


def _object(path: str, value: object, keys: Mapping[str, Key]) -> Found:
    """What is wrong with the keys of an object, and with values that have no parts."""
    if not isinstance(value, dict):
        yield path, f"{_told(value)} is not an object"
        return
    for name in value:
        if name not in keys:
            yield _join(path, name), f"unknown key; known are {', '.join(keys)}"
    for name, key in keys.items():
        if name in value:
            yield from _value(_join(path, name), value[name], key)
        elif key.is_needed:
            yield path, f"{name} is missing"


def _items(path: str, value: object, name: str) -> Iterator[tuple[str, Any]]:
    """The places and values of a list in an object, nothing where there is none."""
    items = value.get(name) if isinstance(value, dict) else None
    if isinstance(items, list):
        for index, item in enumerate(items):
            yield f"{_join(path, name)}[{index}]", item


def _document(content: Any, tables: Tables) -> Found:
    yield from _object("", content, shapes.DOCUMENT)
    if not isinstance(content, dict):
        return
    own = content.get("FlagTables")
    if isinstance(own, dict):
        for name, table in own.items():
            yield from _table(f"FlagTables.{name}", table)
        tables = {**tables, **{name: _names(table) for name, table in own.items()}}
    seen: dict[Any, str] = {}
    for path, call in _items("", content, "SystemCalls"):
        yield from _object(path, call, shapes.SYSTEM_CALL)
        yield from _function(path, call, tables)
        yield from _numbers(path, call, seen)
        yield from _once(f"{path}.Name", call, "Name", seen)
    libraries: dict[Any, str] = {}
    for path, library in _items("", content, "Libraries"):
        yield from _object(path, library, shapes.LIBRARY)
        yield from _once(f"{path}.Name", library, "Name", libraries)
        seen = {}
        for inner, function in _items(path, library, "Functions"):
            yield from _object(inner, function, shapes.FUNCTION)
            yield from _function(inner, function, tables)
            yield from _once(f"{inner}.Name", function, "Name", seen)


def _names(table: object) -> frozenset[str]:
    values = table.get("Values") if isinstance(table, dict) else None
    rows = values if isinstance(values, list) else []
    return frozenset(row[0] for row in rows if isinstance(row, list) and row and isinstance(row[0], str))


def _once(path: str, value: object, name: str, seen: dict[Any, str]) -> Found:
    """What is named twice, by the places that `seen` has of those in front."""
    key = value.get(name) if isinstance(value, dict) else None
    if isinstance(key, str | int) and seen.setdefault(key, path) != path:
        yield path, f"{_told(key)} is there already, at {seen[key]}"


def _table(path: str, table: object) -> Found:
    yield from _object(path, table, shapes.FLAG_TABLE)
    seen: dict[Any, str] = {}
    for place, row in _items(path, table, "Values"):
        if not isinstance(row, list) or len(row) not in (2, 3):
            yield place, f"{_told(row)} is not [name, value] or [name, value, mask]"
            continue
        if not isinstance(row[0], str) or not row[0]:
            yield f"{place}[0]", f"{_told(row[0])} is no name"
        elif seen.setdefault(row[0], place) != place:
            yield f"{place}[0]", f"{_told(row[0])} is there already, at {seen[row[0]]}"
        for index, number in enumerate(row[1:], 1):
            if not _is(number, int):
                yield f"{place}[{index}]", f"{_told(number)} is not a whole number"
        if len(row) == 3 and _is(row[1], int) and _is(row[2], int) and row[1] & ~row[2]:
            yield place, f"{row[1]:#x} has bits outside of its mask {row[2]:#x}"


def _numbers(path: str, call: object, seen: dict[Any, str]) -> Found:
    numbers = call.get("Number") if isinstance(call, dict) else None
    if not isinstance(numbers, dict):
        return
    if not numbers:
        yield f"{path}.Number", "is empty"
    for architecture, number in numbers.items():
        place = f"{path}.Number.{architecture}"
        if architecture not in ARCHITECTURES:
            yield place, f"unknown architecture; known are {', '.join(sorted(ARCHITECTURES))}"
        elif not _is(number, int) or number < 0:
            yield place, f"{_told(number)} is no number of a system call"
        elif seen.setdefault((architecture, number), place) != place:
            yield place, f"{number} is there already, at {seen[architecture, number]}"


def _function(path: str, function: object, tables: Tables) -> Found:
    if not isinstance(function, dict):
        return
    by_index: dict[int, Any] = {}
    yield from _parameters(path, function, by_index)
    known = set(by_index) | {RESULT}
    arguments = sorted(index for index in by_index if index >= 0)
    if len(by_index) != sum(1 for _ in _items(path, function, "Parameters")):
        # Some have no index that counts, which was told: nobody knows which.
        known = set(range(RESULT, MAX_ARGUMENTS))
    elif arguments != list(range(len(arguments))):
        yield f"{path}.Parameters", f"arguments have the indexes {', '.join(map(str, arguments))}: one is left out"
    for place, parameter in _items(path, function, "Parameters"):
        yield from _references(place, parameter, by_index, known, tables)
    yield from _effects(path, function, by_index, known, tables)
    if isinstance(function.get("Variants"), dict):
        yield from _variants(f"{path}.Variants", function["Variants"], by_index, known, tables)


def _effects(path: str, holder: object, by_index: dict[int, Any], known: set[int], tables: Tables) -> Found:
    for place, effect in _items(path, holder, "Effects"):
        yield from _object(place, effect, shapes.EFFECT)
        if not isinstance(effect, dict):
            continue
        for inner, index in _items(place, effect, "Parameters"):
            yield from _index(inner, index, known)
        said, kind = effect.get("Parameters"), effect.get("Effect")
        if isinstance(said, list) and isinstance(kind, str) and kind in shapes.EFFECT_PARAMETERS:
            least, most = shapes.EFFECT_PARAMETERS[kind]
            if not least <= len(said) <= most:
                wanted = str(least) if least == most else f"{least} to {most}"
                yield f"{place}.Parameters", f"{len(said)} parameters; {kind} has {wanted}"
        for inner, index in _items(place, effect, "At"):
            if index is not None:
                yield from _index(inner, index, known)
        if isinstance(effect.get("At"), list) and isinstance(said, list) and len(effect["At"]) != len(said):
            yield f"{place}.At", "has not as many places as Parameters"
        for name in ("Bytes", "Parent"):
            if _number(effect.get(name)) is not None:
                yield from _index(f"{place}.{name}", effect[name], known)
        switches = [(f"{place}.{name}", effect.get(name)) for name in ("CloseOnExec", "Conditional", "Unless")]
        shares = effect.get("Shares")
        if isinstance(shares, dict):
            yield from _object(f"{place}.Shares", shares, shapes.SHARES)
            switches += [(f"{place}.Shares.{name}", value) for name, value in shares.items()]
        for inner, value in switches:
            if isinstance(value, dict):
                yield from _condition(inner, value, by_index, known, tables)
            elif value is not None and not isinstance(value, bool):
                yield inner, f"{_told(value)} is neither true nor a condition"


def _condition(
    place: str, condition: dict[str, Any], by_index: dict[int, Any], known: set[int], tables: Tables
) -> Found:
    yield from _object(place, condition, shapes.CONDITION)
    chosen = _number(condition.get("Index"))
    if chosen is not None and chosen >= 0:
        yield from _index(f"{place}.Index", chosen, known)
        if chosen in by_index:
            for inner, name in _items(place, condition, "Flags"):
                yield from _flag_name(inner, name, by_index[chosen], tables)


def _parameters(path: str, holder: object, by_index: dict[int, Any]) -> Found:
    """What is wrong with each parameter alone, and with indexes that come twice; puts them into `by_index`."""
    seen: dict[Any, str] = {}
    for place, parameter in _items(path, holder, "Parameters"):
        yield from _object(place, parameter, shapes.PARAMETER)
        if isinstance(parameter, dict):
            yield from _once(f"{place}.Index", parameter, "Index", seen)
            index = _number(parameter.get("Index"))
            if index is not None and RESULT <= index < MAX_ARGUMENTS:
                by_index.setdefault(index, parameter)


def _index(path: str, index: object, known: set[int]) -> Found:
    if not _is(index, int):
        yield path, f"{_told(index)} is not a whole number"
    elif index not in known:
        yield path, f"there is no parameter {index}"


def _references(path: str, parameter: object, by_index: dict[int, Any], known: set[int], tables: Tables) -> Found:
    """What is wrong with what a parameter names: tables, other parameters."""
    if not isinstance(parameter, dict):
        return
    table, raw_type = parameter.get("Flags"), parameter.get("RawType")
    raw_type = raw_type if isinstance(raw_type, str) else ""
    if isinstance(table, str) and table:
        if table not in tables:
            yield f"{path}.Flags", f"there is no table of flags {_told(table)}"
        if raw_type in POINTERS:
            yield f"{path}.Flags", f"what has the raw type {raw_type} has no flags"
    for name in ("Count", "Bytes", "Room"):
        if _is(parameter.get(name), int) and parameter[name] in range(RESULT, MAX_ARGUMENTS):
            yield from _index(f"{path}.{name}", parameter[name], known)
            if raw_type and raw_type not in POINTERS:
                yield f"{path}.{name}", f"what has the raw type {raw_type} leads to nothing"
    if "Room" in parameter and "Bytes" not in parameter:
        yield f"{path}.Room", "is of use beside Bytes only"
    condition = parameter.get("Conditional")
    if isinstance(condition, dict):
        yield from _condition(f"{path}.Conditional", condition, by_index, known, tables)


def _flag_name(path: str, name: object, parameter: object, tables: Tables) -> Found:
    """What is wrong with a name out of the table of `parameter`."""
    table = parameter.get("Flags") if isinstance(parameter, dict) else None
    if not isinstance(name, str):
        yield path, f"{_told(name)} is no name of a flag"
    elif not isinstance(table, str):
        yield path, f"{_told(name)} is a name, but the parameter that is asked has no table of flags"
    elif table in tables and name not in tables[table]:
        yield path, f"{_told(name)} is not in the table {_told(table)}"


def _variants(path: str, variants: dict[str, Any], by_index: dict[int, Any], known: set[int], tables: Tables) -> Found:
    yield from _object(path, variants, shapes.VARIANTS)
    by = _number(variants.get("By"))
    if by is not None and by >= 0:
        yield from _index(f"{path}.By", by, known)
    seen: dict[Any, str] = {}
    for place, case in _items(path, variants, "Cases"):
        yield from _object(place, case, shapes.CASE)
        for inner, value in _items(place, case, "Values"):
            if not _is(value, int) and by in by_index:
                yield from _flag_name(inner, value, by_index[by], tables)
            elif not isinstance(value, int | str):
                yield inner, f"{_told(value)} is neither a number nor a name"
            if isinstance(value, str | int) and seen.setdefault(value, inner) != inner:
                yield inner, f"{_told(value)} is there already, at {seen[value]}"
        own: dict[int, Any] = {}
        yield from _parameters(place, case, own)
        every = by_index | own
        for inner, parameter in _items(place, case, "Parameters"):
            index = _number(parameter.get("Index")) if isinstance(parameter, dict) else None
            if index is not None and index not in known:
                yield f"{inner}.Index", f"there is no parameter {index} to be replaced"
            yield from _references(inner, parameter, every, known, tables)
        yield from _effects(place, case, every, known, tables)
