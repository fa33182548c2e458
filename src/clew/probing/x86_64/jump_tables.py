"""Tables that indirect jumps of a function go through, as compilers make them for `switch`.

A table that is not found costs nothing but speed: where it leads is guarded like any other place. One that is read too
far makes a few places more be taken for targets.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Final

from iced_x86 import Instruction, MemorySizeInfo, Mnemonic, OpKind, Register, RegisterInfo

__all__ = ["find_table_targets"]

MAX_ENTRIES: Final = 4096
_MAX_BACK: Final = 48
"""How many instructions in front of the jump are looked at; the table's address may have been loaded far away."""
_REACH: Final = 1 << 26
"""No function leads farther than this by a table: other parts of it lie in the same file."""


def find_table_targets(
    instructions: Sequence[Instruction],
    index: int,
    inside: range,
    starts: Collection[int],
    read: Callable[[int, int], bytes],
) -> tuple[int, ...]:
    """Where the indirect jump, number `index` of a function's instructions, leads by a table; () if there is none that
    is known. `inside` are the function's addresses, `starts` those of its instructions."""
    before = list(instructions[max(index - _MAX_BACK, 0) : index])
    jump = instructions[index]
    place = _find_table(before, jump)
    if place is None:
        return ()
    address, entry_bytes = place
    targets: dict[int, None] = {}
    at_jump = jump.ip
    words = read(address, MAX_ENTRIES * entry_bytes)
    for at in range(0, len(words) - entry_bytes + 1, entry_bytes):
        word = int.from_bytes(words[at : at + entry_bytes], "little", signed=entry_bytes == 4)
        target = word + address if entry_bytes == 4 else word
        if (target in inside and target not in starts) or abs(target - at_jump) > _REACH:
            break
        targets[target] = None
    # A word by chance is no table: of a switch some case is in the function itself.
    return tuple(targets) if any(target in inside for target in targets) else ()


def _find_table(before: list[Instruction], jump: Instruction) -> tuple[int, int] | None:
    """The table's address, and how many bytes an entry has: 4, relative to the table, or 8, absolute."""
    if jump.op0_kind == OpKind.MEMORY:
        return _find_absolute(before, jump)
    if jump.op0_kind != OpKind.REGISTER:
        return None
    target = jump.op0_register
    for at in range(len(before) - 1, -1, -1):
        one = before[at]
        if not _writes(one, target):
            continue
        if one.mnemonic == Mnemonic.MOV and one.op1_kind == OpKind.MEMORY:
            return _find_absolute(before[:at], one)
        if one.mnemonic != Mnemonic.ADD or one.op1_kind != OpKind.REGISTER:
            return None
        # One of both is the table's address, the other was read from the table.
        for base, offset in ((one.op1_register, target), (target, one.op1_register)):
            address = _find_address(before[:at], base)
            if address is not None and _is_read(before[:at], offset):
                return address, 4
        return None
    return None


def _find_absolute(before: list[Instruction], one: Instruction) -> tuple[int, int] | None:
    """The table whose entries of 8 bytes an instruction's operand names: in memory at base + index * 8."""
    base = int(one.memory_base)
    if int(one.memory_index) == Register.NONE or one.memory_index_scale != 8:
        return None
    if base == Register.NONE:
        return one.memory_displacement, 8
    address = _find_address(before, base)
    return None if address is None or one.memory_displacement else (address, 8)


def _find_address(before: list[Instruction], register: int) -> int | None:
    """The address in the code that a register was last loaded with."""
    for one in reversed(before):
        if _writes(one, register):
            is_address = one.mnemonic == Mnemonic.LEA and one.is_ip_rel_memory_operand
            return one.ip_rel_memory_address if is_address else None
    return None


def _is_read(before: list[Instruction], register: int) -> bool:
    """Whether a register was last read from memory, four bytes; what else was to be a table shows in its words."""
    for one in reversed(before):
        if _writes(one, register):
            is_word = one.mnemonic in (Mnemonic.MOVSXD, Mnemonic.MOV) and one.op1_kind == OpKind.MEMORY
            return is_word and MemorySizeInfo(one.memory_size).size == 4
    return False


def _writes(one: Instruction, register: int) -> bool:
    """Whether the first operand, which is what nearly all instructions write to, is a register."""
    if one.op_count == 0 or one.op0_kind != OpKind.REGISTER or one.mnemonic in (Mnemonic.CMP, Mnemonic.TEST):
        return False
    return register in (one.op0_register, RegisterInfo(one.op0_register).full_register)
