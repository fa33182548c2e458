"""The rules of the runtime image: what the file that is put into a traced process may be.

The controller maps the image into a process that has no loader yet, relocates it by adding one base address, and
jumps to its entry. So it must be a position-independent executable that needs nobody: no interpreter, no libraries, no
symbols from elsewhere, no constructors, no thread-local storage, relative relocations only. Its protocol note must be
this repository's. Instructions are judged in `checks/image_instructions.py`.

Run as `python -m checks.runtime_image [IMAGE]`.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.dynamic import DynamicSegment
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationTable, RelrRelocationTable
from elftools.elf.sections import SymbolTableSection
from elftools.elf.segments import Segment

from checks.image_instructions import find_refused_instructions
from checks.violation import Violation, report

DEFAULT_IMAGE = Path(__file__).resolve().parent.parent / "src/clew/_runtime/clew-runtime-x86_64"
SIZE_BUDGET_BYTES = 2 << 20

_SHF_EXECINSTR = 4
_PF_X, _PF_W = 1, 2
_DF_TEXTREL = 4
_R_X86_64_RELATIVE = 8
_NOTE_HEADER = struct.Struct("<III")
_NOTE = struct.Struct("<II32s")


@dataclass(frozen=True)
class ExpectedNote:
    """What the image's ELF note must say: its owner and type, the protocol's version and the schema's hash."""

    name: bytes
    type: int
    version: int
    schema_hash: bytes


def check_image(path: Path, note: ExpectedNote, size_budget_bytes: int = SIZE_BUDGET_BYTES) -> Iterator[Violation]:
    """Yield every rule that the image at `path` breaks. A file that is no ELF file is one violation."""
    size_bytes = path.stat().st_size
    if size_bytes > size_budget_bytes:
        yield Violation(path.name, f"{size_bytes} bytes, over the budget of {size_budget_bytes}")
    with path.open("rb") as stream:
        try:
            image = ELFFile(stream)
            if image.get_machine_arch() != "x64":
                yield Violation(path.name, f"made for {image.get_machine_arch()}, not x86-64")
                return
            for rule in (_check_kind, _check_segments, _check_dynamic, _check_relocations, _check_symbols):
                yield from rule(image)
            yield from _check_note(image, note)
            for address, code in _iter_code(image):
                yield from find_refused_instructions(code, address)
        except ELFError as error:
            yield Violation(path.name, f"not a good ELF file: {error}")


def _check_kind(image: ELFFile) -> Iterator[Violation]:
    if image.header["e_type"] != "ET_DYN":
        yield Violation("header", f"{image.header['e_type']}, not a position-independent executable (ET_DYN)")
    entry = image.header["e_entry"]
    if not any(_holds(segment, entry) and segment["p_flags"] & _PF_X for segment in _load_segments(image)):
        yield Violation("header", f"entry {entry:#x} is in no executable segment")


def _check_segments(image: ELFFile) -> Iterator[Violation]:
    for segment in image.iter_segments():
        kind, flags = segment["p_type"], segment["p_flags"]
        if kind == "PT_INTERP":
            yield Violation("segments", "PT_INTERP: it wants an interpreter")
        if kind == "PT_TLS":
            yield Violation("segments", "PT_TLS: %fs is the application's, there is no thread-local storage")
        if kind == "PT_LOAD" and flags & _PF_X and flags & _PF_W:
            yield Violation("segments", f"the segment at {segment['p_vaddr']:#x} is writable and executable")
        if kind == "PT_GNU_STACK" and flags & _PF_X:
            yield Violation("segments", "PT_GNU_STACK asks for an executable stack")


def _check_dynamic(image: ELFFile) -> Iterator[Violation]:
    for segment in image.iter_segments():
        if not isinstance(segment, DynamicSegment):
            continue
        for tag in segment.iter_tags():
            match tag.entry.d_tag:
                case "DT_NEEDED":
                    yield Violation("dynamic", "needs a library (DT_NEEDED)")
                case "DT_TEXTREL":
                    yield Violation("dynamic", "text relocations (DT_TEXTREL)")
                case "DT_FLAGS" if tag.entry.d_val & _DF_TEXTREL:
                    yield Violation("dynamic", "text relocations (DF_TEXTREL)")
                case "DT_INIT" | "DT_INIT_ARRAYSZ" if tag.entry.d_val:
                    yield Violation("dynamic", f"constructors ({tag.entry.d_tag}): nobody runs them")


