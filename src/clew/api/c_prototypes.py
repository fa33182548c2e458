"""Reads a function's declaration in C: its name, the types and names of its arguments, the type of its result.

Runs in the controller. Knows the form of lines in `prototypes.txt`, not what types are.
"""

from __future__ import annotations

import re
from typing import Final

from clew.dataclass import dataclass

__all__ = ["Access", "Prototype", "parse_prototype"]

_NAME: Final = re.compile(r"(\w+)\(")
_POINTER_NAME: Final = re.compile(r"\((?P<stars>\*(?:[* ]|const\b|volatile\b)*)(?P<name>\w*)(?P<more>(?:\[\w*\])*)\)")
_ARRAY: Final = re.compile(r" ?\[\w*\]")
_LAST_WORD: Final = re.compile(r"(?P<c_type>.*[ *])(?P<name>[A-Za-z_]\w*)")
_NO_NAMES: Final = frozenset(
    (
        *("char", "short", "int", "long", "signed", "unsigned", "float", "double", "void", "_Bool", "_Complex"),
        *("const", "volatile", "__int128", "__float128", "_Float128"),
    )
)
"""Words with which a type ends whose argument has no name."""

_NO_TYPES: Final = frozenset({"const", "volatile", "struct", "union", "enum"})
"""Words that are no type without another one."""

_ACCESS: Final = re.compile(r"(?P<way>read_only|write_only|read_write) (?P<index>\d+)(?: (?P<size>\d+))?")
_WAYS: Final = {"read_only": "in", "write_only": "out", "read_write": "inout"}

NO_RETURN: Final = "_Noreturn "


@dataclass(frozen=True)
class Access:
    """What a function does with that to which argument `index` leads: `direction` is `in`, `out` or `inout`. Argument
    `size_index` says how many elements there are, bytes if it is no type's; None: it is one, or ends by itself."""

    index: int
    direction: str
    size_index: int | None = None


@dataclass(frozen=True)
class Prototype:
    """A function as its header declares it.

    `arguments` are types and names, an empty one where the header has none; arrays are pointers, as they are for who
    is called. `result` is its type, None for a function that does not return.
    """

    name: str
    arguments: tuple[tuple[str, str], ...]
    result: str | None
    is_variadic: bool = False
    accesses: tuple[Access, ...] = ()


def parse_prototype(line: str) -> Prototype:
    """The function in a line `RESULT NAME(TYPE NAME, ...)`, behind which may be ` // write_only 2 3, read_only 1`: the
    attributes of gcc's, with numbers from 1 on. Raises ValueError for another line."""
    line, _, notes = line.partition(" // ")
    start = _NAME.search(line)
    if start is None:
        raise ValueError(f"{line!r} is no prototype")
    end = _closing(line, start.end())
    pieces = _split(line[start.end() : end])
    is_variadic = pieces[-1:] == ["..."]
    arguments = tuple(_argument(piece) for piece in pieces if piece not in ("...", "void"))
    head = line[: start.start()]
    # `int (*name(void))(int)` gives what its declaration is without name and arguments.
    result = (head + line[end + 1 :]).strip()
    if not result:
        raise ValueError(f"{line!r} has no result")
    returned = None if head.startswith(NO_RETURN) else result
    accesses = tuple(_access(note, len(arguments)) for note in notes.split(", ") if note)
    return Prototype(start[1], arguments, returned, is_variadic, accesses)


def _access(note: str, n_arguments: int) -> Access:
    found = _ACCESS.fullmatch(note)
    numbers = [] if found is None else [int(one) - 1 for one in (found["index"], found["size"]) if one]
    if found is None or not all(0 <= number < n_arguments for number in numbers):
        raise ValueError(f"{note!r} says nothing of an argument")
    return Access(numbers[0], _WAYS[found["way"]], numbers[1] if len(numbers) > 1 else None)


def _closing(line: str, start: int) -> int:
    """Where the parenthesis ends that was opened in front of `start`. Raises ValueError if it does not."""
    depth = 1
    for index in range(start, len(line)):
        depth += (line[index] == "(") - (line[index] == ")")
        if not depth:
            return index
    raise ValueError(f"{line!r} has a parenthesis too few")


def _split(text: str) -> list[str]:
    pieces, depth, begin = [], 0, 0
    for index, sign in enumerate(text):
        depth += (sign == "(") - (sign == ")")
        if sign == "," and not depth:
            pieces.append(text[begin:index].strip())
            begin = index + 1
    return [*pieces, text[begin:].strip()] if text.strip() else []


def _argument(text: str) -> tuple[str, str]:
    """The type and the name of an argument. Raises ValueError if there is none."""
    if not text:
        raise ValueError("an argument is empty")
    pointed = _POINTER_NAME.search(text)
    if pointed is not None:
        c_type = f"{text[: pointed.start()]}({pointed['stars'].strip()}{pointed['more']}){text[pointed.end() :]}"
        return c_type, pointed["name"]
    array = _ARRAY.search(text)
    c_type, name = _plain(text[: array.start()] if array else text)
    if array is None:
        return c_type, name
    rest = text[array.end() :]
    # What an array has in it may be arrays again.
    pointer = f"{c_type} (*){rest}" if rest else f"{c_type}{'' if c_type.endswith('*') else ' '}*"
    return pointer, name


def _plain(text: str) -> tuple[str, str]:
    match = _LAST_WORD.fullmatch(text)
    if match is None or match["name"] in _NO_NAMES:
        return text, ""
    words = match["c_type"].split()
    if words[-1] in ("struct", "union", "enum") or all(word in _NO_TYPES for word in words):
        return text, ""
    return match["c_type"].strip(), match["name"]
