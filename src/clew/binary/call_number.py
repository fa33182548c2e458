"""The number of the system call that a piece of code makes, where the code itself says it.

Runs in the controller. Of x86-64: the number is in rax, and wrappers of libraries load it as a constant in front of the
instruction.
"""

from __future__ import annotations

from functools import cache
from typing import Any

__all__ = ["find_call_number"]


@cache
def _decoder() -> Any:
    import capstone

    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    decoder.detail = True
    return decoder


def find_call_number(code: bytes) -> int | None:
    """The number that rax holds at the end of `code`, run from its start, if that is a system call; None where what
    came before decides, or no system call is made."""
    from capstone import CsError, x86_const

    parts = {getattr(x86_const, f"X86_REG_{name}") for name in ("RAX", "EAX", "AX", "AH", "AL")}
    whole = {x86_const.X86_REG_RAX, x86_const.X86_REG_EAX}
    number: int | None = None
    last = ""
    for instruction in _decoder().disasm(code, 0):
        last = instruction.mnemonic
        if last == "syscall":
            continue
        first, second = (*instruction.operands, None, None)[:2]
        if second is not None and first.type == x86_const.X86_OP_REG and first.reg in whole:
            if last in ("mov", "movabs") and second.type == x86_const.X86_OP_IMM:
                number = second.imm
                continue
            if last == "xor" and second.type == x86_const.X86_OP_REG and second.reg == first.reg:
                number = 0
                continue
        try:
            if parts & set(instruction.regs_access()[1]):
                number = None
        except CsError:
            # What it writes is not known.
            number = None
    return number if last == "syscall" and number is not None and 0 <= number < 1 << 31 else None
