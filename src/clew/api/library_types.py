"""What types of a library's header say of arguments and results: typedefs are followed to what they are of.

Runs in the controller. The rules are those of system calls (`c_types.py`), and what only libraries have: handles, which
are pointers to structures that have a name of their own, or whose members no header tells; strings that are results;
typedefs under which the width of a number can't be seen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from typing import Final

from clew.api.argument_words import LONG_DOUBLE
from clew.api.c_prototypes import Access, Prototype
from clew.api.c_types import BY_TYPE, ENTITIES, FILE_NAMES, count_of, plain_type, raw_type_of
from clew.api.description import Function, Parameter
from clew.api.values import width_bits
from clew.api.vocabulary import RESULT

__all__ = ["LibraryTypes", "describe_arguments", "describe_function", "describe_number", "describe_result"]

_LENGTHS: Final = re.compile(r"\w*(len|length|size|bytes?|sz|cnt)|n|in_?l|num", re.IGNORECASE)
_TIMES: Final = re.compile(r"n|nmemb|nitems|count", re.IGNORECASE)
"""What follows upon a size that is one element's, not the buffer's."""

_FILES: Final = re.compile(r"\w*(file_?name|path|path_?name)|file|dir(name)?", re.IGNORECASE)
_TRAILING: Final = re.compile(r"(?<=\*) ?(const|volatile)$")
_RECORDS: Final = ("struct", "union")
_WIDE: Final = "wchar_t"
_BYTES: Final = frozenset({"unsigned char", "signed char"})
_BY_TYPE: Final = {**BY_TYPE, "mode_t": "mode", "off64_t": "offset", "id_t": "uint"}
_NUMBERS: Final = {
    "char": ("int", 8),
    "signed char": ("int", 8),
    "unsigned char": ("uint", 8),
    "_Bool": ("uint", 8),
    "short": ("int", 16),
    "unsigned short": ("uint", 16),
    "int": ("int", 32),
    "unsigned int": ("uint", 32),
    "enum": ("enum", 32),
    "long": ("long", 64),
    "unsigned long": ("ulong", 64),
    "long long": ("long", 64),
    "unsigned long long": ("ulong", 64),
}
"""Raw types and bits of integers."""

_FLOATS: Final = {"float": 32, "double": 64}

_PLAIN_BY_NAME: Final = {"uid_t": "uid", "gid_t": "gid", "pid_t": "pid"}
_PLAIN: Final = {
    "int": "int",
    "unsigned int": "uint",
    "long": "long",
    "unsigned long": "ulong",
    "long long": "long",
    "unsigned long long": "ulong",
}
"""Structures of clew's own files that are one number."""

_FILLED: Final = frozenset({"buffer", "timespec", "sockaddr", "iovec", "struct"})
"""What a function may fill, if it is not constant."""


class LibraryTypes:
    """What the names of a library's types stand for. `typedefs`: types by name, of structures and enumerations that
    have no other name `struct`, `union` or `enum`. `opaque`: structures whose members no header tells. `structs`: names
    of descriptions of structures, and `tables` of those of enumerations, by how they are called."""

    def __init__(
        self,
        typedefs: Mapping[str, str],
        opaque: Set[str] = frozenset(),
        structs: Mapping[str, str] | None = None,
        tables: Mapping[str, str] | None = None,
    ) -> None:
        self._typedefs, self._opaque = typedefs, opaque
        self._structs = {} if structs is None else structs
        self._tables = {} if tables is None else tables

    def chain(self, c_type: str) -> list[str]:
        """A type and all that it stands for one after the other, up to one that is no typedef. Of a pointer it is left
        out that it is constant itself."""
        chain = [_TRAILING.sub("", c_type)]
        while (below := self._typedefs.get(plain_type(chain[-1]))) is not None and below not in chain:
            chain.append(_TRAILING.sub("", below))
        return chain

    def is_pointer(self, c_type: str) -> bool:
        """Whether a value is an address: of arrays and functions those are given."""
        return self.chain(c_type)[-1].endswith(("*", "]", ")"))

    def handle(self, c_type: str) -> str | None:
        """The kind of thing for which a pointer stands: the name of a structure's type; None: it is no handle."""
        *above, pointer = self.chain(c_type)
        if not _is_simple_pointer(pointer):
            return None
        target = _target(pointer)
        *_, last = self.chain(target)
        is_record = last.startswith(_RECORDS)
        if target in self._typedefs:
            return target if is_record or last == "void" else None
        if is_record and (above or target in self._opaque):
            # A typedef of a pointer names what it leads to, if nothing else does.
            return plain_type(above[-1]) if above else target.split()[-1]
        return None

    def spelled(self, c_type: str) -> str:
        """A pointer as it is without typedefs, of itself and of what it leads to, for rules that go by types."""
        pointer = self.chain(c_type)[-1]
        if not _is_simple_pointer(pointer):
            return "void (*)(void)" if self.is_pointer(c_type) else pointer
        words = self.chain(_target(pointer))
        is_const = any("const" in word.split() for word in (pointer.removesuffix("*"), *words))
        is_named = words[-1] in _RECORDS or plain_type(words[0]) == _WIDE
        shown = plain_type(words[0]) if is_named else plain_type(words[-1])
        return f"{'const ' if is_const else ''}{shown} *"

    def struct(self, c_type: str) -> str | None:
        """The description of a structure."""
        names = (plain_type(one) for one in self.chain(c_type))
        return next((self._structs[name] for name in names if name in self._structs), None)

    def pointed_struct(self, c_type: str) -> str | None:
        """The description of the structure that a pointer leads to."""
        pointer = self.chain(c_type)[-1]
        return self.struct(_target(pointer)) if _is_simple_pointer(pointer) else None

    def table(self, c_type: str) -> str | None:
        """The table of an enumeration."""
        names = (plain_type(one).removeprefix("enum ") for one in self.chain(c_type))
        return next((self._tables[name] for name in names if name in self._tables), None)

    def plain_struct(self, c_type: str) -> str | None:
        """What describes one number of a type, where arrays of those are told."""
        chain = [plain_type(one) for one in self.chain(c_type)]
        known = (_PLAIN_BY_NAME.get(one.lstrip("_")) for one in chain)
        return next((one for one in known if one), _PLAIN.get(chain[-1]))


