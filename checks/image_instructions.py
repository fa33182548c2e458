"""Which instructions the runtime image may hold.

The gates from translated code into the runtime save xmm0 to xmm15 and MXCSR and nothing else of the vector state, and
the application's %fs is never the runtime's. So an instruction that writes the upper vector bits, x87 or MMX registers,
or goes through %fs, would silently destroy or misread the application's state. This file decodes machine code; it knows
nothing of ELF.
"""

from __future__ import annotations

from collections.abc import Iterator

import capstone
from capstone import x86_const

from checks.violation import Violation

_LEGACY_PREFIXES = frozenset(b"\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3")
_MMX_REGISTERS = frozenset(range(x86_const.X86_REG_MM0, x86_const.X86_REG_MM7 + 1))


def refused_encoding(code: bytes) -> str | None:
    """Why the encoding of one instruction, given as its bytes, is refused (VEX, EVEX, XOP, x87, MMX, 3DNow), else None.

    Registers are not looked at: an MMX instruction that shares its opcode with SSE needs its operands decoded.
    """
    at = 0
    while at < len(code) and code[at] in _LEGACY_PREFIXES:
        at += 1
    if at < len(code) and code[at] & 0xF0 == 0x40:  # REX
        at += 1
    opcode = code[at : at + 3].ljust(3, b"\0")
    # In 64-bit mode C4, C5 and 62 have no meaning of their own left, so no ModRM need be looked at.
    match opcode[0]:
        case 0xC4 | 0xC5:
            return "VEX"
        case 0x62:
            return "EVEX"
        case 0x8F if opcode[1] & 0x38:
            return "XOP"
        case 0x9B | 0xD8 | 0xD9 | 0xDA | 0xDB | 0xDC | 0xDD | 0xDE | 0xDF:
            return "x87"
        case 0x0F if opcode[1] == 0x77:
            return "MMX"
        case 0x0F if opcode[1] in (0x0E, 0x0F):
            return "3DNow"
    return None


def find_refused_instructions(code: bytes, address: int) -> Iterator[Violation]:
    """Decode `code`, loaded at `address`, from its first byte to its last; yield what may not be in it.

    Bytes that decode to nothing are a violation too: what cannot be decoded cannot be vouched for.
    """
    decoder = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
    decoder.detail = True
    end = address + len(code)
    at = address
    while at < end:
        for instruction in decoder.disasm(code[at - address :], at):
            at = instruction.address + instruction.size
            reason = refused_encoding(bytes(instruction.bytes)) or _refused_operand(instruction)
            if reason is not None:
                text = f"{instruction.mnemonic} {instruction.op_str}".rstrip()
                yield Violation(f"{instruction.address:#x}", f"{reason} instruction: {text}")
        if at < end:
            yield Violation(f"{at:#x}", f"byte {code[at - address]:#04x} does not decode")
            at += 1


def _refused_operand(instruction: capstone.CsInsn) -> str | None:
    for operand in instruction.operands:
        if operand.type == x86_const.X86_OP_REG and operand.reg in _MMX_REGISTERS:
            return "MMX"
        if operand.type == x86_const.X86_OP_MEM and operand.mem.segment == x86_const.X86_REG_FS:
            return "%fs"
    return None
