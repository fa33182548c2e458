"""Prototypes of libraries' functions: finds a function by its library's file and its name, and describes it.

Runs in the controller. `prototypes.txt` (`generate/prototypes_capture.py` writes it) has a section for each library,
`[libz.so*]`: a pattern of its file's name. Therein are functions as C declares them, `int deflate(z_streamp strm, int
flush)`; what names stand for, `typedef z_stream * z_streamp`, where `typedef struct z_stream` is all of what a
structure is said to be; and `opaque struct ssl_st`, a structure whose members no header tells.

The file is read when something is asked for the first time, and a line of it when its function is.

Arguments have the indexes that they have in C. Structures that are no pointers, and numbers with a point that have no
register of their own, are of the raw type `raw`.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from clew.api.c_prototypes import Prototype, parse_prototype
from clew.api.description import Function, Parameter
from clew.api.library_types import LibraryTypes, describe_arguments, describe_result

__all__ = ["PROTOTYPES", "Prototypes"]

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
_FUNCTION: Final = re.compile(r"^(?!typedef |opaque |#).*?\b(\w+)\(.*$", re.MULTILINE)
_TYPEDEF: Final = re.compile(r"^typedef (.+) (\w+)$", re.MULTILINE)
_OPAQUE: Final = re.compile(r"^opaque (.+)$", re.MULTILINE)


class _Section:
    """The functions of a library, and what its headers' types are; both are looked at when they are needed."""

    def __init__(self, pattern: str, text: str) -> None:
        self.pattern, self._text = pattern, text
        self._lines: dict[str, str] | None = None
        self._types: LibraryTypes | None = None
        self._made: dict[str, Function] = {}

    @property
    def lines(self) -> dict[str, str]:
        """Lines by the function's name."""
        if self._lines is None:
            self._lines = {match[1]: match[0] for match in _FUNCTION.finditer(self._text)}
        return self._lines

    def function(self, name: str) -> Function | None:
        """A function's description; None: the library has none of that name."""
        line = self.lines.get(name)
        if line is None:
            return None
        if name not in self._made:
            self._made[name] = _described(parse_prototype(line), self._own_types(), self.pattern)
        return self._made[name]

    def _own_types(self) -> LibraryTypes:
        if self._types is None:
            typedefs = {match[2]: match[1] for match in _TYPEDEF.finditer(self._text)}
            self._types = LibraryTypes(typedefs, frozenset(_OPAQUE.findall(self._text)))
        return self._types


def _described(prototype: Prototype, types: LibraryTypes, pattern: str) -> Function:
    parameters: list[Parameter] = describe_arguments(prototype, types)
    if prototype.result is not None:
        parameters.append(describe_result(prototype.result, types))
    return Function(prototype.name, _FILTERS.get(pattern, "Other"), tuple(parameters))


class Prototypes:
    """What is known of libraries' functions out of their headers. `path`: another file than clew's own."""

    def __init__(self, path: Path = PROTOTYPES) -> None:
        self._path = path
        self._read: list[_Section] | None = None

    @property
    def _sections(self) -> list[_Section]:
        """In the order of the file. Raises OSError where it can't be read."""
        if self._read is None:
            # A piece in front of the first section, then patterns and texts by turns.
            pieces = _SECTION.split(self._path.read_text(encoding="ascii"))
            self._read = [_Section(*pair) for pair in zip(pieces[1::2], pieces[2::2], strict=True)]
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

    def names(self) -> dict[str, list[str]]:
        """The names of all functions by their libraries' patterns, both in the order of the file."""
        return {section.pattern: list(section.lines) for section in self._sections}

    def line(self, pattern: str, function: str) -> str:
        """The declaration of a function in the section `pattern`. Raises KeyError where there is none."""
        return next(section.lines[function] for section in self._sections if section.pattern == pattern)
