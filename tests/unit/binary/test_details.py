"""What is known of instructions, held against what the processor's manuals say."""

from __future__ import annotations

import pytest

from clew.binary.architectures.details import InstructionDetails, MemoryAccess
from clew.binary.architectures.known import native_architecture


def details_of(code: str, address: int = 0x1000) -> InstructionDetails:
    (one,) = native_architecture().iter_details(bytes.fromhex(code), address)
    return one


@pytest.mark.parametrize(
    ("code", "text", "reads", "writes", "memory"),
    [
        (
            "48f77708",
            "div qword ptr [rdi+8]",
            {"rax", "rdx", "rdi"},
            {"rax", "rdx", "rflags"},
            [("rdi", "", 8, 8, "r")],
        ),
        ("50", "push rax", {"rax", "rsp"}, {"rsp"}, [("rsp", "", -8, 8, "w")]),
        ("48f00fb14c9310", "", set(), set(), []),
        ("0fb6047b", "movzx eax,byte ptr [rbx+rdi*2]", {"rbx", "rdi"}, {"rax"}, [("rbx", "rdi", 0, 1, "r")]),
        ("488d0510000000", "lea rax,[rip+0x10]", set(), {"rax"}, []),
        ("8b0510000000", "mov eax,dword ptr [rip+0x10]", set(), {"rax"}, [("", "", 0x1016, 4, "r")]),
        (
            "f3a4",
            "rep movsb byte ptr [rdi],byte ptr [rsi]",
            {"rcx", "rsi", "rdi", "rflags"},
            {"rcx", "rsi", "rdi"},
            None,
        ),
        ("62f24e0852ec", "vdpbf16ps xmm5,xmm6,xmm4", {"xmm4", "xmm5", "xmm6"}, {"zmm5"}, []),
    ],
)
def test_what_instructions_do(
    code: str, text: str, reads: set[str], writes: set[str], memory: list[tuple[str, str, int, int, str]] | None
) -> None:
    if not text:
        # A REX prefix in front of another one counts for nothing, and the next one is an instruction of its own.
        assert details_of(code[2:]).mnemonic == "lock cmpxchg"
        return
    one = details_of(code)
    assert f"{one.mnemonic} {one.operands}" == text
    assert (set(one.reads), set(one.writes)) == (reads, writes)
    assert not one.may_go_elsewhere and not one.uses_own_segment
    if memory is not None:
        found = [(place.base, place.index, place.displacement, place.size_bytes, place.access) for place in one.memory]
        assert found == memory


@pytest.mark.parametrize(
    ("code", "group"),
    [
        ("c3", "return"),
        ("7402", "conditional_branch"),
        ("e2fe", "conditional_branch"),
        ("eb00", "unconditional_branch"),
        ("ffe0", "indirect_branch"),
        ("e800000000", "call"),
        ("ffd0", "indirect_call"),
        ("0f05", "call"),
        ("cc", "interrupt"),
        ("0f0b", "exception"),
    ],
)
def test_what_may_go_elsewhere(code: str, group: str) -> None:
    one = details_of(code)
    assert one.may_go_elsewhere and one.groups[0] == group


def test_what_is_the_runtimes_own() -> None:
    assert details_of("65488b042528000000").uses_own_segment
    assert details_of("8ee8").uses_own_segment
    assert not details_of("64488b042528000000").uses_own_segment


def test_no_instruction_ends_them() -> None:
    assert [one.address for one in native_architecture().iter_details(b"\x90\x90\x06\x90", 16)] == [16, 17]
    assert MemoryAccess("rax", "", 1, 0, "ds", 8, "r") == MemoryAccess("rax", "", 1, 0, "ds", 8, "r")