def _check_relocations(image: ELFFile) -> Iterator[Violation]:
    writable = [segment for segment in _load_segments(image) if segment["p_flags"] & _PF_W]
    for segment in image.iter_segments():
        if not isinstance(segment, DynamicSegment):
            continue
        for table in segment.get_relocation_tables().values():
            if not isinstance(table, RelocationTable | RelrRelocationTable):
                continue
            for relocation in table.iter_relocations():
                offset = relocation["r_offset"]
                # DT_RELR can only hold relative ones.
                kind = _R_X86_64_RELATIVE if isinstance(table, RelrRelocationTable) else relocation["r_info_type"]
                if kind != _R_X86_64_RELATIVE:
                    yield Violation("relocations", f"type {kind} at {offset:#x}: only R_X86_64_RELATIVE is applied")
                if not any(_holds(part, offset) for part in writable):
                    yield Violation("relocations", f"text relocation: {offset:#x} is not in writable memory")


def _check_symbols(image: ELFFile) -> Iterator[Violation]:
    for section in image.iter_sections():
        if not isinstance(section, SymbolTableSection):
            continue
        for symbol in section.iter_symbols():
            if symbol["st_shndx"] == "SHN_UNDEF" and symbol.name:
                yield Violation(section.name, f"undefined symbol {symbol.name}")


def _check_note(image: ELFFile, expected: ExpectedNote) -> Iterator[Violation]:
    found = False
    for segment in image.iter_segments():
        if segment["p_type"] != "PT_NOTE":
            continue
        for name, kind, description in _iter_notes(segment.data()):
            if name != expected.name or kind != expected.type:
                continue
            found = True
            if len(description) != _NOTE.size:
                yield Violation("note", f"{len(description)} bytes long, not {_NOTE.size}")
                continue
            version, _reserved, schema_hash = _NOTE.unpack(description)
            if version != expected.version:
                yield Violation("note", f"protocol version {version}, not {expected.version}")
            if schema_hash != expected.schema_hash:
                yield Violation("note", f"schema hash {schema_hash.hex()}, not {expected.schema_hash.hex()}")
    if not found:
        yield Violation("note", f"no note {expected.name.decode()}, type {expected.type}, in a PT_NOTE segment")


def _iter_notes(data: bytes) -> Iterator[tuple[bytes, int, bytes]]:
    """Owner, type and description of each note; by hand, since pyelftools names types without asking whose they are."""
    at = 0
    while at + _NOTE_HEADER.size <= len(data):
        name_bytes, description_bytes, kind = _NOTE_HEADER.unpack_from(data, at)
        name_at = at + _NOTE_HEADER.size
        description_at = name_at + (name_bytes + 3 & ~3)
        at = description_at + (description_bytes + 3 & ~3)
        name = data[name_at : name_at + name_bytes].rstrip(b"\0")
        yield name, kind, data[description_at : description_at + description_bytes]


def _iter_code(image: ELFFile) -> Iterator[tuple[int, bytes]]:
    """Address and bytes of everything executable: by section where there are sections, else by segment."""
    sections = [section for section in image.iter_sections() if section["sh_flags"] & _SHF_EXECINSTR]
    if sections:
        yield from ((section["sh_addr"], section.data()) for section in sections)
        return
    for segment in _load_segments(image):
        if segment["p_flags"] & _PF_X:
            yield segment["p_vaddr"], segment.data()


def _load_segments(image: ELFFile) -> list[Segment]:
    return [segment for segment in image.iter_segments() if segment["p_type"] == "PT_LOAD"]


def _holds(segment: Segment, address: int) -> bool:
    return bool(segment["p_vaddr"] <= address < segment["p_vaddr"] + segment["p_memsz"])


def main(arguments: list[str]) -> int:
    """Check the image named in `arguments`, or the one in the package; return the exit status."""
    from clew.protocol import _constants as protocol

    path = Path(arguments[0]) if arguments else DEFAULT_IMAGE
    if not path.is_file():
        print(f"{path}: no such file; `make build` makes it", file=sys.stderr)
        return 1
    expected = ExpectedNote(
        protocol.NOTE_NAME.rstrip(b"\0"), protocol.NOTE_TYPE, protocol.VERSION, protocol.SCHEMA_HASH
    )
    return report(check_image(path, expected), f"runtime image ({path.stat().st_size} bytes)")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
