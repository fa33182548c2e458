"""Prototypes of libraries' functions: finds a function by its library's file and its name, and describes it.

Runs in the controller. `prototypes.txt` (`generate/prototypes_capture.py` writes it) has a section for each library,
`[libz.so*]`: a pattern of its file's name. Therein are functions as C declares them, `int deflate(z_streamp strm, int
flush)`, behind which may be what its attributes say of arguments, ` // write_only 2 3`; what names stand for, `typedef
z_stream * z_streamp`, where `typedef struct z_stream` is all of what a structure is said to be; `opaque struct ssl_st`,
a structure whose members no header tells; `same stat struct stat`, one that clew's descriptions have as `stat`; and
`enum idtype_t P_ALL=0 P_PID=1`, names of an enumeration.

The file is read when something is asked for the first time, and a line of it when its function is.

Arguments have the indexes that they have in C. Structures that are no pointers, and numbers with a point that have no
register of their own, are of the raw type `raw`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from clew.api.c_prototypes import parse_prototype
from clew.api.description import Flag, FlagTable, Function
from clew.api.library_types import LibraryTypes, describe_function

__all__ = ["PROTOTYPES", "Prototypes", "enum_table"]

PROTOTYPES: Final = Path(__file__).resolve().with_name("prototypes.txt")

_FILTERS: Final = {
    "libcrypto.so*": "Crypto",
    "libssl.so*": "Crypto",
    "libcrypt.so*": "Crypto",
    "libz.so*": "Compression",
    "libbz2.so*": "Compression",
    "liblzma.so*": "Compression",
    "libzstd.so*": "Compression",
    "libsqlite3.so*": "Database",
    "libcurl.so*": "Network",
}
"""What functions are chosen by, of libraries for which that is not `Other`."""

_SECTION: Final = re.compile(r"^\[(.+)\]$", re.MULTILINE)
_FUNCTION: Final = re.compile(r"^(?!typedef |opaque |same |enum \w+ \w+=|#).*?\b(\w+)\(.*$", re.MULTILINE)
_TYPEDEF: Final = re.compile(r"^typedef (.+) (\w+)$", re.MULTILINE)
_OPAQUE: Final = re.compile(r"^opaque (.+)$", re.MULTILINE)
_SAME: Final = re.compile(r"^same (\w+) (.+)$", re.MULTILINE)
_ENUM: Final = re.compile(r"^enum (\w+) (\w+=.*)$", re.MULTILINE)


class _Section:
    """The functions of a library, and what its headers' types are; both are looked at when they are needed."""

    def __init__(self, pattern: str, text: str, add_table: Callable[[FlagTable], None]) -> None:
        self.pattern, self.text, self._add_table = pattern, text, add_table
        self._lines: dict[str, str] | None = None
        self._types: LibraryTypes | None = None
        self._made: dict[str, Function] = {}

    @property
    def lines(self) -> dict[str, str]:
        """Lines by the function's name."""
        if self._lines is None:
            self._lines = {match[1]: match[0] for match in _FUNCTION.finditer(self.text)}
        return self._lines

    def function(self, name: str) -> Function | None:
        """A function's description; None: the library has none of that name."""
        line = self.lines.get(name)
        if line is None:
            return None
        if name not in self._made:
            filter_name = _FILTERS.get(self.pattern, "Other")
            self._made[name] = describe_function(parse_prototype(line), self._own_types(), filter_name)
        return self._made[name]

    def _own_types(self) -> LibraryTypes:
        if self._types is None:
            typedefs = {match[2]: match[1] for match in _TYPEDEF.finditer(self.text)}
            same = {match[2]: match[1] for match in _SAME.finditer(self.text)}
            tables = [enum_table(self.pattern, match[1], match[2].split()) for match in _ENUM.finditer(self.text)]
            for table in tables:
                self._add_table(table)
            names = {table.name.rpartition(" ")[2]: table.name for table in tables}
            self._types = LibraryTypes(typedefs, frozenset(_OPAQUE.findall(self.text)), same, names)
        return self._types


