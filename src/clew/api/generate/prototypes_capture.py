"""Captures prototypes of library functions: `python -m clew.api.generate.prototypes_capture`.

Runs on a developer's machine, with the development packages of PACKAGES (Debian), gcc, readelf and pkg-config, and with
libclang's binding, which nothing else needs. Writes `prototypes.txt`, which `prototypes.py` reads
and whose form is told there. What a header declares and a library of the same package exports is kept, nothing else.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from clew.api.prototypes import PROTOTYPES
from clew.dataclass import dataclass, field

__all__ = ["Section", "declarator", "exported_functions", "library_files", "main", "section_pattern"]

PACKAGES: Final = (
    *("libc6-dev", "libcrypt-dev", "libssl-dev", "zlib1g-dev", "libbz2-dev", "liblzma-dev", "libzstd-dev"),
    *("libsqlite3-dev", "libcurl4-openssl-dev", "libexpat1-dev", "libxml2-dev", "libncurses-dev", "libreadline-dev"),
    *("libglib2.0-dev", "libffi-dev", "libevent-dev", "libuv1-dev", "libpcre2-dev", "libgmp-dev", "libpng-dev"),
    *("libjpeg62-turbo-dev", "libx11-dev", "libcap-dev", "libseccomp-dev", "libaudit-dev"),
)
"""Packages with headers and libraries. Of functions that are in libraries of several, each has its own."""

PASSES: Final[dict[str, tuple[tuple[str, ...], ...]]] = {
    "libc6-dev": ((), ("-O2", "-D_FORTIFY_SOURCE=2")),
    "libpcre2-dev": tuple((f"-DPCRE2_CODE_UNIT_WIDTH={bits}",) for bits in (8, 16, 32)),
}
"""Options by which headers of a package declare different functions."""

PRELUDE: Final = ("stddef.h", "stdarg.h", "stdio.h", "stdint.h", "sys/types.h")
"""What many headers need to have been included."""

_LINKED_FILE: Final = re.compile(r"[\w./+-]*lib[\w.+-]+\.so[\w.]*")
_SYMBOL: Final = re.compile(
    r"^ *\d+: [0-9a-f]+ +\S+ +(?:FUNC|IFUNC) +(?:GLOBAL|WEAK) +DEFAULT +\d+ (?P<name>\w+)(?:@@\S+)?$", re.MULTILINE
)
_SONAME: Final = re.compile(r"Library soname: \[(?P<name>[^]]+)\]")
_UNNAMED: Final = re.compile(r"\b(?P<kind>struct|union|enum) \((?:unnamed|anonymous)[^)]*\)")


@dataclass
class Section:
    """What is kept of a library. `lines`: prototypes by function; `typedefs`: types by name; `opaque`: structures that
    no header says more of."""

    lines: dict[str, str] = field(default_factory=dict)
    typedefs: dict[str, str] = field(default_factory=dict)
    opaque: set[str] = field(default_factory=set)


def _run(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def _files(package: str) -> list[Path]:
    return [Path(line) for line in _run("dpkg", "-L", package).splitlines() if line.startswith("/")]


def library_files(link: Path) -> list[Path]:
    """The library that a linker takes for `libNAME.so`: where that is a linker's script, those that it names."""
    if link.read_bytes()[:4] == b"\x7fELF":
        return [link.resolve()]
    named = (link.parent / match[0] for match in _LINKED_FILE.finditer(link.read_text(encoding="ascii")))
    return [path.resolve() for path in named if path.is_file() and path.read_bytes()[:4] == b"\x7fELF"]


def exported_functions(library: Path) -> frozenset[str]:
    """The functions that a program may be linked to: old versions of symbols are none."""
    return frozenset(match["name"] for match in _SYMBOL.finditer(_run("readelf", "-W", "--dyn-syms", str(library))))


def section_pattern(library: Path) -> str:
    """`libz.so*` for a library that says it is `libz.so.1`, or whose file is called so."""
    match = _SONAME.search(_run("readelf", "-W", "-d", str(library)))
    stem, mark, _ = (match["name"] if match else library.name).partition(".so")
    return f"{stem}{mark}*"


def declarator(c_type: str, name: str) -> str:
    """A type with a name, as C has it: `char *` and `p` is `char *p`, `int (*)(int)` and `f` is `int (*f)(int)`."""
    pointer = re.search(r"\(\*+(const)?(?=\))", c_type)
    if pointer is not None:
        return f"{c_type[: pointer.end()]}{' ' if pointer[1] and name else ''}{name}{c_type[pointer.end() :]}"
    element, bracket, rest = c_type.partition("[")
    element = element.rstrip()
    return f"{element}{'' if element.endswith('*') or not name else ' '}{name}{bracket}{rest}"


def _spelled(kind: Any) -> str:
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
        spelled = _spelled(below)
        if name not in section.typedefs:
            own = re.fullmatch(r"(?:(struct|union|enum) )?(\w+)", spelled)
            if own is not None and own[2] == name:
                # A structure without a name of its own is called by that of its typedef.
                spelled = own[1] or below.get_canonical().kind.name.lower().replace("record", "struct")
            section.typedefs[name] = spelled
            _remember(section, below)
    elif kind.kind == TypeKind.RECORD and declaration.get_definition() is None:
        section.opaque.add(_spelled(kind).removeprefix("const "))