def _is_simple_pointer(c_type: str) -> bool:
    return c_type.endswith("*") and "(" not in c_type


def _target(pointer: str) -> str:
    return " ".join(word for word in pointer.removesuffix("*").split() if word not in ("const", "volatile"))


def _own_name(name: str) -> str:
    """A name without the underscores by which a header keeps out of others' way."""
    return name.lstrip("_") or name


def describe_function(prototype: Prototype, types: LibraryTypes, filter_name: str = "Other") -> Function:
    """A function by its declaration."""
    parameters = describe_arguments(prototype, types)
    if prototype.result is not None:
        parameters.append(describe_result(prototype.result, types))
    return Function(prototype.name, filter_name, tuple(parameters))


def describe_arguments(prototype: Prototype, types: LibraryTypes) -> list[Parameter]:
    """The arguments of a function, by their indexes; those that have no name are `arg0`, `arg1` and so on."""
    arguments = [(c_type, _own_name(name) or f"arg{index}") for index, (c_type, name) in enumerate(prototype.arguments)]
    spelled = [(types.spelled(c_type), name) for c_type, name in arguments]
    accesses = {access.index: access for access in prototype.accesses}
    return [
        _described(arguments, spelled, index, accesses.get(index), types, gives_length=prototype.result == "ssize_t")
        for index in range(len(arguments))
    ]


def _described(
    arguments: Sequence[tuple[str, str]],
    spelled: Sequence[tuple[str, str]],
    index: int,
    access: Access | None,
    types: LibraryTypes,
    *,
    gives_length: bool,
) -> Parameter:
    """An argument; `gives_length`: the result is how much there is."""
    c_type, name = arguments[index]
    own = spelled[index][0]
    shown, raw_type, kind, entity = _pointer_or_number(c_type, name, types)
    struct = types.pointed_struct(c_type) if raw_type in ("pointer", "struct") else None
    if struct is not None:
        raw_type, kind, entity = "struct", "Info", None
    counts = {} if _is_of_elements(spelled, index) else _how_much(spelled, index, raw_type)
    if access is not None and types.is_pointer(c_type):
        raw_type, struct, counts = _accessed(c_type, raw_type, struct, access, types, gives_length=gives_length)
    size, room = counts.get("Bytes"), None
    if raw_type == "buffer" and size is None:
        # Where it ends nobody says but itself, if it is text.
        raw_type = "string" if own == "const char *" else "pointer"
    direction = "in"
    if access is not None:
        direction = access.direction
    elif raw_type in _FILLED and "const" not in own.split():
        direction = "out" if struct is None else "inout"
    if direction == "out" and raw_type == "buffer" and size is not None and gives_length:
        # It says how much there is.
        size, room = RESULT, size
    return Parameter(
        index,
        name,
        shown,
        raw_type,
        kind,
        entity,
        flags=types.table(c_type) if raw_type == "enum" else None,
        direction=direction,
        when="entry" if direction == "in" else "exit",
        count=counts.get("Count"),
        size_index=size,
        room_index=room,
        struct=struct,
        elements=counts.get("Elements"),
    )


