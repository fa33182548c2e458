"""What copying an instruction takes to know, wherever it is: programs are made of a few that they repeat."""

from __future__ import annotations

from functools import lru_cache
from typing import Final, NamedTuple

from iced_x86 import Decoder, OpKind, Register

from clew.probing.x86_64.kinds import Kind, find_kind, why_fixed

__all__ = ["KnownInstruction", "look_at"]

_DIRECT: Final = frozenset((Kind.CALL, Kind.JUMP, Kind.CONDITIONAL))
_HALF, _MASK = 1 << 63, (1 << 64) - 1
_SOMEWHERE: Final = 1 << 40
"""Some address: where an instruction is tells nothing of it."""


class KnownInstruction(NamedTuple):
    """Its kind; `why` it can't be executed elsewhere, if so, and its size as it is decoded.

    `distance` leads from the instruction's address to where it branches, if that is direct, or to the memory that it
    names by its distance (`names_memory`), which is at `field` of its bytes, and counts 32 bits only if it `wraps`.
    `is_on_stack`: its operand in memory has the stack pointer as its base."""

    kind: Kind
    why: str | None
    size: int
    distance: int | None
    names_memory: bool
    field: int
    wraps: bool
    is_on_stack: bool
    is_plain: bool
    """Its bytes do the same anywhere, and it goes on behind itself."""


@lru_cache(1 << 14)
def look_at(code: bytes) -> KnownInstruction:
    """The instruction of these bytes."""
    decoder = Decoder(64, code, ip=_SOMEWHERE)
    one = decoder.decode()
    kind = find_kind(one)
    names_memory = one.is_ip_rel_memory_operand
    distance, field, wraps = None, 0, False
    if kind in _DIRECT:
        distance = (one.near_branch_target - _SOMEWHERE + _HALF & _MASK) - _HALF
    if names_memory:
        field = decoder.get_constant_offsets(one).displacement_offset
        wraps = int(one.memory_base) == Register.EIP
        if not wraps:
            distance = (one.ip_rel_memory_address - _SOMEWHERE + _HALF & _MASK) - _HALF
    is_on_stack = one.op_count > 0 and one.op0_kind == OpKind.MEMORY and one.memory_base in (Register.RSP, Register.ESP)
    why = why_fixed(one, code)
    is_plain = kind == Kind.PLAIN and not names_memory and why is None and one.len == len(code)
    return KnownInstruction(kind, why, one.len, distance, names_memory, field, wraps, is_on_stack, is_plain)
