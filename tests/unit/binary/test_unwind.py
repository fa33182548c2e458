"""Where functions start in stripped files, against readelf; and sections that are made to hurt."""

from __future__ import annotations

import re
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from clew.binary import unwind
from clew.binary.elf import PT_GNU_EH_FRAME, open_elf
from clew.binary.symbols import load_symbols
from clew.binary.unwind import read_function_starts


def starts_by_readelf(path: Path) -> set[int]:
    text = subprocess.run(["readelf", "--debug-dump=frames", path], check=True, capture_output=True, text=True).stdout
    return {int(start, 16) for start in re.findall(r"FDE .* pc=([0-9a-f]+)\.\.", text)}


def has_search_table(path: Path) -> bool:
    with open_elf(path) as elf:
        return any(segment.kind == PT_GNU_EH_FRAME for segment in elf.segments)


@pytest.mark.parametrize("name", ["program", "stripped", "no-pie", "static"])
def test_starts(program: Path, name: str) -> None:
    path = program.with_name(name)
    assert has_search_table(path) == (name != "static")
    with open_elf(path) as elf:
        found = read_function_starts(elf).tolist()
    assert found == sorted(starts_by_readelf(path))
    assert len(found) > 3


def test_functions_of_a_file_without_a_search_table(program: Path) -> None:
    static = program.with_name("static")
    with open_elf(static) as elf:
        entry = elf.image_offset(elf.entry)
    assert load_symbols(static).find_functions(np.array([entry, entry + 4])).tolist() == [entry, entry]


CODE, SECTION = 0x401000, 0x402000


def write_elf(path: Path, frames: bytes, address: int = SECTION) -> Path:
    """A file with a page of code at CODE, and with `frames` as its .eh_frame."""
    names = b"\0.eh_frame\0.shstrtab\0"
    at = 64 + 56
    sections = [
        bytes(64),
        struct.pack("<IIQQQQIIQQ", 1, 1, 2, address, at, len(frames), 0, 0, 8, 0),
        struct.pack("<IIQQQQIIQQ", 11, 3, 0, 0, at + len(frames), len(names), 0, 0, 1, 0),
    ]
    table = at + len(frames) + len(names)
    ident = b"\x7fELF\x02\x01\x01" + bytes(9)
    header = struct.pack("<16sHHIQQQIHHHHHH", ident, 2, 62, 1, CODE, 64, table, 0, 64, 56, 1, 64, len(sections), 2)
    code = struct.pack("<IIQQQQQQ", 1, 5, 0, CODE, 0, 0x1000, 0x1000, 0x1000)
    path.write_bytes(header + code + frames + names + b"".join(sections))
    return path


def find_starts(path: Path) -> list[int]:
    with open_elf(path) as elf:
        return [int(start) for start in read_function_starts(elf)]


def common(augmentation: bytes, data: bytes = b"", version: int = 1) -> bytes:
    """An entry that functions have in common."""
    content = bytes(4) + bytes([version]) + augmentation + b"\0" + b"\x01\x78\x10"
    content += bytes([len(data)]) + data if augmentation else b""
    return struct.pack("<I", len(content)) + content


def function(at: int, start: bytes, common_at: int = 0) -> bytes:
    """An entry of a function, itself at `at` in the section."""
    content = struct.pack("<I", at + 4 - common_at) + start + bytes(16)
    return struct.pack("<I", len(content)) + content


@pytest.mark.parametrize(
    ("augmentation", "data", "stored"),
    [
        (b"", b"", lambda at: struct.pack("<Q", CODE + 16)),
        (b"zR", b"\x1b", lambda at: struct.pack("<i", CODE + 16 - at)),
        (b"zR", b"\x03", lambda at: struct.pack("<I", CODE + 16)),
        (b"zRS", b"\x1c", lambda at: struct.pack("<q", CODE + 16 - at)),
        (b"zPLR", b"\x9b" + bytes(4) + b"\x1b\x1b", lambda at: struct.pack("<i", CODE + 16 - at)),
        (b"zLR", b"\x1b\x00", lambda at: struct.pack("<Q", CODE + 16)),
    ],
)
def test_encodings(tmp_path: Path, augmentation: bytes, data: bytes, stored: Callable[[int], bytes]) -> None:
    for version in (1, 3):
        first = common(augmentation, data, version)
        frames = first + function(len(first), stored(SECTION + len(first) + 8))
        assert find_starts(write_elf(tmp_path / "file", frames + bytes(4))) == [CODE + 16]


