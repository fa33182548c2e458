"""Captures prototypes of library functions: `python -m clew.api.generate.prototypes_capture`.

Runs on a developer's machine, with the development packages of PACKAGES (Debian), gcc, readelf and pkg-config, and with
libclang's binding, which nothing else needs. Writes `prototypes.txt`, which `prototypes.py` reads
and whose form is told there. What a header declares and a library of the same package exports is kept, nothing else.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from clew.api.generate.sources import LAYOUTS, SOURCES, STRUCTS, Layout, lines_of, parse_layouts
from clew.api.header_cursors import ATTRIBUTES, Section, keep_function, spelled_type
from clew.api.header_records import leaves_of
from clew.api.prototypes import PROTOTYPES

__all__ = ["exported_functions", "format_sections", "library_files", "main", "section_pattern"]

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


def _units(package: str, headers: list[Path], options: list[str]) -> Iterator[Any]:
    """Translation units of the headers that compile alone; none of those that an earlier one has included."""
    from clang.cindex import Diagnostic, Index, TranslationUnit

    seen: set[Path] = set()
    index = Index.create()
    for header in headers:
        if header in seen:
            continue
        source = ATTRIBUTES + "".join(f"#include <{name}>\n" for name in (*PRELUDE, header))
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
                    defined.add(spelled_type(cursor.type))
                if cursor.kind != CursorKind.FUNCTION_DECL or cursor.storage_class == StorageClass.STATIC:
                    continue
                names = {cursor.spelling, cursor.mangled_name} & everything
                if not names or cursor.location.file is None or cursor.location.file.name not in own:
                    continue
                for name in names:
                    for pattern, exported in exports.items():
                        if name in exported:
                            keep_function(sections.setdefault(pattern, Section()), cursor, name)
    for pattern in exports.keys() & sections.keys():
        # Of those that one header only names, another one may say more.
        sections[pattern].opaque -= defined


def described_structs(types: dict[str, Any], layouts: dict[str, Layout], described: Iterable[str]) -> dict[str, str]:
    """Which structures of a header are what descriptions have under the same name: those whose members, whatever they
    are called, are at the same places. By how the header calls them."""
    found = {}
    for spelled, kind in types.items():
        name = spelled.removeprefix("struct ")
        if name in described and name in layouts and layouts[name].size == kind.get_size():
            paths = layouts[name].members
            inner = {path.rpartition(".")[0] for path in paths}
            known = sorted((one.offset, one.size) for path, one in paths.items() if path not in inner)
            if known == sorted(leaves_of(kind)):
                found[spelled] = name
    return found


def _version(package: str) -> str:
    return _run("dpkg-query", "-W", "-f", "${Version}", package)


def format_sections(sections: dict[str, Section], origin: str) -> str:
    """The text of `prototypes.txt`."""
    layouts = parse_layouts(lines_of((SOURCES / LAYOUTS).read_text(encoding="utf-8")))
    described = json.loads((SOURCES / STRUCTS).read_text(encoding="utf-8"))
    pieces = [f"# {origin}"]
    for pattern, section in sorted(sections.items()):
        pieces += ["", f"[{pattern}]"]
        same = described_structs(section.structs, layouts, described)
        pieces += [f"same {name} {spelled}" for spelled, name in sorted(same.items())]
        for name, values in sorted(section.enums.items()):
            pieces += [f"enum {name} {' '.join(f'{own}={value}' for own, value in values)}"]
        pieces += [f"opaque {name}" for name in sorted(section.opaque)]
        pieces += [f"typedef {c_type} {name}" for name, c_type in sorted(section.typedefs.items())]
        pieces += [line for name in sorted(section.lines) if (line := section.line(name)) is not None]
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
