"""ELF headers, against readelf; and files that are none, or are made to hurt."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

from clew.address import FileOffset
from clew.binary.elf import PT_LOAD, open_elf
from clew.binary.lines import has_debug_information
from clew.binary.symbols import load_symbols
from clew.errors import BinaryError


def test_build_id(program: Path) -> None:
    notes = subprocess.run(["readelf", "-nW", program], check=True, capture_output=True, text=True).stdout
    found = re.search(r"Build ID: ([0-9a-f]+)", notes)
    assert found is not None
    with open_elf(program) as elf:
        assert elf.build_id == found[1]


def test_sections(program: Path) -> None:
    table = subprocess.run(["readelf", "-SW", program], check=True, capture_output=True, text=True).stdout
    names = re.findall(r"\[ *\d+\] (\S+) +[A-Z_]+ ", table)
    with open_elf(program) as elf:
        assert [section.name for section in elf.sections][1:] == names
        assert elf.find_section(".text") is not None
        assert elf.find_section(".nothing") is None


def test_addresses(program: Path) -> None:
    with open_elf(program) as elf:
        assert elf.lowest_address == 0
        segment = next(segment for segment in elf.segments if segment.kind == PT_LOAD and segment.flags & 1)
        assert elf.find_address(segment.file_offset) == segment.address
        assert elf.find_address(FileOffset(1 << 40)) is None
    with open_elf(program.with_name("no-pie")) as elf:
        assert elf.lowest_address == 0x400000
        assert elf.image_offset(0x401000) == 0x1000
        assert elf.loaded_bytes % 4096 == 0


@pytest.mark.parametrize("content", [b"", b"\x7fELF", b"#!/bin/sh\n", b"\x7fELF\x01\x01" + bytes(100)])
def test_no_elf(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(BinaryError), open_elf(path):
        pass


def test_files_that_are_no_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, tmp_path / "missing", Path("/dev/zero"), Path("a\0b")):
        with pytest.raises(BinaryError), open_elf(path):
            pass


def test_damaged_files_end_in_an_error_or_an_answer(program: Path, tmp_path: Path) -> None:
    """Headers and tables with random bytes in them; the first kilobyte, where the headers are, above all."""
    content = program.read_bytes()
    rng = np.random.default_rng(5)
    path = tmp_path / "damaged"
    for turn in range(300):
        damaged = bytearray(content)
        limit = 1024 if turn % 2 else len(content)
        for at in rng.integers(0, limit, 8).tolist():
            damaged[at] = int(rng.choice([0, 1, 0x7F, 0xFF, int(rng.integers(256))]))
        path.write_bytes(damaged[: int(rng.integers(64, len(content)))] if turn % 3 == 0 else damaged)
        try:
            table = load_symbols(path)
        except BinaryError:
            continue
        table.names_at(np.array([0, 0x1139, 1 << 40, (1 << 64) - 1], np.uint64))
        table.find_functions(np.arange(0, 0x4000, 64, dtype=np.uint64))
        table.find_by_name("main")
        has_debug_information(path)
