"""Code of x86-64 that gives a thread its registers and its signal mask back, behind a system call's instruction.

Runs in the controller, which writes it into a process: `clew.process.refuge`.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Final

from clew.protocol._constants import ARCHITECTURES

__all__ = ["SYSCALL_INSTRUCTION", "refuge_code"]

SYSCALL_INSTRUCTION: Final = b"\x0f\x05"
_REGISTERS: Final = ARCHITECTURES["x86_64"].registers
_DATA_OFFSET: Final = 256
_SLOTS: Final = (*_REGISTERS, "eflags", "rip", "mask")
_KEPT_BY_CALLS: Final = ("rbx", "rbp", "r8", "r9", "r12", "r13", "r14", "r15", "rsp")
_USED_BY_CALLS: Final = ("rdi", "rsi", "rdx", "r10", "rcx", "r11", "rax")


def refuge_code(registers: Mapping[str, int], mask: int) -> bytes:
    """A system call's instruction, and behind it what makes `registers`, by the kernel's names, and the signal mask the
    thread's again."""
    code = bytearray(SYSCALL_INSTRUCTION)

    def add(start: bytes, slot: str) -> None:
        """An instruction with an operand relative to rip."""
        end = len(code) + len(start) + 4
        code.extend(start + struct.pack("<i", _DATA_OFFSET + 8 * _SLOTS.index(slot) - end))

    def load(name: str) -> None:
        number = _REGISTERS.index(name)
        add(bytes([0x4C if number > 7 else 0x48, 0x8B, 0x05 | (number & 7) << 3]), name)

    add(b"\x48\x8d\x25", "eflags")  # lea rsp
    code.extend(b"\x9d")  # popfq; nothing from here on changes flags
    for name in _KEPT_BY_CALLS:
        load(name)
    # rt_sigprocmask(SIG_SETMASK, mask, 0, 8): with its own stack the thread may take a signal.
    code.extend(b"\xb8\x0e\0\0\0\xbf\x02\0\0\0")
    add(b"\x48\x8d\x35", "mask")
    code.extend(b"\xba\0\0\0\0\x41\xba\x08\0\0\0" + SYSCALL_INSTRUCTION)
    for name in _USED_BY_CALLS:
        load(name)
    add(b"\xff\x25", "rip")  # jmp
    values = [registers[name] for name in _SLOTS[:-1]]
    return bytes(code).ljust(_DATA_OFFSET, b"\xcc") + struct.pack(f"<{len(_SLOTS)}Q", *values, mask)
