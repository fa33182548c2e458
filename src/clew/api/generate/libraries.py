"""Descriptions of functions of libraries, with what they do, out of lines of C and of effects.

Runs on a developer's machine. `sources/library_functions.txt` has sections `[PATTERN FILTER]`; in each a line a
function, `TYPE name(TYPE name, ...) ! ERROR`, and below it its effects, indented (`effects.py`), or `Secret NAME ...`,
arguments that nobody is to see, `Bytes BUFFER SIZE` and `Count ARRAY NUMBER`, how much there is of one, and `Table NAME
TABLE`, its names. A pointer to what is no text is a reference to what its type is called; `void * name:kind` is one of
that kind, and `TYPE ** name` or `TYPE * name:&kind` is where one is written. Behind `...` are the arguments that the
format asks for, which is in front of it; `... scanf`: those to which it writes. `[PATTERN FILTER PREFIX]`: what is
called so, and behind that as a system call, stands for that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from clew.api.generate.effects import EffectError, effects_of
from clew.api.generate.rules import describe_argument
from clew.api.generate.sources import Argument

__all__ = ["libraries_content"]

_SECTION: Final = re.compile(r"\[(?P<pattern>\S+) (?P<filter>\w+)(?: (?P<prefix>\w+))?\]")
_FUNCTION: Final = re.compile(
    r"(?P<type>.+?) (?P<name>\w+)(?::(?P<kind>\w+))?\((?P<arguments>.*)\)(?: ! (?P<error>\w+))?"
)
_ARGUMENT: Final = re.compile(r"(?P<type>.+?) (?P<name>\w+)(?::(?P<kind>&?\w+))?")
_HANDLE: Final = re.compile(r"(?!const |void |char )(?P<kind>\w+) \*(?P<more>\*?)")
Tables = Mapping[str, Mapping[str, Any]]
"""What `flag_headers.toml` says of each table."""

_NUMBERS: Final = frozenset({"int", "long", "size_t", "pid_t", "wchar_t"})
"""What pointers lead to that are no references."""

_FORMATS: Final[dict[str, dict[str, str]]] = {"...": {}, "... scanf": {"Kind": "scanf"}}
"""What stands behind the format of a printf, and of a scanf."""

_RESULTS: Final = {"int": "int", "long": "long", "size_t": "size"}


def libraries_content(lines: list[str], tables: Tables) -> dict[str, Any]:
    """The file of libraries. Raises EffectError for a line that is none, or names what is not there."""
    libraries: dict[str, list[dict[str, Any]]] = {}
    functions: list[dict[str, Any]] = []
    prefixes: dict[str, str] = {}
    choice = ""
    for line in lines:
        section = _SECTION.fullmatch(line)
        if section:
            functions, choice = libraries.setdefault(section["pattern"], []), section["filter"]
            if section["prefix"]:
                prefixes[section["pattern"]] = section["prefix"]
        elif line.split()[0] in _SAID and line.startswith(" ") and functions:
            _SAID[line.split()[0]](functions[-1], line.split()[1:], tables)
        elif line.startswith(" ") and functions:
            function = functions[-1]
            function["Effects"] = [*function.get("Effects", ()), *effects_of([line.strip()], function)]
        else:
            functions.append(_function(line, choice))
    made = [
        {"Name": pattern} | ({"Prefix": prefixes[pattern]} if pattern in prefixes else {}) | {"Functions": functions}
        for pattern, functions in libraries.items()
    ]
    return {"$schema": "schema.json", "Source": "the libraries' documentation", "Libraries": made}


def _function(line: str, choice: str) -> dict[str, Any]:
    found = _FUNCTION.fullmatch(line)
    if found is None:
        raise EffectError(f"{line!r} is no function")
    texts = [] if found["arguments"] == "void" else found["arguments"].split(", ")
    format_kind = _FORMATS.get(texts[-1]) if texts else None
    texts = texts if format_kind is None else texts[:-1]
    parts = [_ARGUMENT.fullmatch(text) for text in texts]
    if not all(parts):
        raise EffectError(f"{line!r}: not all arguments are some")
    arguments = [Argument(part["type"], part["name"]) for part in parts if part]
    parameters = [
        _handled(describe_argument(arguments, index), part["type"], part["kind"])
        for index, part in enumerate(part for part in parts if part)
    ]
    c_type = found["type"]
    result = {"Index": -1, "Name": "result", "CType": c_type}
    is_text = c_type.endswith("char *")
    result["RawType"] = _RESULTS.get(c_type, "string" if is_text else "pointer" if "*" in c_type else "int")
    parameters.append(_handled(result, c_type, found["kind"]))
    made: dict[str, Any] = {"Name": found["name"], "Filter": choice}
    if found["error"]:
        made["Error"] = found["error"]
    if format_kind is not None:
        # What is written by a format is text, too, which ends by itself.
        for parameter in parameters:
            if parameter["RawType"] == "buffer":
                parameter["RawType"] = "string"
                del parameter["Bytes"]
            elif parameter["CType"] == "wchar_t *":
                parameter |= {"RawType": "wide_string", "Direction": "out"}
        made["Varargs"] = {"Format": len(texts) - 1, **format_kind}
    return made | {"Parameters": parameters}


def _named(function: dict[str, Any], name: str) -> dict[str, Any]:
    found: dict[str, Any] | None = next((one for one in function["Parameters"] if one["Name"] == name), None)
    if found is None:
        raise EffectError(f"{function['Name']}: there is no argument {name}")
    return found


def _hide(function: dict[str, Any], names: list[str], _: Tables) -> None:
    for name in names:
        _named(function, name)["Secret"] = True


def _measure(function: dict[str, Any], names: list[str], _: Tables) -> None:
    buffer, size = names
    parameter = _named(function, buffer)
    parameter |= {"RawType": "buffer", "Bytes": _named(function, size)["Index"]}


def _tell_by(function: dict[str, Any], names: list[str], tables: Tables) -> None:
    name, table = names
    if table not in tables:
        raise EffectError(f"{function['Name']}: there is no table {table}")
    parameter = _named(function, name)
    parameter |= {"RawType": tables[table]["kind"], "Flags": table}


def _count(function: dict[str, Any], names: list[str], _: Tables) -> None:
    array, number = names
    _named(function, array)["Count"] = _named(function, number)["Index"]


_SAID: Final = {"Secret": _hide, "Bytes": _measure, "Count": _count, "Table": _tell_by}
"""What lines below a function say of its arguments, where they are no effects."""


def _handled(parameter: dict[str, Any], c_type: str, kind: str | None) -> dict[str, Any]:
    """The parameter, if it is a reference as one."""
    handle = _HANDLE.fullmatch(c_type)
    is_written = kind is not None and kind.startswith("&")
    kind = kind.removeprefix("&") if kind else (handle["kind"] if handle else None)
    if kind is None or (not is_written and kind in _NUMBERS):
        if parameter["RawType"] == "buffer" and "Bytes" not in parameter and "char *" in c_type:
            return parameter | {"RawType": "string"}
        return parameter
    kept = {key: parameter[key] for key in ("Index", "Name", "CType")}
    if is_written or (handle and handle["more"]):
        return kept | {
            "RawType": "struct", "Struct": "address", "Elements": 1, "Direction": "out",
            "Type": "Reference", "EntityType": kind,
        }  # fmt: skip
    return kept | {"RawType": "pointer", "Type": "Reference", "EntityType": kind}
