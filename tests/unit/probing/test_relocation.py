"""Copies of instructions elsewhere, held against what another decoder says of them."""

from __future__ import annotations

import re

import capstone
import pytest

from clew.errors import UsageError
from clew.probing.x86_64.plans import Displaced
from clew.probing.x86_64.relocation import relocate

START, COPY = 0x7F00_1000_0000, 0x7F00_5000_0000
_DECODER = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)


def displaced(code: str) -> list[Displaced]:
    return [Displaced(at, bytes(one)) for at, one in _split(bytes.fromhex(code))]


def _split(code: bytes) -> list[tuple[int, bytes]]:
    return [(one.address, bytes(one.bytes)) for one in _DECODER.disasm(code, START)]


def text(code: bytes, address: int) -> list[str]:
    """What code says, with addresses relative to START, and what is in the copy by its distance from there."""
    lines = []
    for one in _DECODER.disasm(code, address):
        operands = one.op_str
        if found := re.search(r"rip ([+-]) (0x[0-9a-f]+|\d+)", operands):
            operands = operands.replace(found[0], name(one.address + one.size + int(found[1] + found[2], 0)))
        if re.fullmatch("0x[0-9a-f]+", operands) and one.mnemonic[0] in "jlc":
            operands = name(int(operands, 0))
        lines.append(f"{one.mnemonic} {operands}".strip())
    return lines


def name(address: int) -> str:
    return f"copy+{address - COPY}" if 0 <= address - COPY < 4096 else f"start{address - START:+}"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("4889f8", ["mov rax, rdi", "jmp start+3"]),
        ("488b0510000000", ["mov rax, qword ptr [start+23]", "jmp start+7"]),
        ("c705f0ffffff78563412", ["mov dword ptr [start-6], 0x12345678", "jmp start+10"]),
        ("740e", ["je start+16", "jmp start+2"]),
        ("2e740d", ["je start+16", "jmp start+3"]),
        ("0f8ffaffffff", ["jg start+0", "jmp start+6"]),
        ("eb0e", ["jmp start+16"]),
        ("e90b000000", ["jmp start+16"]),
        ("e20e", ["loop copy+4", "jmp copy+9", "jmp start+16", "jmp start+2"]),
        ("67e30d", ["jecxz copy+5", "jmp copy+10", "jmp start+16", "jmp start+3"]),
        ("ff2510000000", ["jmp qword ptr [start+22]"]),
        ("ffe0", ["jmp rax"]),
        ("c3", ["ret"]),
        ("4889f8c3", ["mov rax, rdi", "ret"]),
        ("0f05", ["syscall", "jmp start+2"]),
        ("e80b000000", ["push qword ptr [copy+16]", "jmp start+16"]),
        ("ffd0", ["push qword ptr [copy+8]", "jmp rax"]),
        ("41ffd3", ["push qword ptr [copy+16]", "jmp r11"]),
        ("ff1510000000", ["push qword ptr [copy+16]", "jmp qword ptr [start+22]"]),
        ("ff1424", ["push qword ptr [copy+16]", "jmp qword ptr [rsp + 8]"]),
        ("ff542478", ["push qword ptr [copy+16]", "jmp qword ptr [rsp + 0x80]"]),
        ("ff9424f0ffffff", ["push qword ptr [copy+16]", "jmp qword ptr [rsp - 8]"]),
        ("42ff54fc10", ["push qword ptr [copy+16]", "jmp qword ptr [rsp + r15*8 + 0x18]"]),
        ("41ff542410", ["push qword ptr [copy+16]", "jmp qword ptr [r12 + 0x10]"]),
        ("64ff142510000000", ["push qword ptr [copy+16]", "jmp qword ptr fs:[0x10]"]),
    ],
)
def test_copies(code: str, expected: list[str]) -> None:
    copy = relocate(displaced(code), COPY)
    n_bytes = next((at for at in range(len(copy.code)) if copy.code[at : at + 8] == pushed(code)), len(copy.code))
    found = text(copy.code[:n_bytes].rstrip(b"\xcc"), COPY)
    assert found == expected
    assert copy.starts[START] == COPY


def pushed(code: str) -> bytes:
    """The return address of a call."""
    return (START + len(bytes.fromhex(code))).to_bytes(8, "little")


