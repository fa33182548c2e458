"""The rules of the path codec's library, on small ones made here: one that keeps them all, and one that breaks each."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from checks.codec_library import FUNCTIONS_SOURCE, check_library, parse_functions

GOOD = """
    .text
    .globl one, two
one:
    call    memcpy@PLT
two:
    ret
    .section .note.GNU-stack, "", @progbits
"""
FUNCTIONS = frozenset({"one", "two"})
Build = Callable[..., Path]


@pytest.fixture
def build(tmp_path: Path) -> Build:
    """Assembles and links a library from assembly text, with linker options."""

    def build_library(source: str, *options: str, kind: str = "-shared") -> Path:
        (tmp_path / "library.s").write_text(source)
        command = ["gcc", "-nostdlib", kind, "-o", "library.so", "library.s", *options]
        subprocess.run(command, check=True, capture_output=True, cwd=tmp_path)
        return tmp_path / "library.so"

    return build_library


def messages(path: Path) -> list[str]:
    return [violation.message for violation in check_library(path, FUNCTIONS)]


def test_good_library_breaks_nothing(build: Build) -> None:
    assert messages(build(GOOD)) == []
    assert messages(build(GOOD, "-s")) == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (("memcpy", "malloc"), "undefined symbol malloc"),
        ((".globl one", ".weak atexit\n call atexit@PLT\n .globl one"), "undefined symbol atexit"),
        (("two", "ten"), "ten is given to everybody, but is no function of ffi.rs;two is missing"),
        ((".globl one, two", ".globl one"), "two is missing"),
    ],
)
def test_functions_are_those_of_the_source(build: Build, change: tuple[str, str], reason: str) -> None:
    assert ";".join(messages(build(GOOD.replace(*change)))) == reason


def test_needed_library_is_refused(build: Build) -> None:
    assert messages(build(GOOD, "-Wl,--no-as-needed", "-lc")) == ["needs a library (DT_NEEDED)"]


def test_program_is_refused(build: Build) -> None:
    program = build(GOOD.replace("call    memcpy@PLT", "nop"), "-Wl,-e,one", kind="-static")
    assert "ET_EXEC, not a shared object (ET_DYN)" in messages(program)


def test_what_is_no_elf_file_is_one_violation(tmp_path: Path) -> None:
    (tmp_path / "library.so").write_bytes(b"not a library")
    assert [message.split(":")[0] for message in messages(tmp_path / "library.so")] == ["not a good ELF file"]


def test_functions_are_read_from_the_source() -> None:
    text = '#[no_mangle]\npub extern "C" fn one() {}\n#[unsafe(no_mangle)]\npub unsafe extern "C" fn two() {}\n'
    assert parse_functions(text + "pub fn three() {}") == FUNCTIONS
    assert parse_functions('// #[no_mangle]\n// pub extern "C" fn one() {}') == frozenset()
    assert "clew_path_walk" in parse_functions(FUNCTIONS_SOURCE.read_text())
