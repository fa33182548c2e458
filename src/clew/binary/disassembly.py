"""Instructions as text.

Runs in the controller. What decodes them is the architecture's.
"""

from __future__ import annotations

from clew.binary.architectures.architecture import Architecture
from clew.dataclass import dataclass

__all__ = ["DisassembledInstruction", "call_size", "disassemble", "instruction_starts"]


@dataclass(frozen=True)
class DisassembledInstruction:
    """One instruction: its address, its bytes, and its text."""

    address: int
    code: bytes
    text: str


def disassemble(code: bytes, address: int, architecture: Architecture) -> list[DisassembledInstruction]:
    """Instructions of `code`, which is at `address`. What is none ends the list as `(bad)` with the bytes left."""
    instructions = [
        DisassembledInstruction(at, code[at - address : at - address + size], f"{name} {operands}".rstrip())
        for at, size, name, operands in architecture.iter_instructions(code, address)
    ]
    done = sum(len(instruction.code) for instruction in instructions)
    if done < len(code):
        instructions.append(DisassembledInstruction(address + done, code[done:], "(bad)"))
    return instructions


def instruction_starts(code: bytes, address: int, architecture: Architecture) -> list[int]:
    """Addresses at which instructions of `code` start."""
    return [at for at, _, _, _ in architecture.iter_instructions(code, address)]


def call_size(code: bytes, architecture: Architecture) -> int | None:
    """How many bytes long the call is with which `code` starts; None if that is no call."""
    for _, size, name, _ in architecture.iter_instructions(code, 0):
        return int(size) if architecture.is_call(name) else None
    return None
