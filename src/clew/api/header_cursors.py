"""What headers declare, as libclang sees it, in the words of `prototypes.txt`.

Runs where prototypes are captured, and in the controller where somebody names headers; needs libclang's binding, which
is imported when it is needed. Cursors and types are libclang's.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Final

from clew.dataclass import dataclass, field

__all__ = ["ATTRIBUTES", "Section", "declarator", "keep_function", "spelled_type"]

ATTRIBUTES: Final = """#include <sys/cdefs.h>
#undef __attr_access
#undef __fortified_attr_access
#define __attr_access(x) __attribute__ ((__access__ x))
#define __fortified_attr_access(a, o, s) __attr_access ((a, o, s))
#define __access__(...) annotate ("access " #__VA_ARGS__)
"""
"""In front of headers: what functions read and write by attributes of gcc's, which clang does not know, as notes."""

_ACCESS: Final = re.compile(r"access _*(?P<way>read_only|write_only|read_write)_*, *(?P<rest>\d+(, *\d+)?)")
_UNNAMED: Final = re.compile(r"\b(?P<kind>struct|union|enum) \((?:unnamed|anonymous)[^)]*\)")


@dataclass
class Section:
    """What is kept of a library. `lines`: prototypes by function; `typedefs`: types by name; `opaque`: structures that
    no header says more of. `accesses`: what arguments lead to, by function, `write_only 2 3`; `enums`: names and values
    by the enumeration's name; `structs`: libclang's types of structures by how they are called."""

    lines: dict[str, str] = field(default_factory=dict)
    typedefs: dict[str, str] = field(default_factory=dict)
    opaque: set[str] = field(default_factory=set)
    accesses: dict[str, list[str]] = field(default_factory=dict)
    enums: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    structs: dict[str, Any] = field(default_factory=dict)

    def line(self, name: str) -> str | None:
        """All that is known of a function in a line, if it is there."""
        line, accesses = self.lines.get(name), self.accesses.get(name)
        return f"{line} // {', '.join(accesses)}" if line is not None and accesses else line


def keep_function(section: Section, cursor: Any, name: str) -> None:
    """Keep the declaration of a function, and what the types in it are. Of several that counts which says more."""
    line = _prototype(cursor, name)
    if line is None:
        return
    accesses = list(_accesses(cursor))
    if accesses and len(accesses) >= len(section.accesses.get(name, ())):
        section.accesses[name] = accesses
    if len(line) <= len(section.lines.get(name, "")):
        return
    # Of several declarations that counts which names its arguments.
    section.lines[name] = line
    for kind in (cursor.result_type, *cursor.type.argument_types()):
        _remember(section, kind)
        _remember_values(section, kind)


def _accesses(cursor: Any) -> Iterator[str]:
    """What the attributes of a function say of what its arguments lead to: `write_only 2 3`, numbers from 1 on."""
    from clang.cindex import CursorKind

    for child in cursor.get_children():
        if child.kind == CursorKind.ANNOTATE_ATTR:
            found = _ACCESS.fullmatch(child.spelling)
            if found is not None:
                yield f"{found['way']} {found['rest'].replace(',', '')}"


def _remember_values(section: Section, kind: Any) -> None:
    """Keep the names of an enumeration's values."""
    from clang.cindex import CursorKind, TypeKind

    own = kind.get_canonical()
    if own.kind != TypeKind.ENUM:
        return
    name = spelled_type(kind).removeprefix("const ").removeprefix("enum ")
    values = [
        (child.spelling, child.enum_value)
        for child in own.get_declaration().get_children()
        if child.kind == CursorKind.ENUM_CONSTANT_DECL
    ]
    if values and name.isidentifier():
        section.enums.setdefault(name, values)


def declarator(c_type: str, name: str) -> str:
    """A type with a name, as C has it: `char *` and `p` is `char *p`, `int (*)(int)` and `f` is `int (*f)(int)`."""
    pointer = re.search(r"\(\*+(const)?(?=\))", c_type)
    if pointer is not None:
        return f"{c_type[: pointer.end()]}{' ' if pointer[1] and name else ''}{name}{c_type[pointer.end() :]}"
    element, bracket, rest = c_type.partition("[")
    element = element.rstrip()
    return f"{element}{'' if element.endswith('*') or not name else ' '}{name}{bracket}{rest}"


def spelled_type(kind: Any) -> str:
    """A type as the header has it, without what says nothing of its form."""
    text = re.sub(r"\b(?:__)?restrict\b", " ", _UNNAMED.sub(r"\g<kind>", kind.spelling))
    return re.sub(r" (?=[],)])|(?<=\[) ", "", " ".join(text.split()))


def _passed(typedef: Any) -> Any:
    """The type that a typedef stands for. For a transparent union, as which pointers are passed, that of the first."""
    from clang.cindex import CursorKind, TypeKind

    below = typedef.underlying_typedef_type
    members = list(below.get_canonical().get_declaration().get_children())
    has_attribute = any(member.kind == CursorKind.UNEXPOSED_ATTR for member in members)
    fields = [member.type for member in members if member.kind == CursorKind.FIELD_DECL]
    is_union = below.get_canonical().get_declaration().kind == CursorKind.UNION_DECL
    if is_union and has_attribute and all(one.get_canonical().kind == TypeKind.POINTER for one in fields):
        return fields[0]
    return below


def _remember(section: Section, kind: Any) -> None:
    """Keep what the names within a type stand for."""
    from clang.cindex import TypeKind

    while kind.kind in (TypeKind.POINTER, TypeKind.ELABORATED):
        kind = kind.get_pointee() if kind.kind == TypeKind.POINTER else kind.get_named_type()
    declaration = kind.get_declaration()
    if kind.kind == TypeKind.TYPEDEF:
        name, below = declaration.spelling, _passed(declaration)
        spelled = spelled_type(below)
        if name not in section.typedefs:
            own = re.fullmatch(r"(?:(struct|union|enum) )?(\w+)", spelled)
            if own is not None and own[2] == name:
                # A structure without a name of its own is called by that of its typedef.
                spelled = own[1] or below.get_canonical().kind.name.lower().replace("record", "struct")
            section.typedefs[name] = spelled
            if spelled in ("struct", "union"):
                section.structs.setdefault(name, below.get_canonical())
            _remember(section, below)
    elif kind.kind == TypeKind.RECORD and declaration.get_definition() is None:
        section.opaque.add(spelled_type(kind).removeprefix("const "))
    elif kind.kind == TypeKind.RECORD:
        section.structs.setdefault(spelled_type(kind).removeprefix("const "), kind)


def _prototype(cursor: Any, name: str) -> str | None:
    """The line of a function; None for one whose header says nothing of its arguments."""
    from clang.cindex import TypeKind

    if cursor.type.kind != TypeKind.FUNCTIONPROTO:
        return None
    kinds = [spelled_type(kind) for kind in cursor.type.argument_types()]
    names = [argument.spelling for argument in cursor.get_arguments()]
    arguments = [declarator(*pair) for pair in zip(kinds, names, strict=True)]
    if cursor.type.is_function_variadic():
        arguments.append("...")
    line = declarator(spelled_type(cursor.result_type), f"{name}({', '.join(arguments) or 'void'})")
    return f"_Noreturn {line}" if "noreturn" in cursor.type.spelling else line
