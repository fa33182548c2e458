"""The files that were captured, and what was written by hand beside them: their names, and how they are read.

Runs on a developer's machine. What is made of them is not known here.
"""

from __future__ import annotations

import json
import re
import tomllib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from clew.api.prototypes import Prototypes

__all__ = [
    "FLAG_HEADERS",
    "FLAG_VALUES",
    "HINTS",
    "KERNEL_LAYOUTS",
    "KERNEL_VALUES",
    "LAYOUTS",
    "NUMBERS",
    "PROTOTYPES",
    "REQUESTS",
    "REQUEST_HEADERS",
    "SOURCES",
    "STRUCTS",
    "STRUCT_HEADERS",
    "Argument",
    "Layout",
    "LayoutMember",
    "Sources",
    "lines_of",
    "parse_flag_values",
    "parse_layouts",
    "parse_numbers",
    "parse_prototypes",
    "parse_requests",
    "read_sources",
]

SOURCES: Final = Path(__file__).resolve().parent
PROTOTYPES: Final = "prototypes.txt"
NUMBERS: Final = "numbers.txt"
FLAG_HEADERS: Final = "flag_headers.toml"
FLAG_VALUES: Final = "flag_values.txt"
HINTS: Final = "hints.json"
STRUCT_HEADERS: Final = "struct_headers.toml"
LAYOUTS: Final = "layouts.txt"
KERNEL_LAYOUTS: Final = "kernel_layouts.txt"
KERNEL_VALUES: Final = "kernel_values.txt"
STRUCTS: Final = "structs.json"
REQUEST_HEADERS: Final = "request_headers.toml"
REQUESTS: Final = "requests.txt"
EFFECTS: Final = "effects.json"
RING_OPERATIONS: Final = "ring_operations.json"
LIBRARY_FUNCTIONS: Final = "library_functions.txt"

_PROTOTYPE: Final = re.compile(r"(?P<name>\w+)\((?P<arguments>.*)\)")
_ARGUMENT: Final = re.compile(r"(?P<type>.*[ *])(?P<name>\w+)")


@dataclass(frozen=True)
class Argument:
    """An argument of a system call: its C type as the kernel has it, and its name there."""

    c_type: str
    name: str


@dataclass(frozen=True)
class LayoutMember:
    """A member of a structure: where it begins, how many bytes it has, its C type."""

    offset: int
    size: int
    c_type: str


@dataclass(frozen=True)
class Layout:
    """A structure of `size` bytes, with its members by their paths, as `sq_off.head`."""

    size: int
    members: dict[str, LayoutMember]


@dataclass(frozen=True)
class Sources:
    """All that descriptions are made of.

    `prototypes`: arguments by name of the call. `numbers`: numbers by architecture, by name of the call. `flag_tables`:
    what `flag_headers.toml` says of each table. `flag_values`: names and values by table. `hints` and `effects`: the
    files' contents. `library_lines`: functions of libraries, and what they do. `layouts`: structures by name.
    `structs`: which members of them are told, and how. `origin`: the first line of the prototypes, which says which
    kernel they are of. `requests`: name, number and C type of ioctl's. `ring_operations`: which calls those of io_uring
    are.
    """

    prototypes: dict[str, list[Argument]]
    numbers: dict[str, dict[str, int]]
    flag_tables: dict[str, dict[str, Any]]
    flag_values: dict[str, list[tuple[str, int]]]
    hints: dict[str, Any]
    effects: dict[str, Any]
    library_lines: list[str]
    layouts: dict[str, Layout]
    structs: dict[str, Any]
    origin: str
    requests: tuple[tuple[str, int, str], ...] = ()
    ring_operations: dict[str, Any] = field(default_factory=dict)


def lines_of(text: str) -> list[str]:
    """The lines of a captured file, without empty ones and remarks."""
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def parse_prototypes(lines: list[str]) -> dict[str, list[Argument]]:
    """Arguments by name, of lines `name(type argument, ...)`. Raises ValueError for another line."""
    prototypes = {}
    for line in lines:
        match = _PROTOTYPE.fullmatch(line)
        if match is None:
            raise ValueError(f"{line!r} is no prototype")
        arguments = []
        for text in match["arguments"].split(", ") if match["arguments"] else []:
            argument = _ARGUMENT.fullmatch(text)
            if argument is None:
                raise ValueError(f"{line!r}: {text!r} is no argument")
            arguments.append(Argument(argument["type"].strip(), argument["name"]))
        prototypes[match["name"]] = arguments
    return prototypes


