"""Holds the content of a description file against the rules: what is wrong, where in it, and why.

Runs in the controller. A pure function of JSON values: who reads files is `reading.py`. All that is wrong is told, not
the first of it only; what can't be looked into because it is of the wrong type is told once.
"""

from __future__ import annotations

from typing import Any, Final

from clew.api import shapes
from clew.api.checking_structs import check_structs
from clew.api.checking_values import (
    Found,
    Tables,
    check_flag_name,
    check_object,
    check_once,
    is_a,
    items_of,
    names_in,
    names_of,
    number_of,
    told,
)
from clew.api.vocabulary import MAX_ARGUMENTS, POINTERS, RESULT
from clew.dataclass import dataclass

__all__ = ["ARCHITECTURES", "Problem", "find_problems"]

_TEXTS: Final = ("string", "wide_string")
ARCHITECTURES: Final = frozenset({"x86_64", "aarch64", "riscv64"})
"""By what system calls may have numbers."""


@dataclass(frozen=True)
class Problem:
    """What is wrong in `file`, at `path` in its JSON as `SystemCalls[3].Parameters[1].RawType`, empty for all of it."""

    file: str
    path: str
    reason: str

    def __str__(self) -> str:
        return ": ".join(part for part in (self.file, self.path, self.reason) if part)


def find_problems(
    content: Any,
    file: str = "",
    tables: Tables | None = None,
    structs: frozenset[str] = frozenset(),
    calls: frozenset[str] = frozenset(),
) -> list[Problem]:
    """All that is wrong with the `content` of `file`; `tables`, `structs` and system `calls` are those that it may name
    besides its own."""
    return [Problem(file, path, reason) for path, reason in _document(content, tables or {}, structs, calls)]


def _document(content: Any, tables: Tables, structs: frozenset[str], calls: frozenset[str]) -> Found:
    yield from check_object("", content, shapes.DOCUMENT)
    if not isinstance(content, dict):
        return
    own = content.get("FlagTables")
    if isinstance(own, dict):
        for name, table in own.items():
            yield from _table(f"FlagTables.{name}", table)
        tables = {**tables, **{name: names_of(table) for name, table in own.items()}}
    described = content.get("Structs")
    if isinstance(described, dict):
        structs |= described.keys()
        yield from check_structs(described, tables, structs)
    seen: dict[Any, str] = {}
    calls |= names_in(content, "SystemCalls")
    for path, call in items_of("", content, "SystemCalls"):
        yield from check_object(path, call, shapes.SYSTEM_CALL)
        yield from _function(path, call, tables, structs)
        yield from _numbers(path, call, seen)
        yield from check_once(f"{path}.Name", call, "Name", seen)
    opcodes: dict[Any, str] = {}
    for path, operation in items_of("", content, "RingOperations"):
        yield from check_object(path, operation, shapes.RING_OPERATION)
        yield from _function(path, operation, tables, structs)
        yield from check_once(f"{path}.Opcode", operation, "Opcode", opcodes)
        for place, parameter in items_of(path, operation, "Parameters"):
            is_said = not isinstance(parameter, dict) or "Field" in parameter or parameter.get("Index") == RESULT
            if not is_said:
                yield f"{place}.Field", "is missing"
    libraries: dict[Any, str] = {}
    for path, library in items_of("", content, "Libraries"):
        yield from check_object(path, library, shapes.LIBRARY)
        yield from check_once(f"{path}.Name", library, "Name", libraries)
        seen = {}
        for inner, function in items_of(path, library, "Functions"):
            yield from check_object(inner, function, shapes.FUNCTION)
            call = function.get("SystemCall") if isinstance(function, dict) else None
            if isinstance(call, str) and call and call not in calls:
                yield f"{inner}.SystemCall", f"there is no system call {told(call)}"
            yield from _function(inner, function, tables, structs)
            yield from check_once(f"{inner}.Name", function, "Name", seen)


def _table(path: str, table: object) -> Found:
    yield from check_object(path, table, shapes.FLAG_TABLE)
    if isinstance(table, dict) and ("Macro" in table) != bool(table.get("Masks")):
        yield path, "Macro and Masks are of use together only"
    for place, mask in items_of(path, table, "Masks"):
        if not is_a(mask, int) or mask <= 0:
            yield place, f"{told(mask)} is no mask"
    seen: dict[Any, str] = {}
    for place, row in items_of(path, table, "Values"):
        if not isinstance(row, list) or len(row) not in (2, 3):
            yield place, f"{told(row)} is not [name, value] or [name, value, mask]"
            continue
        if not isinstance(row[0], str) or not row[0]:
            yield f"{place}[0]", f"{told(row[0])} is no name"
        elif seen.setdefault(row[0], place) != place:
            yield f"{place}[0]", f"{told(row[0])} is there already, at {seen[row[0]]}"
        for index, number in enumerate(row[1:], 1):
            if not is_a(number, int):
                yield f"{place}[{index}]", f"{told(number)} is not a whole number"
        if len(row) == 3 and is_a(row[1], int) and is_a(row[2], int) and row[1] & ~row[2]:
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
        elif not is_a(number, int) or number < 0:
            yield place, f"{told(number)} is no number of a system call"
        elif seen.setdefault((architecture, number), place) != place:
            yield place, f"{number} is there already, at {seen[architecture, number]}"


