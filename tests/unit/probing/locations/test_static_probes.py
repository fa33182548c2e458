"""Static probes, against readelf; and what their arguments come to."""

from __future__ import annotations

import re
import struct
import subprocess
from pathlib import Path

import pytest

from clew.binary.architectures.architecture import Architecture
from clew.binary.architectures.x86_64 import X86_64
from clew.binary.elf import open_elf
from clew.binary.usdt_notes import read_usdt_notes
from clew.capture.compiler import compile_capture
from clew.capture.grammar import parse
from clew.capture.interpreter import Value, interpret
from clew.dataclass import replace
from clew.probing.locations.image_file import open_image
from clew.probing.locations.place import PlaceKind
from clew.probing.locations.resolve import resolve_in_image
from clew.probing.locations.static_probes import parse_arguments
from clew.probing.locations.syntax import parse_location
from tests.unit.capture.places import MACHINE, MEMORY_START, MadeUpPlace
from tests.unit.probing.locations.found import Build, functions_of, resolve


def notes_of(path: Path) -> list[tuple[str, str, int, int, str]]:
    """Provider, name, place, semaphore and arguments, as readelf has them, which moves nothing."""
    told = subprocess.run(["readelf", "-nW", path], check=True, capture_output=True, text=True).stdout
    places = r"Location: 0x([0-9a-f]+), Base: 0x[0-9a-f]+, Semaphore: 0x([0-9a-f]+)"
    rows = re.findall(rf"Provider: (\S+)\s+Name: (\S+)\s+{places}\s+Arguments:([^\n]*)", told)
    return [(row[0], row[1], int(row[2], 16), int(row[3], 16), row[4].strip()) for row in rows]


def libstdcxx() -> Path:
    done = subprocess.run(["gcc", "-print-file-name=libstdc++.so.6"], check=True, capture_output=True, text=True)
    return Path(done.stdout.strip()).resolve()


def test_what_readelf_has() -> None:
    path = libstdcxx()
    expected = notes_of(path)
    if not expected:
        pytest.skip("this machine's libstdc++ has no static probes")
    with open_elf(path) as elf:
        notes = read_usdt_notes(elf)
        assert [(one.provider, one.name, one.address, one.semaphore, one.arguments) for one in notes] == expected
    found = resolve(path, "usdt:*:*")
    assert sorted(place.address for place in found.places) == sorted(row[2] for row in expected)
    for place in found.places:
        assert place.usdt is not None
        for argument in place.usdt.arguments:
            assert argument.expression is not None
            parse(argument.expression)


@pytest.mark.parametrize("flags", [("-no-pie",), ("-pie", "-fPIE"), ("-no-pie", "-s")])
def test_places_and_semaphores(build: Build, flags: tuple[str, ...]) -> None:
    path = build("gcc", "-O2", "lookup_notes.c", *flags)
    # The last one's note is of a section that lay elsewhere, by as much as its base says.
    expected = {(row[0], row[1]): (row[2] - 0x140 * (row[1] == "moved"), row[3]) for row in notes_of(path)}
    found = resolve(path, "usdt:*:*").places
    assert len(found) == 3
    for place in found:
        assert place.usdt is not None
        address, semaphore = expected[place.usdt.provider, place.usdt.name]
        assert (place.address, place.usdt.semaphore) == (address, semaphore or None)
        assert place.kind == PlaceKind.USDT
        with open_elf(path) as elf:
            assert elf.read(place.file_offset, 1) == b"\x90"
    labels = {name: address for address, name in functions_of(path)} if "-s" not in flags else {}
    for place in found if labels else ():
        assert place.usdt is not None
        assert place.address == labels[f"probe_{place.usdt.name}"]


def test_names(build: Build) -> None:
    path = build("gcc", "-O2", "lookup_notes.c")
    assert [one.usdt.name for one in resolve(path, "usdt:shop:*").places if one.usdt] == ["first", "second"]
    assert [one.usdt.name for one in resolve(path, "usdt:s*:[fm]*").places if one.usdt] == ["first", "moved"]
    assert "shop has no probe third; there is first, second" in resolve(path, "usdt:shop:third").missing
    assert "there are some of shop, store" in resolve(path, "usdt:none:*").missing
    assert "has no static probes" in resolve(build("gcc", "lookup_other.c", "-shared"), "usdt:*:*").missing


MEMORY = struct.pack("<iiqd", -3, 7, -9, 1.25).ljust(64, b"\x11")


def value_of(expression: str) -> Value:
    place = MadeUpPlace(
        MEMORY,
        rax=0xFFFF_FFFF_0000_AB80,
        rbp=MEMORY_START + 8,
        rcx=1,
        rdi=(1 << 64) - 5,
        r9=MEMORY_START,
        xmm0=struct.unpack("<Q", struct.pack("<d", 2.5))[0],
    )
    machine = replace(MACHINE, find_symbol={"image.so!shelf": MEMORY_START, "image.so!two": 4}.get)
    values = interpret(compile_capture([expression], machine), place)
    assert values is not None
    return values[0]


