"""Descriptions of functions of libraries, with what they do, out of lines of C and of effects.

Runs on a developer's machine. `sources/library_functions.txt` has sections `[PATTERN FILTER]`; in each a line a
function, `TYPE name(TYPE name, ...) ! ERROR`, and below it its effects, indented (`effects.py`), or `Secret NAME ...`,
arguments that nobody is to see, `Bytes BUFFER SIZE` and `Count ARRAY NUMBER`, how much there is of one, `When FLAGS
FLAG NAME ...`, what is there only if one has that flag, `Only N INDEX VALUE ...`, of which values of an argument there
are only N arguments, and `Table NAME TABLE`, its names. A pointer to what is no text is a reference to what its type is
called; `void * name:kind` is one of that kind, and `TYPE ** name` or `TYPE * name:&kind` is where one is written;
`#kind` is one of numbers, of which 0 is one like others. Behind `...` are the arguments that the format asks for, which
is in front of it; `... scanf`: those to which it writes. `[PATTERN FILTER PREFIX]`: what is called so, and behind that
as a system call, stands for that. `TYPE = NAME NAME:CALL ...`: functions that give that type, and pass their arguments
to the system call of their name, or that one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

from clew.api.generate.effects import EffectError, effects_of
from clew.api.generate.rules import describe_argument
from clew.api.generate.sources import Argument
from clew.api.prototypes import Prototypes
from clew.api.values import width_bits

__all__ = ["libraries_content"]

_SECTION: Final = re.compile(r"\[(?P<pattern>\S+) (?P<filter>\w+)(?: (?P<prefix>\w+))?\]")
_FUNCTION: Final = re.compile(
    r"(?P<type>.+?) (?P<name>\w+)(?::(?P<kind>\w+))?\((?P<arguments>.*)\)(?: ! (?P<error>\w+))?"
)
_ARGUMENT: Final = re.compile(r"(?P<type>.+?) (?P<name>\w+)(?::(?P<kind>&?#?\w+))?")
_HANDLE: Final = re.compile(r"(?!const |void |char )(?P<kind>\w+) \*(?P<more>\*?)")
Tables = Mapping[str, Mapping[str, Any]]
"""What `flag_headers.toml` says of each table."""

_NUMBERS: Final = frozenset({"int", "long", "size_t", "pid_t", "wchar_t"})
"""What pointers lead to that are no references."""

_FORMATS: Final[dict[str, dict[str, str]]] = {"...": {}, "... scanf": {"Kind": "scanf"}}
"""What stands behind the format of a printf, and of a scanf."""

_RESULTS: Final = {"int": "int", "long": "long", "size_t": "size"}


def libraries_content(lines: list[str], tables: Tables, calls: list[dict[str, Any]]) -> dict[str, Any]:
    """The file of libraries. Raises EffectError for a line that is none, or names what is not there."""
    libraries: dict[str, list[dict[str, Any]]] = {}
    functions: list[dict[str, Any]] = []
    prefixes: dict[str, str] = {}
    pattern = choice = ""
    by_name, prototypes = {call["Name"]: call for call in calls}, Prototypes()
    for line in lines:
        section = _SECTION.fullmatch(line)
        if section:
            pattern, choice = section["pattern"], section["filter"]
            functions = libraries.setdefault(pattern, [])
            if section["prefix"]:
                prefixes[pattern] = section["prefix"]
        elif line.split()[0] in _SAID and line.startswith(" ") and functions:
            _SAID[line.split()[0]](functions[-1], line.split()[1:], tables)
        elif line.startswith(" ") and functions:
            function = functions[-1]
            function["Effects"] = [*function.get("Effects", ()), *effects_of([line.strip()], function)]
        elif " = " in line:
            functions.extend(_passing(line, pattern, by_name, prototypes))
        else:
            functions.append(_function(line, choice))
    made = [
        {"Name": name} | ({"Prefix": prefixes[name]} if name in prefixes else {}) | {"Functions": functions}
        for name, functions in libraries.items()
    ]
    return {"$schema": "schema.json", "Source": "the libraries' documentation", "Libraries": made}


def _passing(
    line: str, pattern: str, calls: Mapping[str, dict[str, Any]], prototypes: Prototypes
) -> Iterator[dict[str, Any]]:
    """Functions that pass their arguments to system calls."""
    c_type, _, names = line.partition(" = ")
    for name, _, call_name in (word.partition(":") for word in names.split()):
        call = calls.get(call_name or name)
        if call is None:
            raise EffectError(f"{name}: there is no such system call")
        by_index = {one["Index"]: one for one in call["Parameters"]}
        own = [by_index[-1] | {"CType": c_type}] if c_type != "int" else []
        found = prototypes.find(pattern, name)
        for one in () if found is None else found.arguments:
            wide = by_index.get(one.index)
            if wide is None:
                # Some are asked how large what they write to is, which is no matter of the call.
                own.append({"Index": one.index, "Name": one.name, "CType": one.c_type, "RawType": one.raw_type})
            elif not one.is_pointer and width_bits(one.c_type) < width_bits(wide["CType"]):
                # What is in the rest of its register nobody knows.
                own.append(wide | {"CType": one.c_type})
        yield {"Name": name, "Filter": call["Filter"], "SystemCall": call["Name"]} | (
            {"Parameters": own} if own else {}
        )


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


def _condition(function: dict[str, Any], names: list[str], _: Tables) -> None:
    flags, flag, *own = names
    for name in own:
        _named(function, name)["Conditional"] = {"Index": _named(function, flags)["Index"], "Flags": flag.split("|")}


def _shorten(function: dict[str, Any], words: list[str], _: Tables) -> None:
    n_arguments, index, *values = words
    case = {"Values": values, "Arguments": int(n_arguments)}
    function["Variants"] = {"By": int(index), "Cases": [case]}


_SAID: Final = {
    "Secret": _hide,
    "Bytes": _measure,
    "Count": _count,
    "Table": _tell_by,
    "When": _condition,
    "Only": _shorten,
}
"""What lines below a function say of its arguments, where they are no effects."""


def _handled(parameter: dict[str, Any], c_type: str, kind: str | None) -> dict[str, Any]:
    """The parameter, if it is a reference as one."""
    handle = _HANDLE.fullmatch(c_type)
    is_written = kind is not None and kind.startswith("&")
    kind = kind.removeprefix("&") if kind else (handle["kind"] if handle else None)
    is_number = kind is not None and kind.startswith("#")
    kind = kind and kind.removeprefix("#")
    if kind is None or (not is_written and kind in _NUMBERS):
        if parameter["RawType"] == "buffer" and "Bytes" not in parameter and "char *" in c_type:
            return parameter | {"RawType": "string"}
        return parameter
    kept = {key: parameter[key] for key in ("Index", "Name", "CType")}
    if is_written or (handle and handle["more"]):
        return kept | {
            "RawType": "struct", "Struct": "hex64" if is_number else "address", "Elements": 1, "Direction": "out",
            "Type": "Reference", "EntityType": kind,
        }  # fmt: skip
    return kept | {"RawType": "hex" if is_number else "pointer", "Type": "Reference", "EntityType": kind}
