"""Functions that nothing else describes, by headers that somebody names: what they declare when they are compiled.

Runs in the controller, where libclang's binding is installed (`clew[headers]`), which is imported here only. Structures
and enumerations of the headers become descriptions of their own. Headers are somebody's own files; what they have is
bounded by what descriptions may have.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from clew.api.c_prototypes import parse_prototype
from clew.api.description import Function
from clew.api.descriptions import Descriptions
from clew.api.header_cursors import ATTRIBUTES, Section, keep_function
from clew.api.header_records import struct_of
from clew.api.library_types import LibraryTypes, describe_function
from clew.api.prototypes import Prototypes, enum_table
from clew.errors import UsageError

__all__ = ["Headers"]

_PREFIX: Final = "header"
_MAX_DEPTH: Final = 4
"""Of structures within structures."""

_SYSTEM_FOLDERS: Final = ("/usr/include", "/usr/local/include")
_COMPILERS: Final = ("usr/lib/gcc/*/*/include", "usr/lib/clang/*/include", "usr/lib/llvm-*/lib/clang/*/include")
"""Where compilers have the headers that are their own."""


class Headers:
    """The functions of some headers. `names` are as in `#include <...>`, or paths; `folders` are looked in first."""

    def __init__(self, names: Sequence[str], folders: Sequence[Path], descriptions: Descriptions) -> None:
        """Raises UsageError where there is no libclang, or a header does not compile."""
        self._descriptions = descriptions
        # As it stands here; what is not here is looked for in the folders.
        paths = [os.path.abspath(name) if Path(name).is_file() else name for name in names]
        unit = _parse(paths, folders)
        self._own_folders = frozenset(
            os.path.dirname(path) for path in paths if path.startswith("/") and not _is_system(os.path.dirname(path))
        )
        self._own_files = _files_of(unit, paths)
        self._unit = unit
        self._cursors = _functions(unit)
        self._section = Section()
        self._same = Prototypes().same_structs()
        self._structs: dict[str, str] = {}
        self._tables: dict[str, str] = {}
        self._types = LibraryTypes(self._section.typedefs, self._section.opaque, self._structs, self._tables)

    def find(self, names: Iterable[str]) -> Function | None:
        """The first function that is declared of some names; None: none is."""
        name = next((one for one in names if one in self._cursors), None)
        if name is None:
            return None
        for cursor in self._cursors[name]:
            keep_function(self._section, cursor, name)
        line = self._section.line(name)
        if line is None:
            return None
        for own, values in self._section.enums.items():
            if own not in self._tables:
                table = enum_table(_PREFIX, own, [f"{flag}={value}" for flag, value in values])
                self._descriptions.add_table(table)
                self._tables[own] = table.name
        for spelled, kind in self._section.structs.items():
            self._add_struct(spelled, kind, 0)
        return describe_function(parse_prototype(line), self._types)

    def _add_struct(self, spelled: str, kind: Any, depth: int) -> None:
        """Describe a structure and those in it; not one of the C library's, of which only handles are given."""
        from clang.cindex import CursorKind, TypeKind

        same = self._descriptions.struct(self._same.get(spelled))
        if same is not None and same.size == kind.get_size():
            self._structs[spelled] = same.name
        declaration = kind.get_canonical().get_declaration()
        is_struct = declaration.kind == CursorKind.STRUCT_DECL
        if spelled in self._structs or depth == _MAX_DEPTH or not is_struct or not self._is_own(declaration):
            return
        for field in kind.get_canonical().get_fields():
            if field.type.get_canonical().kind == TypeKind.RECORD:
                self._add_struct(field.type.spelling.removeprefix("const "), field.type, depth + 1)
        made = struct_of(f"{_PREFIX} {spelled}", kind, self._types)
        if made is not None:
            self._descriptions.add_struct(made)
            self._structs[spelled] = made.name

    def _is_own(self, declaration: Any) -> bool:
        file = declaration.location.file
        if file is None:
            return False
        path = os.path.abspath(file.name)
        return path in self._own_files or any(path.startswith(f"{folder}/") for folder in self._own_folders)


def _is_system(folder: str) -> bool:
    return any(folder == one or folder.startswith(f"{one}/") for one in _SYSTEM_FOLDERS)


def _parse(names: Sequence[str], folders: Sequence[Path]) -> Any:
    """The translation unit that includes some headers. Raises UsageError."""
    try:
        from clang.cindex import Diagnostic, Index, LibclangError, TranslationUnit
    except ImportError as error:
        raise UsageError("--header needs libclang's binding: pip install 'clew[headers]'") from error
    includes = "".join(f'#include "{name}"\n' if name.startswith("/") else f"#include <{name}>\n" for name in names)
    options = ["-xc", "-std=gnu17", "-w", "-D_GNU_SOURCE", "-fno-builtin"]
    options += [f"-I{folder}" for folder in (*folders, *(os.path.dirname(one) for one in names if one[0] == "/"))]
    options += [f"-isystem{folder}" for pattern in _COMPILERS for folder in sorted(Path("/").glob(pattern))[-1:]][:1]
    try:
        unit = Index.create().parse(
            "headers.c",
            args=options,
            unsaved_files=[("headers.c", ATTRIBUTES + includes)],
            options=TranslationUnit.PARSE_SKIP_FUNCTION_BODIES,
        )
    except LibclangError as error:
        raise UsageError(f"--header: libclang can't be used: {error}") from error
    wrong = [one for one in unit.diagnostics if one.severity >= Diagnostic.Error]
    if wrong:
        place = wrong[0].location
        where = f"{place.file.name}:{place.line}: " if place.file is not None else ""
        raise UsageError(f"--header: {where}{wrong[0].spelling}; --header-folder says where else headers are")
    return unit


def _files_of(unit: Any, names: Sequence[str]) -> frozenset[str]:
    """The files that headers of those names are."""
    found = (os.path.abspath(one.include.name) for one in unit.get_includes() if one.depth == 1)
    return frozenset(path for path in found if any(path == name or path.endswith(f"/{name}") for name in names))


def _functions(unit: Any) -> dict[str, list[Any]]:
    """Declarations of functions that others can call, by the name that symbols have."""
    from clang.cindex import CursorKind, StorageClass

    found: dict[str, list[Any]] = {}
    for cursor in unit.cursor.get_children():
        if cursor.kind == CursorKind.FUNCTION_DECL and cursor.storage_class != StorageClass.STATIC:
            for name in {cursor.spelling, cursor.mangled_name}:
                found.setdefault(name, []).append(cursor)
    return found