@pytest.mark.parametrize(
    ("operand", "kind", "expected"),
    [
        ("%edi", "i32", -5),
        ("%rdi", "u64", (1 << 64) - 5),
        ("%al", "u8", 0x80),
        ("%al", "i8", -128),
        ("%ah", "u8", 0xAB),
        ("%ax", "u16", 0xAB80),
        ("%r9d", "u32", MEMORY_START),
        ("%dil", "i8", -5),
        ("$5", "u32", 5),
        ("$-7", "i32", -7),
        ("$0x10", "i64", 16),
        ("-8(%rbp)", "i32", -3),
        ("-4(%rbp)", "u32", 7),
        ("(%rbp)", "i64", -9),
        ("8(%rbp)", "f64", 1.25),
        ("-12(%rbp,%rcx,4)", "i32", -3),
        ("(%r9,%rcx,4)", "i32", 7),
        ("0(,%rcx,4)", "i32", None),
        ("shelf+4(%rip)", "i32", 7),
        ("4+shelf(%rip)", "i32", 7),
        ("shelf", "i32", -3),
        ("shelf+two(%rcx)", "i8", 0),
        ("$shelf+4", "u64", MEMORY_START + 4),
        ("%xmm0", "f64", 2.5),
        ("4104", "i64", -9),
    ],
)
def test_operands(operand: str, kind: str, expected: Value) -> None:
    assert value_of(X86_64.express_operand(operand, kind, lambda name: f"image.so!{name}")) == expected


@pytest.mark.parametrize(
    ("operand", "kind", "told"),
    [
        ("$1-", "u64", "not understood"),
        ("%xmm0", "f32", "another size"),
        ("%st(0)", "f64", "do not have"),
        ("%fs:0x10", "u64", "the thread's own memory"),
        ("%eflags", "u64", "do not have"),
        ("8(%eax)", "u64", "counts from a register"),
        ("16(%rip)", "u64", "an instruction that is not known"),
        ("x@tpoff(%rax)", "u64", "worked out by the linker"),
        ("a-b", "u64", "worked out by the linker"),
        ("(%rax", "u64", "not understood"),
        ("$", "u64", "not understood"),
        ("", "u64", "not understood"),
        ("$99999999999999999999", "u64", "larger than 64 bits"),
        ("%rdi", "f64", "no floating-point number"),
    ],
)
def test_operands_that_have_no_expression(operand: str, kind: str, told: str) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        X86_64.express_operand(operand, kind, lambda name: name)
    with pytest.raises(ValueError, match="not understood"):
        Architecture("other").express_operand(operand, kind, lambda name: name)


def test_arguments(build: Build) -> None:
    path = build("gcc", "-O2", "-no-pie", "lookup_notes.c")
    (first,) = resolve(path, "usdt:shop:first").places
    assert first.usdt is not None
    arguments = first.usdt.arguments
    assert [one.type for one in arguments] == ["i32", "u64", "u32", "i32", "i64", "f64", "i32", "u16"]
    assert arguments[2].expression == "(u32)5"
    assert arguments[5].expression == "xmm0"
    assert arguments[6].expression == f"*(i32*)({path.name}!shelf+4)"
    (second,) = resolve(path, "usdt:shop:second").places
    assert second.usdt is not None
    assert second.usdt.arguments == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("16@%rax", [("u128", None)]),
        ("2f@%rax", [("f16", None)]),
        ("%rax", [("u64", "(u64)rax")]),
        ("-4@%eax 8@", [("i32", "(i32)rax"), ("u64", None)]),
        ("99999999999@%rax", [("u0", None)]),
    ],
)
def test_odd_arguments(build: Build, text: str, expected: list[tuple[str, str | None]]) -> None:
    with open_image(build("gcc", "-O2", "lookup_notes.c")) as image:
        found = parse_arguments(image, text)
    assert [(one.type, one.expression) for one in found] == expected
    assert all(one.expression or one.reason for one in found)


def test_damaged_notes(build: Build, tmp_path: Path) -> None:
    path = build("gcc", "-O2", "lookup_notes.c")
    with open_elf(path) as elf:
        section = elf.find_section(".note.stapsdt")
        assert section is not None
    content = path.read_bytes()
    damaged = tmp_path / "damaged"
    for at in range(section.file_offset, section.file_offset + section.size_bytes):
        for byte in (0, 0xFF):
            if content[at] == byte:
                continue
            damaged.write_bytes(content[:at] + bytes([byte]) + content[at + 1 :])
            with open_image(damaged) as image:
                for place in resolve_in_image(image, parse_location("usdt:*:*")).places:
                    assert image.elf.is_code(place.address)