def enum_table(library: str, name: str, values: Sequence[str]) -> FlagTable:
    """The table of an enumeration of a library, with `NAME=number`. It is called so that no other one is."""
    pairs = (text.partition("=") for text in values)
    # `__RLIMIT_RSS` stands behind a macro `RLIMIT_RSS`.
    flags = tuple(Flag(own.lstrip("_") or own, int(value)) for own, _, value in pairs)
    return FlagTable(f"{library} {name}", "flags" if _are_bits([flag.value for flag in flags]) else "enum", flags)


def _are_bits(values: Sequence[int]) -> bool:
    """Whether numbers look like those that are put together: bits, of which some are left out, and few sums of them."""
    bits = {value for value in values if value > 0 and not value & (value - 1)}
    sums = {value for value in values if value > 0} - bits
    every = sum(bits)
    is_run = max(values) - min(values) < len(set(values))
    return not is_run and len(bits) > 2 * len(sums) and all(value >= 0 and not value & ~every for value in values)


class Prototypes:
    """What is known of libraries' functions out of their headers. `path`: another file than clew's own. `add_table` is
    given the tables that functions name."""

    def __init__(self, path: Path = PROTOTYPES, add_table: Callable[[FlagTable], None] = lambda _: None) -> None:
        self._path, self._add_table = path, add_table
        self._read: list[_Section] | None = None

    @property
    def _sections(self) -> list[_Section]:
        """In the order of the file. Raises OSError where it can't be read."""
        if self._read is None:
            # A piece in front of the first section, then patterns and texts by turns.
            pieces = _SECTION.split(self._path.read_text(encoding="ascii"))
            self._read = [_Section(*pair, self._add_table) for pair in zip(pieces[1::2], pieces[2::2], strict=True)]
        return self._read

    def find(self, library: str, function: str) -> Function | None:
        """The function of the library whose file is called `library`, as `libz.so.1.3`, without folders.

        None: nobody knows it. Raises OSError if the prototypes can't be read, ValueError if their line is none.
        """
        for section in self._sections:
            if fnmatchcase(library, section.pattern):
                found = section.function(function)
                if found is not None:
                    return found
        return None

    def find_anywhere(self, function: str) -> Function | None:
        """The function of whichever library has it, the C library in front of all others. Raises as `find` does."""
        ordered = sorted(self._sections, key=lambda section: section.pattern != "libc.so*")
        found = (section.function(function) for section in ordered)
        return next((one for one in found if one is not None), None)

    def filter_of(self, library: str, function: str) -> str | None:
        """By what that function is chosen; the file is asked only of libraries for which that is not `Other`."""
        patterns = [pattern for pattern in _FILTERS if fnmatchcase(library, pattern)]
        sections = (section for section in self._sections if section.pattern in patterns) if patterns else ()
        return next((_FILTERS[section.pattern] for section in sections if function in section.lines), None)

    def same_structs(self) -> dict[str, str]:
        """Structures of headers that descriptions have, their names there by how headers call them."""
        return {match[2]: match[1] for section in self._sections for match in _SAME.finditer(section.text)}

    def values(self, pattern: str, enumeration: str) -> list[tuple[str, int]]:
        """Names and values of an enumeration of the section `pattern`; none where there is none."""
        texts = (section.text for section in self._sections if section.pattern == pattern)
        rows = next((match[2] for text in texts for match in _ENUM.finditer(text) if match[1] == enumeration), "")
        return [(name, int(value)) for name, _, value in (row.partition("=") for row in rows.split())]

    def names(self) -> dict[str, list[str]]:
        """The names of all functions by their libraries' patterns, both in the order of the file."""
        return {section.pattern: list(section.lines) for section in self._sections}

    def line(self, pattern: str, function: str) -> str:
        """The declaration of a function in the section `pattern`. Raises KeyError where there is none."""
        return next(section.lines[function] for section in self._sections if section.pattern == pattern)
