"""Numbers of system calls that code says itself."""

from __future__ import annotations

import pytest

from clew.binary.architectures.x86_64 import X86_64

SYSCALL = b"\x0f\x05"
MOV_9 = b"\xb8\x09\x00\x00\x00"


@pytest.mark.parametrize(
    ("code", "number"),
    [
        (MOV_9 + SYSCALL, 9),
        (MOV_9 + b"\x48\x89\xfe" + SYSCALL, 9),  # mov rsi, rdi
        (b"\x48\xc7\xc0\x3c\x00\x00\x00" + SYSCALL, 60),  # mov rax, 60
        (b"\x31\xc0" + SYSCALL, 0),  # xor eax, eax
        (SYSCALL, None),
        (MOV_9, None),
        (MOV_9 + b"\x48\x01\xd0" + SYSCALL, None),  # add rax, rdx
        (MOV_9 + b"\xb0\x05" + SYSCALL, None),  # mov al, 5
        (MOV_9 + b"\x58" + SYSCALL, None),  # pop rax
        (MOV_9 + b"\x0f\xa2" + SYSCALL, None),  # cpuid
        (b"\x58" + MOV_9 + SYSCALL, 9),
        (b"\x48\xc7\xc0\xff\xff\xff\xff" + SYSCALL, None),  # mov rax, -1
        (b"\x31\xd0" + SYSCALL, None),  # xor eax, edx
        (b"\xff\xff\xff", None),
        (b"", None),
    ],
)
def test_the_number_that_a_call_has(code: bytes, number: int | None) -> None:
    assert X86_64.find_call_number(code) == number
