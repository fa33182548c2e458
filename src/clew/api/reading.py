"""Reads description files: checks them, makes `Description` of them, and puts several together.

Runs in the controller. Clew's own files come first, then those that somebody names, each of which may describe again
what an earlier one has. The rules are in `checking.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from clew.api.checking import Problem, find_problems
from clew.api.checking_values import names_in
from clew.api.description import (
    Case,
    Condition,
    Description,
    Effect,
    Flag,
    FlagTable,
    Function,
    Library,
    Member,
    MemberCondition,
    Parameter,
    Struct,
    Variants,
)
from clew.api.descriptions import Descriptions
from clew.errors import UsageError

__all__ = ["BUILT_IN", "check", "load", "load_built_in", "parse_description"]

_HERE: Final = Path(__file__).resolve().parent

BUILT_IN: Final = tuple(
    _HERE / name
    for name in ("flag_tables.json", "structs.json", "system_calls.json", "ring_operations.json", "libraries.json")
)
"""Clew's own files; `clew.api.generate` makes them, and tests hold them against the rules."""

ARCHITECTURE: Final = "x86_64"
"""Whose numbers system calls have if nothing else is asked for."""


class _TwiceError(ValueError):
    """A key comes twice in an object, of which JSON's reader would keep the last without a word."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        seen: set[str] = set()
        twice = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise _TwiceError(f"an object has the key {twice!r} twice")
    return made


def _read(path: Path) -> tuple[Any, list[Problem]]:
    """The JSON in a file, or why there is none."""
    # Clew's own files were looked through when they were made: that is a third of the time of reading JSON.
    hook = None if path in BUILT_IN else _object
    try:
        return json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=hook), []
    except OSError as error:
        return None, [Problem(str(path), "", error.strerror or str(error))]
    except json.JSONDecodeError as error:
        return None, [Problem(str(path), "", f"no JSON: line {error.lineno}, column {error.colno}: {error.msg}")]
    except UnicodeDecodeError as error:
        return None, [Problem(str(path), "", f"no UTF-8: byte {error.start}")]
    except _TwiceError as error:
        return None, [Problem(str(path), "", str(error))]
    except (RecursionError, ValueError):
        # Lists within lists without end, or a number of thousands of digits.
        return None, [Problem(str(path), "", "no JSON that can be read: too deep, or a number is too long")]


def check(path: Path, others: Iterable[Path] = ()) -> list[Problem]:
    """All that is wrong with a description file; it may name the tables of clew's own and of `others`."""
    tables: dict[str, frozenset[str]] = {}
    structs: frozenset[str] = frozenset()
    calls: frozenset[str] = frozenset()
    for other in (*BUILT_IN, *others):
        content, problems = _read(other)
        if problems or not isinstance(content, dict):
            continue
        found, described = content.get("FlagTables"), content.get("Structs")
        if isinstance(found, dict):
            tables |= {name: _table_names(table) for name, table in found.items()}
        if isinstance(described, dict):
            structs |= described.keys()
        calls |= names_in(content, "SystemCalls")
    content, problems = _read(path)
    return problems or find_problems(content, str(path), tables, structs, calls)


def _table_names(table: Any) -> frozenset[str]:
    try:
        return frozenset(row[0] for row in table["Values"])
    except (KeyError, IndexError, TypeError):
        # That file has problems of its own.
        return frozenset()


def load(paths: Iterable[Path], architecture: str = ARCHITECTURE) -> Descriptions:
    """What the files at `paths` say, later ones over earlier ones, with numbers of `architecture`.

    Raises UsageError, with what is wrong first, where a file does not keep to the rules.
    """
    descriptions = Descriptions()
    tables: dict[str, frozenset[str]] = {}
    for path in paths:
        content, problems = _read(path)
        if not problems and path not in BUILT_IN:
            calls = frozenset(call.name for call in descriptions.system_calls.values())
            problems = find_problems(content, str(path), tables, frozenset(descriptions.structs), calls)
        if problems:
            more = f" (and {len(problems) - 1} more: `clew api check`)" if len(problems) > 1 else ""
            raise UsageError(f"{problems[0]}{more}")
        description = parse_description(content)
        tables |= {table.name: frozenset(flag.name for flag in table.flags) for table in description.flag_tables}
        descriptions.add(description, architecture)
    return descriptions


def load_built_in(more: Iterable[Path] = (), architecture: str = ARCHITECTURE) -> Descriptions:
    """What clew's own files say, and over it the files in `more`. Raises as `load`."""
    return load((*BUILT_IN, *more), architecture)


def parse_description(content: Any) -> Description:
    """The description of JSON values in which `find_problems` finds none."""
    return Description(
        tuple(_function(call) for call in content.get("SystemCalls", ())),
        tuple(
            Library(
                library["Name"],
                tuple(_function(function) for function in library["Functions"]),
                library.get("Prefix"),
            )
            for library in content.get("Libraries", ())
        ),
        tuple(
            FlagTable(
                name,
                table["Kind"],
                tuple(Flag(*row) for row in table["Values"]),
                table.get("Macro"),
                tuple(table.get("Masks", ())),
            )
            for name, table in content.get("FlagTables", {}).items()
        ),
        content.get("Source"),
        tuple(_struct(name, struct) for name, struct in content.get("Structs", {}).items()),
        tuple(_function(operation) for operation in content.get("RingOperations", ())),
    )


