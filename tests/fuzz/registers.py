"""Names of the general registers at every width.

Pure data. A register is known by its number, as the processor encodes it: 0 rax, 1 rcx, 2 rdx, 3 rbx, 4 rsp, 5 rbp,
6 rsi, 7 rdi, 8 to 15.
"""

from __future__ import annotations

RAX, RCX, RDX, RBX, RSP, RBP, RSI, RDI = range(8)
R10, R11 = 10, 11

NAMES = {
    64: ("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi", *(f"r{n}" for n in range(8, 16))),
    32: ("eax", "ecx", "edx", "ebx", "esp", "ebp", "esi", "edi", *(f"r{n}d" for n in range(8, 16))),
    16: ("ax", "cx", "dx", "bx", "sp", "bp", "si", "di", *(f"r{n}w" for n in range(8, 16))),
    8: ("al", "cl", "dl", "bl", "spl", "bpl", "sil", "dil", *(f"r{n}b" for n in range(8, 16))),
}
HIGH_BYTES = ("ah", "ch", "dh", "bh")  # of registers 0 to 3; not together with a REX prefix
GENERAL = tuple(number for number in range(16) if number != RSP)


def name(number: int, bits: int = 64) -> str:
    """The name of a register at a width of 8, 16, 32 or 64 bits."""
    return NAMES[bits][number]
