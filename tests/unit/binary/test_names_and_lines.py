"""Demangled names, and source lines."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from clew.binary.demangle import MAX_RESULT_LENGTH, demangle
from clew.binary.lines import find_lines, has_debug_information
from clew.binary.symbols import load_symbols
from tests.unit.binary.conftest import SOURCE


@pytest.mark.parametrize(
    ("name", "readable"),
    [
        ("main", "main"),
        ("", ""),
        ("_Z3addii", "add(int, int)"),
        ("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back(int const&)"),
        ("_Z3addii.constprop.0", "add(int, int) [constprop.0]"),
        ("_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE", "core::fmt::Formatter::write_str"),
        ("_RNvCs1234_7mycrate3foo", "mycrate::foo"),
        ("_Z", "_Z"),
        ("_Zzzzzz", "_Zzzzzz"),
        ("_R", "_R"),
        ("_ZN", "_ZN"),
        ("_start", "_start"),
    ],
)
def test_demangle(name: str, readable: str) -> None:
    assert demangle(name).startswith(readable)


def test_names_that_would_grow_without_end() -> None:
    """Each part of the name is two of the part before: printed, it would fill all memory."""
    parts = "".join(f"1{letter}IS{'' if at == 0 else at - 1}_S{'' if at == 0 else at - 1}_E" for at, letter in
                    enumerate("abcdefghijklmnopqrstuvwxyz" * 2))  # fmt: skip
    for name in (
        f"_Z1fN1x{parts}E",
        "_Z1f" + "S_" * 1000,
        "_RN" + "B1_" * 500,
        "_Z" + "P" * 4000 + "i",
        "_Z" + "N" * 4000,
    ):
        start = time.process_time()
        assert len(demangle(name)) <= max(MAX_RESULT_LENGTH, len(name))
        assert time.process_time() - start < 2


def test_lines(program: Path) -> None:
    (square, size) = load_symbols(program).find_by_name("square")[0]
    body = SOURCE.split("\n").index("    return x * x;") + 1
    lines = find_lines(program, range(square, square + size))
    assert all(line is not None and line.file.endswith("program.c") for line in lines)
    assert body in {line.line for line in lines if line is not None}


def test_no_lines(program: Path, tmp_path: Path) -> None:
    assert not has_debug_information(program.with_name("stripped"))
    assert find_lines(program.with_name("stripped"), [0x1139]) == [None]
    assert find_lines(tmp_path / "missing", [1]) == [None]
    assert find_lines(program, []) == []
    assert find_lines(program, [1 << 62, 0]) == [None, None]


def test_damaged_debugging_information_only_loses_lines(program: Path, tmp_path: Path) -> None:
    content = bytearray(program.read_bytes())
    at = len(content) // 2
    content[at:] = bytes(byte ^ 0x5A for byte in content[at:-4096]) + content[-4096:]
    damaged = tmp_path / "damaged"
    damaged.write_bytes(content)
    assert len(find_lines(damaged, [0x1139], timeout_seconds=20)) == 1


def test_parser_that_never_ends(program: Path) -> None:
    assert find_lines(program, [0x1139], timeout_seconds=0.0) == [None]