def parse_numbers(lines: list[str]) -> dict[str, dict[str, int]]:
    """Numbers by name of the call and architecture, of lines `architecture number name`."""
    numbers: dict[str, dict[str, int]] = {}
    for line in lines:
        architecture, number, name = line.split()
        numbers.setdefault(name, {})[architecture] = int(number)
    return numbers


def parse_flag_values(lines: list[str]) -> dict[str, list[tuple[str, int]]]:
    """Names and values by table, of lines `[table]` and, behind them, `NAME value`."""
    tables: dict[str, list[tuple[str, int]]] = {}
    values: list[tuple[str, int]] = []
    for line in lines:
        if line.startswith("["):
            values = tables[line.strip("[]")] = []
        else:
            name, value = line.split()
            values.append((name, int(value, 0)))
    return tables


def parse_layouts(lines: list[str]) -> dict[str, Layout]:
    """Structures by name, of lines `[name] size` and, behind them, `member offset size type`."""
    layouts: dict[str, Layout] = {}
    layout = Layout(0, {})
    for line in lines:
        if line.startswith("["):
            name, size = line.removeprefix("[").split("] ")
            layout = layouts[name] = Layout(int(size), {})
        else:
            path, offset, own_size, c_type = line.split(" ", 3)
            layout.members[path] = LayoutMember(int(offset), int(own_size), c_type)
    return layouts


def parse_requests(lines: list[str]) -> tuple[tuple[str, int, str], ...]:
    """Requests of lines `NAME number type`, of which the type may be missing."""
    rows = (line.split(" ", 2) for line in lines)
    return tuple((name, int(number, 0), " ".join(c_type)) for name, number, *c_type in rows)


def _values_of_libraries(tables: dict[str, dict[str, Any]]) -> dict[str, list[tuple[str, int]]]:
    """Values of the tables that enumerations of libraries are."""
    prototypes = Prototypes()
    return {
        name: [
            one for one in prototypes.values(table["library"], table["enum"]) if re.fullmatch(table["names"], one[0])
        ]
        for name, table in tables.items()
        if "library" in table
    }


def _read_json(path: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=_once)
    return content


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object. Raises ValueError where it has a key twice, of which one would be lost."""
    made = dict(pairs)
    if len(made) != len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"twice: {', '.join(sorted({key for key in keys if keys.count(key) > 1}))}")
    return made


def read_sources(folder: Path = SOURCES) -> Sources:
    """Read the files of `folder`."""
    texts = {
        name: (folder / name).read_text(encoding="utf-8")
        for name in (PROTOTYPES, NUMBERS, FLAG_VALUES, KERNEL_VALUES, LAYOUTS, KERNEL_LAYOUTS, REQUESTS)
    }
    tables = tomllib.loads((folder / FLAG_HEADERS).read_text(encoding="utf-8"))
    return Sources(
        parse_prototypes(lines_of(texts[PROTOTYPES])),
        parse_numbers(lines_of(texts[NUMBERS])),
        tables,
        parse_flag_values(lines_of(texts[FLAG_VALUES]))
        | parse_flag_values(lines_of(texts[KERNEL_VALUES]))
        | _values_of_libraries(tables),
        _read_json(folder / HINTS),
        _read_json(folder / EFFECTS),
        lines_of((folder / LIBRARY_FUNCTIONS).read_text(encoding="utf-8")),
        # What the kernel says itself is newer.
        parse_layouts(lines_of(texts[LAYOUTS])) | parse_layouts(lines_of(texts[KERNEL_LAYOUTS])),
        _read_json(folder / STRUCTS),
        texts[PROTOTYPES].splitlines()[0].removeprefix("# "),
        parse_requests(lines_of(texts[REQUESTS])),
        _read_json(folder / RING_OPERATIONS),
    )