def _struct(name: str, said: dict[str, Any]) -> Struct:
    return Struct(
        name,
        said["Size"],
        tuple(_member(one) for one in said["Members"]),
        said.get("Plain", False),
        said.get("More", False),
        said.get("Length"),
        said.get("Align", 1),
    )


def _member(said: dict[str, Any]) -> Member:
    return Member(
        said["Name"],
        said["Offset"],
        said["Size"],
        said["CType"],
        said["RawType"],
        said.get("Leads", False),
        said.get("Flags"),
        said.get("Struct"),
        said.get("Count"),
        said.get("Elements"),
        said.get("Bytes"),
        tuple(
            MemberCondition(one["Member"], tuple(one["Values"]), one.get("Mask"), one.get("Not", False))
            for one in said.get("If", ())
        ),
        said.get("Many", False),
        said.get("Detail", False),
        said.get("Side"),
        said.get("Total"),
        "secret" if said.get("Secret") else None,
        (said["Bits"][0], said["Bits"][1]) if "Bits" in said else None,
    )


def _function(said: dict[str, Any]) -> Function:
    is_call = "Number" in said or "Opcode" in said
    error = "negative_errno" if is_call else "minus_one_errno" if "SystemCall" in said else "none"
    return Function(
        said["Name"],
        said["Filter"],
        _parameters(said["Parameters"]) if "Parameters" in said else None,
        said.get("Number", {}),
        said.get("Error", error),
        said.get("Label"),
        said.get("Since"),
        _variants(said["Variants"]) if "Variants" in said else None,
        tuple(_effect(effect) for effect in said.get("Effects", ())),
        said.get("Unreturned"),
        said["Varargs"]["Format"] if "Varargs" in said else None,
        said.get("Opcode"),
        tuple(said["Told"]) if "Told" in said else None,
        said.get("Varargs", {}).get("Kind", "printf"),
        said.get("SystemCall"),
    )


def _effect(said: dict[str, Any]) -> Effect:
    return Effect(
        said["Effect"],
        tuple(said["Parameters"]),
        said.get("Role"),
        tuple(said.get("At", ())),
        said.get("Bytes"),
        said.get("Kind"),
        said.get("Parent"),
        said.get("Each", False),
        _switch(said.get("CloseOnExec", False)),
        _condition(said.get("Conditional")),
        _condition(said.get("Unless")),
        tuple((name, _switch(value)) for name, value in said.get("Shares", {}).items()),
        _condition(said.get("Lost")),
        said.get("Within", False),
    )


def _condition(said: dict[str, Any] | None) -> Condition | None:
    return None if said is None else Condition(said["Index"], tuple(said["Flags"]), said.get("Member"))


def _switch(said: bool | dict[str, Any]) -> bool | Condition:
    return said if isinstance(said, bool) else Condition(said["Index"], tuple(said["Flags"]), said.get("Member"))


def _parameters(said: list[dict[str, Any]]) -> tuple[Parameter, ...]:
    made = [_parameter(one) for one in said]
    # The result, -1, goes last.
    return tuple(sorted(made, key=lambda parameter: (parameter.index < 0, parameter.index)))


def _parameter(said: dict[str, Any]) -> Parameter:
    direction = said.get("Direction", "out" if said["Index"] < 0 else "in")
    return Parameter(
        said["Index"],
        said["Name"],
        said["CType"],
        said["RawType"],
        said.get("Type", "Info"),
        said.get("EntityType"),
        said.get("Flags"),
        direction,
        said.get("When", "entry" if direction == "in" else "exit"),
        said.get("Count"),
        said.get("Bytes"),
        said.get("Room"),
        _condition(said.get("Conditional")),
        said.get("Struct"),
        said.get("Elements"),
        said.get("Ended", False),
        said.get("Total"),
        said.get("Coded"),
        said.get("Behind"),
        said.get("Written"),
        "secret" if said.get("Secret") else None,
        said.get("Field"),
        said.get("Named", False),
        said.get("Called"),
        said.get("Answered", False),
    )


def _variants(said: dict[str, Any]) -> Variants:
    cases = tuple(
        Case(
            tuple(case["Values"]),
            _parameters(case.get("Parameters", [])),
            case.get("Arguments"),
            case.get("Label"),
            tuple(_effect(effect) for effect in case["Effects"]) if "Effects" in case else None,
            _variants(case["Variants"]) if "Variants" in case else None,
            tuple(case["Told"]) if "Told" in case else None,
        )
        for case in said["Cases"]
    )
    return Variants(said["By"], cases, said.get("Mask"))
