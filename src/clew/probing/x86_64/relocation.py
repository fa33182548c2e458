"""Copies of displaced instructions, for wherever the trampoline is.

Bytes are copied, and distances in them changed; only branches are encoded anew, and calls are taken apart: they push
the address behind the original call, so that no address of a copy is ever on a stack. Nothing else of the program
changes on the way: no register, no flag, no memory but what the instruction itself would change.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from clew.errors import UsageError
from clew.probing.x86_64.kinds import CALLS, ENDS, Kind, opcode_at
from clew.probing.x86_64.known_instructions import KnownInstruction, look_at
from clew.probing.x86_64.plans import Displaced

__all__ = ["Inserted", "Origin", "Relocated", "relocate"]

Inserted = Callable[[int], bytes]
"""Makes code that is inserted, for the address where it will be."""

_NO_CODE: Final[Mapping[int, Inserted]] = {}
_HALF, _MASK = 1 << 31, (1 << 64) - 1
_DISPLACED_STACK: Final = 8


class Origin(NamedTuple):
    """At `copy_address` the program is where it would be at `address`, with its stack pointer `stack_bytes` higher.
    `is_inserted`: inserted code begins there. `is_behind`: what was inserted in front of the instruction was executed.
    """

    copy_address: int
    address: int
    stack_bytes: int = 0
    is_inserted: bool = False
    is_behind: bool = False


class Relocated(NamedTuple):
    """The copy's bytes, and for each address in it at which an instruction begins where the program is then (`origins`,
    sorted). `starts` leads from the address of a displaced instruction to that of its copy, what is inserted in front
    of it included: to where a thread goes on that was to execute it."""

    address: int
    code: bytes
    starts: dict[int, int]
    origins: tuple[Origin, ...]

    def find_origin(self, copy_address: int) -> Origin | None:
        """Where the program is whose thread is at that address of the copy; within inserted code, in front of the
        instruction that it was inserted for. None outside of the copy."""
        if not self.address <= copy_address < self.address + len(self.code):
            return None
        return self.origins[bisect_right([origin.copy_address for origin in self.origins], copy_address) - 1]


def relocate(
    displaced: Sequence[Displaced],
    target_address: int,
    inserted: Mapping[int, Inserted] = _NO_CODE,
    inserted_taken: Mapping[int, Inserted] = _NO_CODE,
    *,
    has_origins: bool = True,
) -> Relocated:
    """A copy of `displaced`, which lie one behind the other, for `target_address`; it goes on behind the last of them.

    `inserted` is executed in front of the instructions of these indices, `inserted_taken` where conditional branches of
    these indices are taken. Where the program is in it is told only if it `has_origins`. Raises UsageError if an
    instruction can't be copied to there.
    """
    copy = _Copy(target_address, has_origins=has_origins)
    for index, one in enumerate(displaced):
        copy.add(one, inserted.get(index), inserted_taken.get(index))
    last = displaced[-1]
    if copy.goes_on:
        copy.note(last.end)
        copy.jump(last.end)
    return copy.finish(target_address)


class _Copy:
    """A copy as it grows."""

    def __init__(self, address: int, *, has_origins: bool) -> None:
        self._address, self._has_origins = address, has_origins
        self._code = bytearray()
        self._starts: dict[int, int] = {}
        self._origins: list[Origin] = []
        self._late: list[tuple[int, Inserted, int]] = []
        """Where a distance is to be filled in of a branch to code behind the copy, that code, and where it goes on."""
        self._pushed: list[tuple[int, int]] = []
        """Where the distance to a return address is to be filled in, and the address."""
        self.goes_on = True

    @property
    def _here(self) -> int:
        return self._address + len(self._code)

    def note(self, address: int, stack_bytes: int = 0, *, is_inserted: bool = False, is_behind: bool = False) -> None:
        """What comes next is where the program would be at that address."""
        if self._has_origins:
            self._origins.append(Origin(self._here, address, stack_bytes, is_inserted, is_behind))

    def add(self, displaced: Displaced, inserted: Inserted | None, inserted_taken: Inserted | None) -> None:
        """Add the copy of the next instruction."""
        address, code = displaced
        known = look_at(code)
        if known.is_plain and not self._pushed and not self._has_origins:
            self._starts[address] = self._here
            if inserted is not None:
                self._code += inserted(self._here)
            self._code += code
            self.goes_on = True
            return
        why = known.why
        if self._pushed:
            why = "is behind a call, which would return to where it was"
        if why is None and known.size != len(code):
            why = "is not as long as it was"
        if why is not None:
            raise UsageError(f"{address:#x}: the instruction {why}")
        self._starts[address] = self._here
        self.note(address, is_inserted=inserted is not None)
        if inserted is not None:
            self._code += inserted(self._here)
            self.note(address, is_behind=True)
        kind = known.kind
        self.goes_on = kind not in ENDS and kind not in CALLS
        if kind == Kind.JUMP:
            self.jump(_target_of(known, address))
        elif kind == Kind.CONDITIONAL:
            self._add_conditional(known, displaced, inserted_taken)
        elif kind in CALLS:
            self._add_call(known, displaced)
        else:
            self._code += self._moved(known, displaced, code)

    def jump(self, target: int) -> None:
        """Add a jump to an address."""
        if _is_near(target, self._here + 5):
            self._code += b"\xe9" + self._distance(target, self._here + 5)
        else:
            # jmp [rip]: the address lies behind it.
            self._code += b"\xff\x25" + bytes(4) + target.to_bytes(8, "little")

    def _distance(self, target: int, end: int) -> bytes:
        distance = target - end
        if not _is_near(target, end):
            raise UsageError(f"{target:#x} is too far from a copy at {self._address:#x}")
        return distance.to_bytes(4, "little", signed=True)

    def _moved(self, known: KnownInstruction, displaced: Displaced, code: bytes) -> bytes:
        """`code`, which is the instruction, or does something else with the same operand: it may name memory by its
        distance from the instruction's end."""
        if not known.names_memory:
            return code
        offset = known.field
        moved = self._here + len(code)
        if known.wraps:
            # Addresses of 32 bits wrap around, so all are within reach.
            distance = (int.from_bytes(code[offset : offset + 4], "little") + displaced.end - moved) % (1 << 32)
            field = distance.to_bytes(4, "little")
        else:
            field = self._distance(_target_of(known, displaced.address), moved)
        return code[:offset] + field + code[offset + 4 :]

    def _add_conditional(self, known: KnownInstruction, displaced: Displaced, inserted: Inserted | None) -> None:
        code, target = displaced.code, _target_of(known, displaced.address)
        at = opcode_at(code)
        opcode = code[at]
        if 0xE0 <= opcode <= 0xE3:
            # loop and jrcxz have a distance of one byte only: past a jump that leads on.
            self._code += code[: at + 1] + b"\x02"
            self.note(displaced.end)
            self._code += b"\xeb\x05"
            self.note(target)
            self._jump_taken(b"\xe9", target, inserted)
            return
        condition = code[at + 1] if opcode == 0x0F else opcode
        self._jump_taken(bytes((0x0F, 0x80 | condition & 0x0F)), target, inserted)

    def _jump_taken(self, opcode: bytes, target: int, inserted: Inserted | None) -> None:
        end = self._here + len(opcode) + 4
        if inserted is None and _is_near(target, end):
            self._code += opcode + self._distance(target, end)
        else:
            self._code += opcode + bytes(4)
            self._late.append((len(self._code) - 4, inserted or _nothing, target))

    def _add_call(self, known: KnownInstruction, displaced: Displaced) -> None:
        # push qword [rip + distance]: one store of all eight bytes, to where the call would store them.
        self._code += b"\xff\x35" + bytes(4)
        self._pushed.append((len(self._code) - 4, displaced.end))
        if known.kind == Kind.CALL:
            target = _target_of(known, displaced.address)
            self.note(target)
            self.jump(target)
            return
        # What it reads may be missing: then the call was not made.
        self.note(displaced.address, _DISPLACED_STACK)
        code = bytearray(displaced.code)
        at = opcode_at(displaced.code)
        code[at + 1] = code[at + 1] & 0xC7 | 4 << 3  # FF /2 is a call, FF /4 a jump.
        if known.is_on_stack:
            _raise_displacement(code, at + 1)
        self._code += self._moved(known, displaced, bytes(code))

    def finish(self, address: int) -> Relocated:
        """The whole copy, with what lies behind it."""
        for at, inserted, target in self._late:
            self._code[at : at + 4] = (len(self._code) - at - 4).to_bytes(4, "little")
            self.note(target, is_inserted=inserted is not _nothing)
            self._code += inserted(self._here)
            # What was inserted is not for the instruction there.
            self.note(target)
            self.jump(target)
        if self._pushed:
            # Read as a whole, so within one cache line.
            self._code += b"\xcc" * (-self._here % 8)
        for at, pushed in self._pushed:
            self._code[at : at + 4] = (len(self._code) - at - 4).to_bytes(4, "little")
            self._code += pushed.to_bytes(8, "little")
        return Relocated(address, bytes(self._code), self._starts, tuple(self._origins))


def _target_of(known: KnownInstruction, address: int) -> int:
    """Where an instruction at an address leads, or the memory that it names."""
    assert known.distance is not None
    return address + known.distance & _MASK


def _is_near(target: int, end: int) -> bool:
    """Whether a distance of four bytes leads to an address, from the end of an instruction."""
    return -_HALF <= target - end < _HALF


def _nothing(_: int) -> bytes:
    return b""


def _raise_displacement(code: bytearray, modrm: int) -> None:
    """Add to the distance from the stack pointer, in an operand that has it as its base, what was pushed."""
    mode = code[modrm] >> 6
    if mode == 2:
        value = int.from_bytes(code[modrm + 2 : modrm + 6], "little", signed=True) + _DISPLACED_STACK
    else:
        value = int.from_bytes(code[modrm + 2 : modrm + 3], "little", signed=True) if mode == 1 else 0
        value += _DISPLACED_STACK
    del code[modrm + 2 :]
    code[modrm] = code[modrm] & 0x3F | 2 << 6
    code += value.to_bytes(4, "little", signed=True)
