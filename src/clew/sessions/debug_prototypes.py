"""Prototypes of functions by debugging information, which knows code by its address: other names of it have none there.

Runs in the controller, under the lock of the images. What can't be read is not known.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from clew.api.c_prototypes import Prototype
from clew.api.description import Function, Parameter
from clew.api.library_types import LibraryTypes, describe_arguments, describe_result
from clew.binary.debug_entries import Entry
from clew.binary.debug_lists import read_ranges
from clew.binary.debug_names import Attribute, Encoding, Tag
from clew.errors import BinaryError

if TYPE_CHECKING:
    from clew.binary.debug_file import DebugFile

__all__ = ["DebugPrototypes"]

_MAX_SECONDS: Final = 4.0
"""So long debugging information of one file is read, whose process waits meanwhile."""
_MAX_ARGUMENTS: Final = 64
_MAX_DEPTH: Final = 32
_MAX_NAME: Final = 200
"""Of a type, which templates can make longer than a line."""

_QUALIFIERS: Final[dict[int, str]] = {Tag.CONST_TYPE: "const", Tag.VOLATILE_TYPE: "volatile", Tag.RESTRICT_TYPE: ""}
_RECORDS: Final[dict[int, str]] = {Tag.STRUCTURE_TYPE: "struct", Tag.CLASS_TYPE: "struct", Tag.UNION_TYPE: "union"}
_POINTERS: Final = (Tag.POINTER_TYPE, Tag.REFERENCE_TYPE, Tag.RVALUE_REFERENCE_TYPE)
_SIGNED: Final = {1: "signed char", 2: "short", 4: "int", 8: "long"}
_UNSIGNED: Final = {1: "unsigned char", 2: "unsigned short", 4: "unsigned int", 8: "unsigned long"}
_FLOATS: Final = {4: "float", 8: "double", 16: "long double"}


class DebugPrototypes:
    """Of one file."""

    def __init__(self, file: DebugFile) -> None:
        self._file = file
        self._seconds = 0.0

    def find(self, address: int, name: str) -> Function | None:
        """The function that begins at a link address, told by a name; None: nothing says what it is, or not soon."""
        if self._seconds >= _MAX_SECONDS:
            return None
        started = time.monotonic()
        try:
            return self._find(address, name)
        except (BinaryError, RecursionError):
            return None
        finally:
            self._seconds += time.monotonic() - started

    def _find(self, address: int, name: str) -> Function | None:
        file = self._file
        unit = file.find_unit(address) if file.units else None
        scopes = [] if unit is None or unit.is_split else file.find_scopes(unit, address)
        if not scopes or not any(start == address for start, _ in read_ranges(scopes[0])):
            return None
        return _described(scopes[0], name)


def _described(entry: Entry, name: str) -> Function:
    """A function by its entry."""
    types = _Types()
    children = entry.children()
    arguments = [one for one in children if one.tag == Tag.FORMAL_PARAMETER][:_MAX_ARGUMENTS]
    told = tuple((types.of(one), one.name) for one in arguments)
    does_return = not any(Attribute.NORETURN in one.attributes for one in entry.origins())
    result = types.of(entry) if does_return else None
    is_variadic = any(one.tag == Tag.UNSPECIFIED_PARAMETERS for one in children)
    prototype = Prototype(name, told, result, is_variadic)
    known = LibraryTypes(types.typedefs, types.opaque)
    parameters: list[Parameter] = describe_arguments(prototype, known)
    if result is not None:
        parameters.append(describe_result(result, known))
    return Function(name, "Other", tuple(parameters))


class _Types:
    """Types as C writes them, with what the names in them stand for."""

    def __init__(self) -> None:
        self.typedefs: dict[str, str] = {}
        self.opaque: set[str] = set()

    def of(self, entry: Entry) -> str:
        """The type of a parameter, or of what a function returns. Raises BinaryError."""
        return self._follow(entry, 0)

    def _follow(self, entry: Entry, depth: int) -> str:
        found = entry.find(Attribute.TYPE)
        target = None if found is None else found[0].unit.follow(found[1])
        return "void" if target is None or depth > _MAX_DEPTH else self._text(target, depth + 1)

    def _text(self, entry: Entry, depth: int) -> str:
        name = entry.name[:_MAX_NAME]
        if entry.tag in _QUALIFIERS:
            inner, word = self._follow(entry, depth), _QUALIFIERS[entry.tag]
            # Of a pointer itself it stands behind it.
            return inner if not word else f"{inner} {word}" if inner.endswith("*") else f"{word} {inner}"
        if entry.tag in _POINTERS or entry.tag == Tag.ARRAY_TYPE:
            inner = self._follow(entry, depth)
            # Such a one is told as an address, whatever its function takes.
            return inner if "(" in inner else f"{inner}{'' if inner.endswith('*') else ' '}*"
        if entry.tag == Tag.SUBROUTINE_TYPE:
            return "void (*)(void)"
        if entry.tag == Tag.TYPEDEF:
            if name not in self.typedefs:
                # It may lead to itself.
                self.typedefs[name] = name
                self.typedefs[name] = self._follow(entry, depth)
            return name
        if entry.tag in _RECORDS:
            word = _RECORDS[entry.tag]
            if entry.number(Attribute.DECLARATION):
                self.opaque.add(f"{word} {name}")
            return f"{word} {name}" if name else word
        if entry.tag == Tag.ENUMERATION_TYPE:
            return f"enum {name}" if name else "enum"
        return self._base(entry, name)

    @staticmethod
    def _base(entry: Entry, name: str) -> str:
        size = entry.number(Attribute.BYTE_SIZE) or 0
        match entry.number(Attribute.ENCODING):
            case Encoding.SIGNED_CHAR | Encoding.UNSIGNED_CHAR if name == "char":
                return "char"
            case Encoding.SIGNED | Encoding.SIGNED_CHAR:
                return _SIGNED.get(size, name)
            case Encoding.UNSIGNED | Encoding.UNSIGNED_CHAR | Encoding.UTF:
                return _UNSIGNED.get(size, name)
            case Encoding.BOOLEAN:
                return "_Bool"
            case Encoding.FLOAT if "128" in name:
                # As long as x87's, and passed in other registers.
                return name
            case Encoding.FLOAT:
                return _FLOATS.get(size, name)
        return name or "void"
