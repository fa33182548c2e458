"""What an instruction is to a planner of probes: how it goes on, and whether a copy of it can run elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from iced_x86 import Code, FlowControl, Instruction, Mnemonic, OpKind, Register

from clew.enumeration import IntEnum

__all__ = [
    "CALLS",
    "ENDS",
    "FIRST_FIXED",
    "PLAIN_OPCODES",
    "Kind",
    "find_kind",
    "find_kinds",
    "opcode_at",
    "why_fixed",
]


class Kind(IntEnum):
    """Kinds of instructions."""

    PLAIN = 0
    CONDITIONAL = 1
    """A direct branch that may go on behind itself."""
    JUMP = 2
    INDIRECT_JUMP = 3
    CALL = 4
    INDIRECT_CALL = 5
    RETURN = 6
    STOP = 7
    """Never goes on behind itself, and is no way out of a function either: ud2, hlt, iret."""
    NOP = 8
    ENDBR = 9
    BREAKPOINT = 10
    """This one and all behind it can't be displaced."""
    FIXED = 11
    """A copy of it elsewhere would do something else."""
    BAD = 12
    """No instruction."""


ENDS: Final[frozenset[int]] = frozenset(map(int, (Kind.JUMP, Kind.INDIRECT_JUMP, Kind.RETURN, Kind.STOP)))
"""What stands behind these is not come to from them. Plain numbers, which are looked up faster."""
FIRST_FIXED: Final = int(Kind.BREAKPOINT)
CALLS: Final[frozenset[int]] = frozenset(map(int, (Kind.CALL, Kind.INDIRECT_CALL)))

_PREFIXES: Final = frozenset(b"\x26\x2e\x36\x3e\x64\x65\x66\x67\xf0\xf2\xf3")
_NEAR_RETURNS: Final = frozenset((Code.RETNQ, Code.RETNQ_IMM16))
_STOPS: Final = frozenset((Mnemonic.RETF, Mnemonic.IRET, Mnemonic.IRETD, Mnemonic.IRETQ, Mnemonic.HLT))
_FIXED: Final = frozenset((Mnemonic.XBEGIN, Mnemonic.SYSENTER, Mnemonic.INT1))
PLAIN_OPCODES: Final = frozenset((*range(0x70, 0x80), *range(0xE0, 0xE4), 0x0F, 0xE8, 0xE9, 0xEB, 0xFF))
"""First bytes of branches that have no prefixes."""
_NAMED: Final[dict[int, Kind]] = {
    Mnemonic.NOP: Kind.NOP,
    Mnemonic.INT3: Kind.BREAKPOINT,
    Mnemonic.ENDBR64: Kind.ENDBR,
}
_BY_FLOW: Final[dict[int, Kind]] = {
    FlowControl.NEXT: Kind.PLAIN,
    FlowControl.UNCONDITIONAL_BRANCH: Kind.JUMP,
    FlowControl.CONDITIONAL_BRANCH: Kind.CONDITIONAL,
    FlowControl.EXCEPTION: Kind.STOP,
    FlowControl.INTERRUPT: Kind.PLAIN,
    FlowControl.XBEGIN_XABORT_XEND: Kind.PLAIN,
}


class _Kinds(dict[int, Kind]):
    """Of each code that was met."""

    def __missing__(self, code: int) -> Kind:
        one = Instruction()
        one.code = code  # type: ignore[assignment]
        kind = self[code] = _kind_of(code, one.mnemonic, one.flow_control)
        return kind


_KINDS: Final = _Kinds()


class _Numbers(dict[int, int]):
    """The same as plain numbers, of which bytes are made faster."""

    def __missing__(self, code: int) -> int:
        number = self[code] = int(_KINDS[code])
        return number


_NUMBERS: Final = _Numbers()


def find_kind(one: Instruction) -> Kind:
    """The kind of an instruction, whatever its prefixes and operands are."""
    return _KINDS[one.code]


def find_kinds(some: Iterable[Instruction]) -> bytes:
    """Those of many."""
    return bytes(map(_NUMBERS.__getitem__, map(attrgetter("code"), some)))


def _kind_of(code: int, mnemonic: int, flow: int) -> Kind:
    if code == Code.INVALID:
        return Kind.BAD
    if mnemonic in _FIXED:
        return Kind.FIXED
    if mnemonic in _STOPS:
        return Kind.STOP
    if mnemonic in _NAMED:
        return _NAMED[mnemonic]
    if code == Code.CALL_REL32_64:
        return Kind.CALL
    if code == Code.CALL_RM64:
        return Kind.INDIRECT_CALL
    if code == Code.JMP_RM64:
        return Kind.INDIRECT_JUMP
    if mnemonic == Mnemonic.RET:
        return Kind.RETURN if code in _NEAR_RETURNS else Kind.FIXED
    if mnemonic in (Mnemonic.CALL, Mnemonic.JMP) and code not in (Code.JMP_REL8_64, Code.JMP_REL32_64):
        return Kind.FIXED
    if flow in (FlowControl.CALL, FlowControl.INDIRECT_CALL):
        return Kind.PLAIN  # syscall, and what hypervisors are called by: they go on behind themselves.
    return _BY_FLOW.get(flow, Kind.FIXED)


def why_fixed(one: Instruction, code: bytes) -> str | None:
    """Why an instruction, of those bytes, can't be executed elsewhere; None if it can."""
    kind = find_kind(one)
    if kind == Kind.BAD:
        return "is no instruction"
    if kind == Kind.BREAKPOINT:
        return "is a breakpoint (int3) already"
    if kind == Kind.FIXED:
        if one.mnemonic == Mnemonic.XBEGIN:
            return "begins a transaction (xbegin), which a probe would end"
        if one.mnemonic in (Mnemonic.CALL, Mnemonic.JMP, Mnemonic.RET):
            return "is a far transfer, or one of 16 bits"
        return "depends on where it is"
    if kind in (Kind.CALL, Kind.JUMP, Kind.CONDITIONAL, Kind.INDIRECT_JUMP, Kind.INDIRECT_CALL):
        # Intel's processors ignore the prefix at direct branches, AMD's take 16 bits of the distance then (AMD manual
        # 3, CALL, Jcc and JMP), unless REX.W stands behind it, as where thread-local variables are asked for.
        opcode = opcode_at(code)
        is_wide = opcode > 0 and code[opcode - 1] & 0xF8 == 0x48
        if 0x66 in code[:opcode] and not is_wide:
            return "is a branch with an operand-size prefix, which processors take differently"
        if kind == Kind.INDIRECT_CALL:
            return _why_call_fixed(one)
    return None


def _why_call_fixed(one: Instruction) -> str | None:
    """Its copy pushes the return address before it reads where to go."""
    if one.op0_kind == OpKind.REGISTER:
        return "is a call by the stack pointer" if one.op0_register == Register.RSP else None
    if one.memory_base in (Register.RSP, Register.ESP):
        distance = one.memory_displacement - (one.memory_displacement >> 63 << 64)
        if distance + 8 > 0x7FFFFFFF:
            return "is a call by a word too far from the stack pointer"
        if one.memory_index == Register.NONE and -16 < distance < 0:
            return "is a call by a word that its own return address replaces"
    return None


def opcode_at(code: bytes) -> int:
    """How many bytes of prefixes an instruction without VEX, of those bytes, has in front of its opcode."""
    at = 0
    while at < len(code) and code[at] in _PREFIXES:
        at += 1
    return at + 1 if at < len(code) and 0x40 <= code[at] <= 0x4F else at
