"""The rules of the path codec's library: what the controller may load into itself.

It is loaded whatever C library is there, and by programs that know nothing of it. So it must be a shared object that
needs no other one, takes nothing from outside but what the compiler calls by itself, and gives exactly the functions
that `pathcodec/src/ffi.rs` has for the controller.

Run as `python -m checks.codec_library [LIBRARY]`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from checks.rust_source import parse_rust_source
from checks.violation import Violation, report

ROOT = Path(__file__).resolve().parent.parent
DEFAULT_LIBRARY = ROOT / "src/clew/_runtime/libclew-pathcodec.so"
FUNCTIONS_SOURCE = ROOT / "pathcodec/src/ffi.rs"

COMPILERS_OWN = frozenset({"memcpy", "memmove", "memset", "memcmp", "bcmp"})
"""What compiled Rust may call without being told to. Every C library has these, in every version."""

_EXTERN = re.compile(r"#\[(?:unsafe\()?no_mangle\)?\]\s*pub\s+(?:unsafe\s+)?extern\s+fn\s+(?P<name>\w+)")


def parse_functions(text: str) -> frozenset[str]:
    """The names of the functions that Rust source text gives to C."""
    code = "\n".join(parse_rust_source(text).code)  # there the "C" of `extern "C"` is blank
    return frozenset(match["name"] for match in _EXTERN.finditer(code))


def check_library(path: Path, functions: frozenset[str]) -> Iterator[Violation]:
    """Yield every rule that the library at `path` breaks; it is to give `functions`."""
    with path.open("rb") as stream:
        try:
            library = ELFFile(stream)
            if library.get_machine_arch() != "x64":
                yield Violation(path.name, f"made for {library.get_machine_arch()}, not x86-64")
                return
            if library.header["e_type"] != "ET_DYN":
                yield Violation("header", f"{library.header['e_type']}, not a shared object (ET_DYN)")
            yield from _check_dynamic(library)
            yield from _check_symbols(library, functions)
        except ELFError as error:
            yield Violation(path.name, f"not a good ELF file: {error}")


def _check_dynamic(library: ELFFile) -> Iterator[Violation]:
    for section in library.iter_sections():
        if isinstance(section, DynamicSection):
            for tag in section.iter_tags():
                if tag.entry.d_tag == "DT_NEEDED":
                    yield Violation("dynamic", "needs a library (DT_NEEDED)")


def _check_symbols(library: ELFFile, functions: frozenset[str]) -> Iterator[Violation]:
    symbols = library.get_section_by_name(".dynsym")
    given = set()
    for symbol in symbols.iter_symbols() if isinstance(symbols, SymbolTableSection) else ():
        if symbol["st_shndx"] != "SHN_UNDEF":
            given.add(symbol.name)
        elif symbol.name and symbol.name not in COMPILERS_OWN:
            yield Violation(".dynsym", f"undefined symbol {symbol.name}")
    for name in sorted(given - functions):
        yield Violation(".dynsym", f"{name} is given to everybody, but is no function of ffi.rs")
    for name in sorted(functions - given):
        yield Violation(".dynsym", f"{name} is missing")


def main(arguments: list[str]) -> int:
    """Check the library named in `arguments`, or the one in the package; return the exit status."""
    path = Path(arguments[0]) if arguments else DEFAULT_LIBRARY
    if not path.is_file():
        print(f"{path}: no such file; `make build` makes it", file=sys.stderr)
        return 1
    functions = parse_functions(FUNCTIONS_SOURCE.read_text(encoding="utf-8"))
    return report(check_library(path, functions), f"path codec's library ({path.stat().st_size} bytes)")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