def _accessed(
    c_type: str, raw_type: str, struct: str | None, access: Access, types: LibraryTypes, *, gives_length: bool
) -> tuple[str, str | None, dict[str, int]]:
    """The raw type, the structure and how much an argument leads to, by the attribute of its function."""
    target = _target(types.chain(c_type)[-1])
    last, size = plain_type(types.chain(target)[-1]), access.size_index
    if last == "char" and not (size is not None and (access.direction != "out" or gives_length)):
        # Text ends by itself; where no more than so many bytes are written, too.
        return "string", None, {}
    if last in ("char", "void", *_BYTES):
        return (raw_type, None, {}) if size is None else ("buffer", None, {"Bytes": size})
    element = struct or types.plain_struct(target)
    if element is None:
        return raw_type, None, {}
    if size is not None:
        return "struct", element, {"Count": size}
    return "struct", element, {} if struct is not None else {"Elements": 1}


def describe_result(c_type: str, types: LibraryTypes) -> Parameter:
    """The result of a function that gives that type."""
    shown, raw_type, kind, entity = _pointer_or_number(c_type, "result", types)
    if raw_type == "buffer":
        raw_type = "string" if types.spelled(c_type) in ("char *", "const char *") else "pointer"
    if shown == LONG_DOUBLE:
        # No capture looks into the registers of x87's.
        raw_type = "raw"
    table = types.table(c_type) if raw_type == "enum" else None
    return Parameter(RESULT, "result", shown, raw_type, kind, entity, table, direction="out", when="exit")


def _is_of_elements(arguments: Sequence[tuple[str, str]], index: int) -> bool:
    """Whether the argument behind is the size of one element, of which a further one says how many there are."""
    behind = arguments[index + 1 : index + 3]
    return (
        len(behind) == 2
        and all(c_type in _NUMBERS for c_type, _ in behind)
        and _TIMES.fullmatch(behind[1][1]) is not None
    )


def _how_much(arguments: Sequence[tuple[str, str]], index: int, raw_type: str) -> dict[str, int]:
    """`Bytes` or `Count` as `count_of` has it, and by names of lengths that only libraries use."""
    counts = count_of(arguments, index, raw_type)
    # Text ends by itself, and what is behind it may be a negative number that says so.
    if counts or raw_type != "buffer" or index + 1 == len(arguments) or arguments[index][0] == "const char *":
        return counts
    c_type, name = arguments[index + 1]
    return {"Bytes": index + 1} if c_type in _NUMBERS and _LENGTHS.fullmatch(name) else {}


def _pointer_or_number(c_type: str, name: str, types: LibraryTypes) -> tuple[str, str, str, str | None]:
    """The type as it is told, the raw type, the kind of parameter, and the kind of thing it stands for."""
    if types.is_pointer(c_type):
        return _pointer(c_type, name, types)
    shown, raw_type = describe_number(c_type, name, types)
    return (shown, raw_type, *ENTITIES.get(raw_type, ("Info", None)))


def _pointer(c_type: str, name: str, types: LibraryTypes) -> tuple[str, str, str, str | None]:
    spelled = types.spelled(c_type)
    handle = types.handle(c_type)
    raw_type = raw_type_of(spelled, name)
    if spelled == "const char *" and (_FILES.fullmatch(name) or FILE_NAMES.fullmatch(name)) and name != "name":
        raw_type = "path"
    elif spelled == "const char *":
        raw_type = "buffer" if raw_type == "path" else raw_type
    elif plain_type(spelled).removesuffix(" *") in _BYTES:
        raw_type = "buffer"
    elif spelled in ("const void *", "void *"):
        raw_type = "buffer" if handle is None else "pointer"
    if raw_type in ("pointer", "struct") and handle is not None:
        return c_type, "pointer", "Reference", handle
    return (c_type, raw_type, *ENTITIES.get(raw_type, ("Info", None)))


def describe_number(c_type: str, name: str, types: LibraryTypes) -> tuple[str, str]:
    """The type of a number as it is told, and its raw type."""
    chain = [plain_type(one) for one in types.chain(c_type)]
    last = "enum" if chain[-1].startswith("enum ") else chain[-1]
    if last == LONG_DOUBLE:
        return last, "float"
    if last in _FLOATS:
        return (c_type if width_bits(c_type) == _FLOATS[last] else last), "float"
    if last not in _NUMBERS:
        return (c_type, "hex") if last == "void" else (last, "raw")
    raw_type, bits = _NUMBERS[last]
    known = next((_BY_TYPE[one.lstrip("_")] for one in chain if one.lstrip("_") in _BY_TYPE), None)
    if known is not None:
        raw_type = known
    elif last in ("int", "unsigned int", "unsigned long", "long") and len(chain) == 1:
        raw_type = raw_type_of(last, name)
    # The width of a number is told by its type, and not every name has one to see.
    return (c_type if width_bits(c_type) == bits else plain_type(last)), raw_type
