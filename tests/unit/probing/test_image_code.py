"""What a file's words and functions lead to, held against another reader of ELF files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection, RelrRelocationSection

from clew.binary.elf import SHF_EXECINSTR, open_elf
from clew.probing.x86_64.image_code import read_image_code
from clew.probing.x86_64.moved_code import move_image

NAMES = ("libc.so.6", "libstdc++.so.6", "libcrypto.so.3")
FILES = [path for path in (Path("/usr/lib/x86_64-linux-gnu") / name for name in NAMES) if path.exists()]
BASE = 0x7F12_0000_0000
RELATIVE = 8


def pointers(path: Path) -> set[int]:
    """Link addresses of code in words that are relocated, by the other reader."""
    found: set[int] = set()
    with path.open("rb") as stream:
        elf = ELFFile(stream)
        code = [
            (section["sh_addr"], section["sh_addr"] + section["sh_size"])
            for section in elf.iter_sections()
            if section["sh_flags"] & SHF_EXECINSTR
        ]
        for section in elf.iter_sections():
            if isinstance(section, RelrRelocationSection):
                for relocation in section.iter_relocations():
                    stream.seek(next(iter(elf.address_offsets(relocation["r_offset"], 8))))
                    found.add(int.from_bytes(stream.read(8), "little"))
            elif isinstance(section, RelocationSection):
                found |= {one["r_addend"] for one in section.iter_relocations() if one["r_info_type"] == RELATIVE}
    return {value for value in found if any(start <= value < end for start, end in code)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_pointers_to_code_are_entries(path: Path) -> None:
    with open_elf(path) as elf:
        image = read_image_code(elf, BASE)
    wanted = {BASE + value for value in pointers(path)}
    assert len(wanted) > 50
    assert wanted <= set(image.entries)
    assert not wanted.intersection(image.branches)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_functions(path: Path) -> None:
    with open_elf(path) as elf:
        image = read_image_code(elf, BASE)
    # None lies over another one, and each direct branch out of one is known where it leads.
    ends, entries = 0, set(image.entries)
    sources = {target: {branch.address for branch in found} for target, found in image.branches.items()}
    for code in image.functions:
        assert ends <= code.start < code.end
        ends = code.end
        assert code.outside <= entries
        for source, target in code.outgoing:
            assert target not in sources or source in sources[target]
    with path.open("rb") as stream:
        symbols: Any = ELFFile(stream).get_section_by_name(".dynsym")
        starts = {
            BASE + symbol["st_value"]
            for symbol in symbols.iter_symbols()
            if symbol["st_info"]["type"] == "STT_FUNC" and symbol["st_shndx"] != "SHN_UNDEF"
        }
    assert starts <= entries


def test_code_that_is_moved_is_that_which_is_read_there() -> None:
    with open_elf(FILES[0]) as elf:
        there = read_image_code(elf, BASE)
        moved = move_image(read_image_code(elf, elf.lowest_address), BASE - elf.lowest_address)
    assert len(there.functions) > 1000
    assert list(moved.functions) == list(there.functions)
    assert moved.functions[-1] is moved.functions[len(moved.functions) - 1]
    assert set(moved.entries) == set(there.entries)
    assert all(one in moved.entries for one in there.entries)
    assert BASE not in moved.entries
    assert dict(moved.branches) == dict(there.branches)
    assert dict(moved.parts) == dict(there.parts)
    assert there.parts
