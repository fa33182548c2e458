"""Line tables: of every version of DWARF, however it is stored, as another reader has them; and of damaged files."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import drgn
import numpy as np
import pytest

from clew.binary import debug_sections
from clew.binary.debug_sections import DebugSections, find_debug_file
from clew.binary.dwarf_reader import DwarfReader, find_unit_folders
from clew.binary.elf import open_elf
from clew.binary.line_headers import iter_line_units, read_file_names
from clew.binary.line_program import ProgramShape, run_programs
from clew.binary.lines import find_lines, read_line_table

SOURCES = {
    "main.c": """
#include "inside/square.h"
__attribute__((noipa)) static int sum(int *values, int n)
{
    int total = 0;
    for (int i = 0; i < n; i++)
        total += square(values[i]);
    return total;
}
int other(int);
int unused(int x) { return x ^ 77; }
int main(int argc, char **argv)
{
    int values[] = {argc, other(argc), 3};
    return sum(values, 3) == 0;
}
""",
    "inside/square.h": "static inline int square(int x)\n{\n    return x * x;\n}\n",
    "inside/other.c": """
#include "square.h"
__attribute__((noipa)) int other(int x)
{
    if (x > 3)
        return square(x);
    return -x;
}
""",
    "bare.S": ".globl bare\n.type bare, @function\nbare:\n    nop\n    nop; nop\n    ret\n.size bare, . - bare\n",
}
WAYS = {
    "version-2": ["-gdwarf-2", "-gstrict-dwarf"],
    "version-3": ["-gdwarf-3"],
    "version-4": ["-gdwarf-4"],
    "version-5": ["-gdwarf-5"],
    "64-bit": ["-gdwarf64", "-gdwarf-5"],
    "64-bit-version-4": ["-gdwarf64", "-gdwarf-4"],
    "not-optimized": ["-g", "-O0"],
    "zlib": ["-g", "-gz=zlib"],
    "zlib-gnu": ["-g", "-gz=zlib-gnu"],
    "no-pie": ["-g", "-no-pie"],
    "left-out": ["-g", "-ffunction-sections", "-Wl,--gc-sections"],
    "link-time": ["-g", "-flto"],
}


def build(folder: Path, options: list[str]) -> Path:
    """Compile the sources by relative and by absolute paths."""
    for name, content in SOURCES.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(content)
    sources = ["main.c", str(folder / "inside/other.c"), "bare.S"]
    subprocess.run(["gcc", "-O2", *options, "-o", "program", *sources], cwd=folder, check=True)
    return folder / "program"


def code_offsets(path: Path) -> list[int]:
    """Image offsets in the sections with code."""
    with open_elf(path) as elf:
        sections = [section for section in elf.sections if section.flags & 4 and section.size_bytes]
        return [
            elf.image_offset(section.address + at)
            for section in sections
            for at in range(0, section.size_bytes, -(-section.size_bytes // 3000))
        ]


def ask_drgn(path: Path, offsets: list[int]) -> list[tuple[str, int] | None]:
    with open_elf(path) as elf:
        base, size_bytes = elf.lowest_address, elf.loaded_bytes
    program = drgn.Program()
    module = program.extra_module(str(path), create=True)
    module.address_range = (base, base + size_bytes)
    module.try_file(str(path))
    found: list[tuple[str, int] | None] = []
    for offset in offsets:
        try:
            place = program.source_location(base + offset)[0]
            found.append((place.filename, place.line) if place.line else None)
        except (LookupError, ValueError):
            found.append(None)
    return found


@pytest.mark.parametrize("way", WAYS)
def test_lines_are_those_of_another_reader(way: str, tmp_path: Path) -> None:
    path = build(tmp_path, WAYS[way])
    offsets = code_offsets(path)
    found = find_lines(path, offsets)
    assert [line and (line.file, line.line) for line in found] == ask_drgn(path, offsets)
    names = {line.file.rsplit("/", 1)[-1] for line in found if line is not None}
    assert names >= {"main.c", "square.h", "other.c"}


def test_only_what_is_wanted_is_kept(tmp_path: Path) -> None:
    path = build(tmp_path, ["-g", "-ffunction-sections"])
    everything = read_line_table(path, np.array([0], np.uint64), np.array([1 << 40], np.uint64))
    start = everything.offsets[everything.file >= 0][0]
    # The second range is empty, the third ends before it begins.
    some = read_line_table(path, np.array([start, 7, 9], np.uint64), np.array([start + 1, 7, 3], np.uint64))
    assert 0 < len(some.offsets) < len(everything.offsets)
    assert len(read_line_table(path, start[None][:0], start[None][:0]).offsets) == 0


def test_a_debug_file_that_was_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = build(tmp_path, ["-g", "-Wl,--build-id"])
    offsets = code_offsets(path)
    expected = find_lines(path, offsets)
    monkeypatch.setattr(debug_sections, "DEBUG_DIRECTORY", tmp_path / "debug")
    with open_elf(path) as elf:
        build_id = elf.build_id
    assert build_id is not None
    debug_path = tmp_path / "debug" / build_id[:2] / f"{build_id[2:]}.debug"
    debug_path.parent.mkdir(parents=True)
    subprocess.run(["objcopy", "--only-keep-debug", path, debug_path], check=True)
    subprocess.run(["strip", path], check=True)
    assert find_debug_file(path, "line") == debug_path
    assert find_lines(path, offsets) == expected
    debug_path.write_bytes(b"\x7fELF")
    assert find_debug_file(path, "line") is None
    assert find_lines(path, offsets) == [None] * len(offsets)


@pytest.mark.parametrize("way", ["version-2", "version-5", "zlib", "zlib-gnu"])
def test_damaged_sections_only_lose_lines(way: str, tmp_path: Path) -> None:
    path = build(tmp_path, WAYS[way])
    offsets = code_offsets(path)[::7]
    content = path.read_bytes()
    with open_elf(path) as elf:
        places = [
            (section.file_offset, section.size_bytes)
            for section in elf.sections
            if section.name.startswith((".debug_", ".zdebug_")) and section.size_bytes
        ]
    chance = random.Random(way)
    for _ in range(60):
        damaged = bytearray(content)
        for _ in range(chance.choice([1, 3, 40])):
            first, size_bytes = chance.choice(places)
            damaged[first + chance.randrange(size_bytes)] = chance.choice([0, 0x7F, 0x80, 0xFF, chance.randrange(256)])
        path.write_bytes(damaged)
        assert len(find_lines(path, offsets)) == len(offsets)


@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.stress) for seed in range(2, 8))])
def test_any_bytes_are_a_program(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(100):
        shape = ProgramShape(
            chance.choice([0, 1, 4, 255]),
            chance.randrange(-128, 128),
            chance.randrange(1, 256),
            bytes(chance.randrange(9) for _ in range(chance.choice([0, 1, 9, 12, 254]))),
        )
        programs = [chance.randbytes(chance.randrange(60)) for _ in range(chance.randrange(1, 5))]
        rows = run_programs(programs, shape)
        assert len({len(column) for column in vars(rows).values()}) == 1
        assert set(rows.program.tolist()) <= set(range(len(programs)))


def test_any_bytes_are_a_section(monkeypatch: pytest.MonkeyPatch) -> None:
    chance = random.Random(2)
    sections = DebugSections(Path("/none"))
    for _ in range(2000):
        content = bytearray(chance.randbytes(chance.randrange(100)))
        content[:6] = (chance.randrange(20, 100)).to_bytes(4, "little") + bytes([chance.randrange(2, 6), 0])
        monkeypatch.setattr(sections, "read", lambda name, content=bytes(content): content)
        for unit in iter_line_units(bytes(content)):
            assert unit.tables_at <= unit.program_at <= unit.end <= len(content)
            read_file_names(unit, bytes(content), sections, lambda offset: None)
        find_unit_folders(sections)


def test_a_table_that_claims_to_be_endless(tmp_path: Path) -> None:
    """Entries of forms that take no bytes."""
    reader = DwarfReader(bytes([1, 1, 0x19, *[0xFF] * 8, 0x7F]), 0, 12)
    from clew.binary.line_headers import _read_entries

    assert len(_read_entries(reader, DebugSections(tmp_path))) <= 1