def test_a_call_pushes_where_it_returns_to() -> None:
    copy = relocate(displaced("4889f8ffd0"), COPY)
    at = 3 + 6 + int.from_bytes(copy.code[5:9], "little")
    assert int.from_bytes(copy.code[at : at + 8], "little") == START + 5
    assert (COPY + at) % 8 == 0


def test_where_the_program_is_in_a_copy() -> None:
    # mov rax, rdi; jrcxz 16; call rax
    copy = relocate(displaced("4889f8 e30b ffd0".replace(" ", "")), COPY, {1: lambda at: b"\x90" * 4})
    places = {
        COPY: (START, 0),
        COPY + 3: (START + 3, 0),
        COPY + 5: (START + 3, 0),
        COPY + 7: (START + 3, 0),
        COPY + 9: (START + 5, 0),
        COPY + 11: (START + 16, 0),
        COPY + 16: (START + 5, 0),
        # The return address is pushed, the call not made.
        COPY + 22: (START + 5, 8),
    }
    for at, expected in places.items():
        origin = copy.find_origin(at)
        assert origin is not None and (origin.address, origin.stack_bytes) == expected, hex(at)
    assert copy.find_origin(COPY - 1) is None and copy.find_origin(COPY + len(copy.code)) is None
    direct = relocate(displaced("e80b000000"), COPY).find_origin(COPY + 6)
    assert direct is not None and (direct.address, direct.stack_bytes) == (START + 16, 0)


def test_what_is_inserted_where_a_branch_is_taken() -> None:
    at: list[int] = []

    def inserted(address: int) -> bytes:
        at.append(address)
        return b"\x0f\x0b"

    copy = relocate(displaced("740e"), COPY, {}, {0: inserted})
    assert text(copy.code, COPY) == ["je copy+11", "jmp start+2", "ud2", "jmp start+16"]
    assert at == [COPY + 11]
    origin = copy.find_origin(COPY + 11)
    assert origin is not None and origin.address == START + 16


@pytest.mark.parametrize("code", ["488b0510000000", "ff2500000000", "c705f0ffffff78563412"])
def test_memory_that_is_too_far(code: str) -> None:
    one = displaced(code)
    relocate(one, START + (1 << 31) - 64)
    with pytest.raises(UsageError, match="too far from a copy"):
        relocate(one, START + (1 << 31) + 64)


def far(target: int) -> bytes:
    """A jump to an address that lies behind it."""
    return b"\xff\x25\0\0\0\0" + target.to_bytes(8, "little")


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("4889f8", b"\x48\x89\xf8" + far(START + 3)),
        ("e910000000", far(START + 21)),
        ("7410", b"\x0f\x84\x0e\0\0\0" + far(START + 2) + far(START + 18)),
        ("e210", b"\xe2\x02\xeb\x05\xe9\x0e\0\0\0" + far(START + 2) + far(START + 18)),
        # push qword ptr [rip + 18], which is behind the jump, at a multiple of eight.
        ("e810000000", b"\xff\x35\x12\0\0\0" + far(START + 21) + b"\xcc" * 4 + pushed("e810000000")),
    ],
)
def test_code_that_is_too_far(code: str, expected: bytes) -> None:
    """A copy jumps from anywhere."""
    copy = relocate(displaced(code), START + (1 << 40))
    assert copy.code == expected
    ends = {START + len(bytes.fromhex(code)), START + 18, START + 21}
    origins = [copy.find_origin(START + (1 << 40) + at) for at in range(len(copy.code))]
    assert all(one is not None and one.address in {START, *ends} for one in origins)


def test_addresses_of_32_bits_wrap_around() -> None:
    # lea eax, [eip + 0x10]
    place = START - (1 << 30)
    assert place >> 32 != START >> 32
    copy = relocate(displaced("678d0510000000"), place)
    distance = int.from_bytes(copy.code[3:7], "little")
    assert (place + 7 + distance) % (1 << 32) == (START + 0x17) % (1 << 32)


def test_a_return_refers_to_nothing() -> None:
    assert relocate(displaced("c3"), START + (1 << 40)).code == b"\xc3"


def test_a_call_has_to_be_the_last() -> None:
    with pytest.raises(UsageError, match="behind a call"):
        relocate(displaced("ffd090"), COPY)
