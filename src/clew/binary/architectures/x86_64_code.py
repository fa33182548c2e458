"""What code of x86-64 does: its instructions, the system call that it makes, the words that stubs jump through.

Runs in the controller. The number of a system call is in rax, and wrappers of libraries load it as a constant in front
of the instruction. capstone is loaded when it is first used.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

__all__ = ["decoder", "find_call_number", "find_stub_slots"]


@cache
def decoder() -> Any:
    """The disassembler, of texts alone."""
    import capstone

    return capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)


@cache
def _detailed_decoder() -> Any:
    import capstone

    detailed = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    detailed.detail = True
    return detailed


def find_stub_slots(code: npt.NDArray[np.uint8], address: int) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.uint64]]:
    """Where code at `address` jumps through a word in memory, and where that word is."""
    # jmp [rip + displacement], possibly after an endbr64 and with a bnd prefix.
    at = np.flatnonzero((code[:-5] == 0xFF) & (code[1:-4] == 0x25)) if len(code) >= 6 else np.zeros(0, np.int64)
    displacement = code[at[:, None] + np.arange(2, 6)].copy().view("<i4")[:, 0].astype(np.int64)
    return at, (at + 6 + displacement).astype(np.uint64) + np.uint64(address)


def find_call_number(code: bytes) -> int | None:
    """The number that rax holds at the end of `code`, run from its start, if that is a system call; None where what
    came before decides, or no system call is made."""
    from capstone import CsError, x86_const

    parts = {getattr(x86_const, f"X86_REG_{name}") for name in ("RAX", "EAX", "AX", "AH", "AL")}
    whole = {x86_const.X86_REG_RAX, x86_const.X86_REG_EAX}
    number: int | None = None
    last = ""
    for instruction in _detailed_decoder().disasm(code, 0):
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