def _prototype(cursor: Any, name: str) -> str | None:
    """The line of a function; None for one whose header says nothing of its arguments."""
    from clang.cindex import TypeKind

    if cursor.type.kind != TypeKind.FUNCTIONPROTO:
        return None
    kinds = [_spelled(kind) for kind in cursor.type.argument_types()]
    names = [argument.spelling for argument in cursor.get_arguments()]
    arguments = [declarator(*pair) for pair in zip(kinds, names, strict=True)]
    if cursor.type.is_function_variadic():
        arguments.append("...")
    line = declarator(_spelled(cursor.result_type), f"{name}({', '.join(arguments) or 'void'})")
    return f"_Noreturn {line}" if "noreturn" in cursor.type.spelling else line


def _units(package: str, headers: list[Path], options: list[str]) -> Iterator[Any]:
    """Translation units of the headers that compile alone; none of those that an earlier one has included."""
    from clang.cindex import Diagnostic, Index, TranslationUnit

    seen: set[Path] = set()
    index = Index.create()
    for header in headers:
        if header in seen:
            continue
        source = "".join(f"#include <{name}>\n" for name in (*PRELUDE, header))
        unit = index.parse(
            "unit.c",
            args=options,
            unsaved_files=[("unit.c", source)],
            options=TranslationUnit.PARSE_SKIP_FUNCTION_BODIES,
        )
        worst = [one for one in unit.diagnostics if one.severity >= Diagnostic.Error]
        if worst:
            print(f"{package}: {header} is left out: {worst[0].spelling}", file=sys.stderr)
            continue
        seen |= {Path(included.include.name) for included in unit.get_includes()}
        yield unit


def _options(files: list[Path]) -> list[str]:
    compiler = _run("gcc", "-print-file-name=include").strip()
    machine = _run("gcc", "-print-multiarch").strip()
    options = ["-xc", "-std=gnu11", "-w", "-D_GNU_SOURCE", "-nostdinc", "-fno-builtin"]
    for folder in ("/usr/include", f"/usr/include/{machine}", compiler):
        options += ["-isystem", folder]
    for module in sorted({path.stem for path in files if path.suffix == ".pc"}):
        told = subprocess.run(["pkg-config", "--cflags", module], capture_output=True, text=True, check=False)
        options += [option for option in told.stdout.split() if option not in options]
    return options


def capture_package(package: str, sections: dict[str, Section]) -> None:
    """Add what the headers of a package declare and its libraries export."""
    from clang.cindex import CursorKind, StorageClass

    files = _files(package)
    headers = sorted(path for path in files if path.suffix == ".h" and path.is_file())
    links = [path for path in files if path.suffix == ".so" and path.is_file() and len(path.parts) == 5]
    libraries = {library for link in links for library in library_files(link)}
    exports = {section_pattern(library): exported_functions(library) for library in sorted(libraries)}
    everything = frozenset[str]().union(*exports.values())
    own = {str(path) for path in headers}
    defined: set[str] = set()
    for passed in PASSES.get(package, ((),)):
        for unit in _units(package, headers, [*_options(files), *passed]):
            for cursor in unit.cursor.get_children():
                if cursor.kind in (CursorKind.STRUCT_DECL, CursorKind.UNION_DECL) and cursor.is_definition():
                    defined.add(_spelled(cursor.type))
                if cursor.kind != CursorKind.FUNCTION_DECL or cursor.storage_class == StorageClass.STATIC:
                    continue
                names = {cursor.spelling, cursor.mangled_name} & everything
                if not names or cursor.location.file is None or cursor.location.file.name not in own:
                    continue
                for name in names:
                    holders = [pattern for pattern, exported in exports.items() if name in exported]
                    _keep(cursor, name, [sections.setdefault(pattern, Section()) for pattern in holders])
    for pattern in exports.keys() & sections.keys():
        # Of those that one header only names, another one may say more.
        sections[pattern].opaque -= defined


def _keep(cursor: Any, name: str, sections: Iterable[Section]) -> None:
    line = _prototype(cursor, name)
    for section in sections:
        if line is None or len(line) <= len(section.lines.get(name, "")):
            continue
        # Of several declarations that counts which names its arguments.
        section.lines[name] = line
        for kind in (cursor.result_type, *cursor.type.argument_types()):
            _remember(section, kind)


def _version(package: str) -> str:
    return _run("dpkg-query", "-W", "-f", "${Version}", package)


def format_sections(sections: dict[str, Section], origin: str) -> str:
    """The text of `prototypes.txt`."""
    pieces = [f"# {origin}"]
    for pattern, section in sorted(sections.items()):
        pieces += ["", f"[{pattern}]"]
        pieces += [f"opaque {name}" for name in sorted(section.opaque)]
        pieces += [f"typedef {c_type} {name}" for name, c_type in sorted(section.typedefs.items())]
        pieces += [line for _, line in sorted(section.lines.items())]
    return "\n".join(pieces) + "\n"


def main() -> int:
    """Write `prototypes.txt`; the exit status."""
    sections: dict[str, Section] = {}
    for package in PACKAGES:
        capture_package(package, sections)
    versions = ", ".join(f"{package} {_version(package)}" for package in PACKAGES)
    origin = f"Functions that headers declare and libraries export, of Debian's packages: {versions}."
    kept = {pattern: section for pattern, section in sections.items() if section.lines}
    PROTOTYPES.write_text(format_sections(kept, origin), encoding="ascii")
    for pattern, section in sorted(kept.items()):
        print(f"{pattern}: {len(section.lines)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