def _function(path: str, function: object, tables: Tables, structs: frozenset[str]) -> Found:
    if not isinstance(function, dict):
        return
    by_index: dict[int, Any] = {}
    yield from _parameters(path, function, by_index)
    known = set(by_index) | {RESULT}
    arguments = sorted(index for index in by_index if index >= 0)
    if len(by_index) != sum(1 for _ in items_of(path, function, "Parameters")) or "SystemCall" in function:
        # Some have no index that counts, which was told, or are elsewhere: nobody knows which.
        known = set(range(RESULT, MAX_ARGUMENTS))
    elif arguments != list(range(len(arguments))):
        yield f"{path}.Parameters", f"arguments have the indexes {', '.join(map(str, arguments))}: one is left out"
    for place, parameter in items_of(path, function, "Parameters"):
        yield from _references(place, parameter, by_index, known, tables, structs)
    yield from _effects(path, function, by_index, known, tables)
    yield from _told(path, function, known)
    if isinstance(function.get("Varargs"), dict):
        yield from _varargs(f"{path}.Varargs", function["Varargs"], by_index)
    if isinstance(function.get("Variants"), dict):
        yield from _variants(f"{path}.Variants", function["Variants"], by_index, known, tables, structs)


def _effects(path: str, holder: object, by_index: dict[int, Any], known: set[int], tables: Tables) -> Found:
    for place, effect in items_of(path, holder, "Effects"):
        yield from check_object(place, effect, shapes.EFFECT)
        if not isinstance(effect, dict):
            continue
        for inner, index in items_of(place, effect, "Parameters"):
            yield from _index(inner, index, known)
        said, kind = effect.get("Parameters"), effect.get("Effect")
        if isinstance(said, list) and isinstance(kind, str) and kind in shapes.EFFECT_PARAMETERS:
            least, most = shapes.EFFECT_PARAMETERS[kind]
            if not least <= len(said) <= most:
                wanted = str(least) if least == most else f"{least} to {most}"
                yield f"{place}.Parameters", f"{len(said)} parameters; {kind} has {wanted}"
        for inner, index in items_of(place, effect, "At"):
            if index is not None:
                yield from _index(inner, index, known)
        if isinstance(effect.get("At"), list) and isinstance(said, list) and len(effect["At"]) != len(said):
            yield f"{place}.At", "has not as many places as Parameters"
        for name in ("Bytes", "Parent"):
            if number_of(effect.get(name)) is not None:
                yield from _index(f"{place}.{name}", effect[name], known)
        switches = [(f"{place}.{name}", effect.get(name)) for name in ("CloseOnExec", "Conditional", "Unless", "Lost")]
        shares = effect.get("Shares")
        if isinstance(shares, dict):
            yield from check_object(f"{place}.Shares", shares, shapes.SHARES)
            switches += [(f"{place}.Shares.{name}", value) for name, value in shares.items()]
        for inner, value in switches:
            if isinstance(value, dict):
                yield from _condition(inner, value, by_index, known, tables)
            elif value is not None and not isinstance(value, bool):
                yield inner, f"{told(value)} is neither true nor a condition"


def _told(path: str, holder: object, known: set[int]) -> Found:
    """What is wrong with the order in which arguments are told."""
    seen: set[int] = set()
    for place, index in items_of(path, holder, "Told"):
        yield from _index(place, index, known - {RESULT})
        if is_a(index, int) and index in seen:
            yield place, f"{index} is told already"
        elif is_a(index, int):
            seen.add(index)


def _condition(
    place: str, condition: dict[str, Any], by_index: dict[int, Any], known: set[int], tables: Tables
) -> Found:
    yield from check_object(place, condition, shapes.CONDITION)
    chosen = number_of(condition.get("Index"))
    if chosen is not None and chosen >= 0:
        yield from _index(f"{place}.Index", chosen, known)
        # Which table a member's names are of, its structure says.
        if chosen in by_index and "Member" not in condition:
            for inner, name in items_of(place, condition, "Flags"):
                yield from check_flag_name(inner, name, by_index[chosen], tables)


