"""Instructions as text.

Runs in the controller. x86-64 for now; capstone is loaded when it is first used.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from clew.dataclass import dataclass

__all__ = ["DisassembledInstruction", "call_size", "disassemble", "instruction_starts"]


@dataclass(frozen=True)
class DisassembledInstruction:
    """One instruction: its address, its bytes, and its text in Intel's syntax."""

    address: int
    code: bytes
    text: str


@cache
def _decoder() -> Any:
    import capstone

    return capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)


def disassemble(code: bytes, address: int) -> list[DisassembledInstruction]:
    """Instructions of `code`, which is at `address`. What is none ends the list as `(bad)` with the bytes left."""
    instructions = [
        DisassembledInstruction(at, code[at - address : at - address + size], f"{name} {operands}".rstrip())
        for at, size, name, operands in _decoder().disasm_lite(code, address)
    ]
    done = sum(len(instruction.code) for instruction in instructions)
    if done < len(code):
        instructions.append(DisassembledInstruction(address + done, code[done:], "(bad)"))
    return instructions


def instruction_starts(code: bytes, address: int) -> list[int]:
    """Addresses at which instructions of `code` start."""
    return [at for at, _, _, _ in _decoder().disasm_lite(code, address)]


def call_size(code: bytes) -> int | None:
    """How many bytes long the call is with which `code` starts; None if that is no call."""
    for _, size, name, _ in _decoder().disasm_lite(code, 0):
        return int(size) if name == "call" else None
    return None
