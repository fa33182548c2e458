"""Symbols, against nm."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np

from clew.binary.architectures.x86_64 import X86_64
from clew.binary.disassembly import disassemble, instruction_starts
from clew.binary.elf import open_elf
from clew.binary.symbols import load_symbols


def addresses(program: Path) -> dict[str, tuple[int, int]]:
    """Address and size of functions, by name."""
    rows = subprocess.run(["nm", "-S", program], check=True, capture_output=True, text=True).stdout.split("\n")
    fields = [row.split() for row in rows]
    return {row[3]: (int(row[0], 16), int(row[1], 16)) for row in fields if len(row) == 4 and row[2] in "tT"}


def test_functions(program: Path) -> None:
    table = load_symbols(program)
    for name, (address, size) in addresses(program).items():
        assert table.find_by_name(name) == [(address, size)]
        if name not in ("square", "twin") and size:
            assert table.names_at(np.array([address, address + size - 1])) == [name, name]


def test_aliases(program: Path) -> None:
    table = load_symbols(program)
    (square,) = table.find_by_name("square")
    assert table.find_by_name("twin") == [square]
    assert table.names_at(np.array([square[0]]))[0] in ("square", "twin")


def test_readable_names(tmp_path: Path) -> None:
    source = 'int one(int n) __asm__("_Z3thri"); int one(int n) { return n; } int main(void) { return one(0); }'
    program = tmp_path / "mangled"
    subprocess.run(["gcc", "-x", "c", "-O1", "-fno-inline", "-o", program, "-"], input=source.encode(), check=True)
    table = load_symbols(program)
    assert table.find_by_name("thr(int)") == table.find_by_name("_Z3thri") == [addresses(program)["_Z3thri"]]
    assert table.find_by_name("thr(long)") == table.find_by_name("thr") == []


def test_offsets_count_from_the_lowest_page(program: Path) -> None:
    no_pie = program.with_name("no-pie")
    address, size = addresses(no_pie)["main"]
    assert load_symbols(no_pie).find_by_name("main") == [(address - 0x400000, size)]


def test_nothing_found(program: Path) -> None:
    table = load_symbols(program)
    assert table.find_by_name("nothing") == []
    assert table.find_by_name("") == []
    assert table.find_by_name("ain") == []
    assert table.names_at(np.array([0, 1 << 40])) == [None, None]
    assert len(table.names_at(np.zeros(0, np.uint64))) == 0


def test_stubs_are_named(program: Path) -> None:
    for path in (program, program.with_name("stripped")):
        table = load_symbols(path)
        stubs = [table.name(index) for index in range(len(table)) if table.name(index).endswith("@plt")]
        assert "printf@plt" in stubs
        assert table.find_by_name("printf") == []


def test_stripped_files_keep_where_functions_start(program: Path) -> None:
    main, _ = addresses(program)["main"]
    table = load_symbols(program.with_name("stripped"))
    assert table.names_at(np.array([main])) == [None]
    assert table.find_functions(np.array([main, main + 5])).tolist() == [main, main]
    assert table.find_functions(np.array([0])).tolist() == [-1]


def test_debug_files_give_names(tmp_path: Path, program: Path, monkeypatch: object) -> None:
    with open_elf(program) as elf:
        build_id = elf.build_id
    assert build_id is not None
    directory = tmp_path / build_id[:2]
    directory.mkdir()
    subprocess.run(["objcopy", "--only-keep-debug", program, directory / f"{build_id[2:]}.debug"], check=True)
    from clew.binary import symbols

    before = symbols.DEBUG_DIRECTORY
    try:
        symbols.DEBUG_DIRECTORY = tmp_path  # type: ignore[misc]
        table = load_symbols(program.with_name("stripped"))
    finally:
        symbols.DEBUG_DIRECTORY = before  # type: ignore[misc]
    assert table.find_by_name("hidden") == [addresses(program)["hidden"]]


def test_disassembly() -> None:
    code = b"\x55\x48\x89\xe5\xc3"
    rows = disassemble(code, 0x1000, X86_64)
    assert [(row.address, row.text) for row in rows] == [
        (0x1000, "push rbp"),
        (0x1001, "mov rbp, rsp"),
        (0x1004, "ret"),
    ]
    assert instruction_starts(code, 0x1000, X86_64) == [0x1000, 0x1001, 0x1004]
    assert [row.text for row in disassemble(b"\x90\x06\x06", 0, X86_64)] == ["nop", "(bad)"]
    assert disassemble(b"", 0, X86_64) == []