def _parameters(path: str, holder: object, by_index: dict[int, Any]) -> Found:
    """What is wrong with each parameter alone, and with indexes that come twice; puts them into `by_index`."""
    seen: dict[Any, str] = {}
    for place, parameter in items_of(path, holder, "Parameters"):
        yield from check_object(place, parameter, shapes.PARAMETER)
        if isinstance(parameter, dict):
            yield from check_once(f"{place}.Index", parameter, "Index", seen)
            index = number_of(parameter.get("Index"))
            if index is not None and RESULT <= index < MAX_ARGUMENTS:
                by_index.setdefault(index, parameter)


def _index(path: str, index: object, known: set[int]) -> Found:
    if not is_a(index, int):
        yield path, f"{told(index)} is not a whole number"
    elif index not in known:
        yield path, f"there is no parameter {index}"


def _references(
    path: str, parameter: object, by_index: dict[int, Any], known: set[int], tables: Tables, structs: frozenset[str]
) -> Found:
    """What is wrong with what a parameter names: tables, other parameters."""
    if not isinstance(parameter, dict):
        return
    table, raw_type = parameter.get("Flags"), parameter.get("RawType")
    raw_type = raw_type if isinstance(raw_type, str) else ""
    if isinstance(table, str) and table:
        if table not in tables:
            yield f"{path}.Flags", f"there is no table of flags {told(table)}"
        if raw_type in POINTERS:
            yield f"{path}.Flags", f"what has the raw type {raw_type} has no flags"
    struct = parameter.get("Struct")
    if isinstance(struct, str) and struct:
        if struct not in structs:
            yield f"{path}.Struct", f"there is no structure {told(struct)}"
        if raw_type and raw_type != "struct":
            yield f"{path}.Struct", f"what has the raw type {raw_type} leads to no structure"
    for name in ("Elements", "Ended", "Total"):
        if name in parameter and "Struct" not in parameter:
            yield f"{path}.{name}", "is of use beside Struct only"
    for name in ("Count", "Bytes", "Room", "Total", "Coded"):
        if is_a(parameter.get(name), int) and parameter[name] in range(RESULT, MAX_ARGUMENTS):
            yield from _index(f"{path}.{name}", parameter[name], known)
            if raw_type and raw_type not in POINTERS and name != "Coded":
                yield f"{path}.{name}", f"what has the raw type {raw_type} leads to nothing"
    if "Room" in parameter and "Bytes" not in parameter:
        yield f"{path}.Room", "is of use beside Bytes only"
    condition = parameter.get("Conditional")
    if isinstance(condition, dict):
        yield from _condition(f"{path}.Conditional", condition, by_index, known, tables)


def _varargs(path: str, varargs: dict[str, Any], by_index: dict[int, Any]) -> Found:
    yield from check_object(path, varargs, shapes.VARARGS)
    index = number_of(varargs.get("Format"))
    parameter = by_index.get(-1 if index is None else index)
    if index is not None and not (isinstance(parameter, dict) and parameter.get("RawType") in _TEXTS):
        yield f"{path}.Format", f"argument {index} is no string"


def _variants(
    path: str,
    variants: dict[str, Any],
    by_index: dict[int, Any],
    known: set[int],
    tables: Tables,
    structs: frozenset[str],
) -> Found:
    yield from check_object(path, variants, shapes.VARIANTS)
    by = number_of(variants.get("By"))
    if by is not None and by >= 0:
        yield from _index(f"{path}.By", by, known)
    seen: dict[Any, str] = {}
    for place, case in items_of(path, variants, "Cases"):
        yield from check_object(place, case, shapes.CASE)
        for inner, value in items_of(place, case, "Values"):
            if not is_a(value, int) and by in by_index:
                yield from check_flag_name(inner, value, by_index[by], tables)
            elif not isinstance(value, int | str):
                yield inner, f"{told(value)} is neither a number nor a name"
            if isinstance(value, str | int) and seen.setdefault(value, inner) != inner:
                yield inner, f"{told(value)} is there already, at {seen[value]}"
        own: dict[int, Any] = {}
        yield from _parameters(place, case, own)
        every = by_index | own
        for inner, parameter in items_of(place, case, "Parameters"):
            index = number_of(parameter.get("Index")) if isinstance(parameter, dict) else None
            if index is not None and index not in known:
                yield f"{inner}.Index", f"there is no parameter {index} to be replaced"
            yield from _references(inner, parameter, every, known, tables, structs)
        yield from _effects(place, case, every, known, tables)
        yield from _told(place, case, known)
        if isinstance(case, dict) and isinstance(case.get("Variants"), dict):
            yield from _variants(f"{place}.Variants", case["Variants"], every, known, tables, structs)