GOOD = function(len(common(b"")), struct.pack("<Q", CODE))


@pytest.mark.parametrize(
    "frames",
    [
        b"",
        b"\x01",
        bytes(4),
        b"\xff" * 12,
        b"\xff" * 12 + b"\x01" * 100,
        b"\xff" * 4 + b"\0\0\0\0\0\0\0\x80" + b"\x01" * 100,
        common(b"zR")[:-2],
        # Of an unknown version, with unknown letters, without an end; a common entry in front of the section, or none.
        common(b"", version=9) + GOOD,
        common(b"zX", b"\x1b") + function(len(common(b"zX", b"\x1b")), struct.pack("<Q", CODE)),
        b"\xff\0\0\0" + bytes(4) + b"\x01" + b"z" * 250 + GOOD,
        common(b"") + function(len(common(b"")), struct.pack("<Q", CODE), common_at=-100),
        common(b"") + function(len(common(b"")), struct.pack("<Q", CODE), common_at=5),
        # Addresses that are none: outside of the code, left out by the linker, indirect, too far.
        common(b"") + function(len(common(b"")), struct.pack("<Q", CODE - 1)),
        common(b"") + function(len(common(b"")), struct.pack("<Q", CODE + 0x1000)),
        common(b"") + function(len(common(b"")), bytes(8)),
        common(b"") + function(len(common(b"")), b"\xff" * 8),
        common(b"zR", b"\x9b") + function(len(common(b"zR", b"\x9b")), bytes([1] * 8)),
        common(b"zR", b"\x01") + function(len(common(b"zR", b"\x01")), bytes([1] * 8)),
        common(b"zR") + function(len(common(b"zR")), bytes(8)),
    ],
)
def test_what_makes_no_sense(tmp_path: Path, frames: bytes) -> None:
    assert find_starts(write_elf(tmp_path / "file", frames)) == []
    assert find_starts(write_elf(tmp_path / "file", frames, address=(1 << 64) - 8)) == []


def test_what_was_found_before_the_damage_is_good(tmp_path: Path) -> None:
    for damage in (b"\xff\xff\xff\x7f", b"\xff" * 12 + bytes(9), b"\x01", b"\x10\0\0\0\x01"):
        assert find_starts(write_elf(tmp_path / "file", common(b"") + GOOD + damage)) == [CODE]


def test_so_many_records_and_no_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = struct.pack("<II", 4, 0)
    monkeypatch.setattr(unwind, "MAX_RECORDS", 100)
    assert find_starts(write_elf(tmp_path / "file", common(b"") + GOOD + short * 1000)) == [CODE]
    assert find_starts(write_elf(tmp_path / "file", short * 98 + common(b"") + function(98 * 8 + len(common(b"")),
                       struct.pack("<Q", CODE), 98 * 8))) == [CODE]  # fmt: skip
    assert find_starts(write_elf(tmp_path / "file", short * 99 + common(b"") + function(99 * 8 + len(common(b"")),
                       struct.pack("<Q", CODE), 99 * 8))) == []  # fmt: skip


def test_damaged_records_end_in_an_answer(program: Path, tmp_path: Path) -> None:
    static = program.with_name("static")
    with open_elf(static) as elf:
        section = elf.find_section(".eh_frame")
        assert section is not None
        frames = elf.read(section.file_offset, min(section.size_bytes, 4096))
    rng = np.random.default_rng(6)
    begun = time.monotonic()
    for _ in range(300):
        damaged = bytearray(frames)
        for at in rng.integers(0, len(frames), 6).tolist():
            damaged[at] = int(rng.choice([0, 1, 0x7F, 0xFF, int(rng.integers(256))]))
        path = write_elf(tmp_path / "damaged", bytes(damaged), address=section.address)
        assert all(CODE <= start < CODE + 0x1000 for start in find_starts(path))
    assert time.monotonic() - begun < 60
