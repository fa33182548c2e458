"""Instructions that fault, and branches to where no code is.

Pure. Each site names where the program's handler lets it go on: an entry of the table `faults` (address that the
handler sees, address to go on at), which frame.py's handler searches.
"""

from __future__ import annotations

from itertools import count
from random import Random

from tests.fuzz.operands import Kept, OperandSource
from tests.fuzz.pieces import ARITHMETIC_FLAGS, Piece
from tests.fuzz.registers import RAX, RCX, RDI, RDX, RSI, name

AFTER_TRAP = ("nop",)
NON_CANONICAL = 0x8000_0000_0000_0000
FIRST_HOLE = 0x10000  # nothing is mapped there, nor for some MiB behind


def _entry(seen: str, then: str) -> Piece:
    return ('.pushsection .data.faults, "aw"', f".quad {seen}, {then}", ".popsection")


class FaultSource:
    """Chooses faulting pieces."""

    def __init__(self, random: Random, operands: OperandSource) -> None:
        self.random = random
        self.operands = operands
        self._holes = count(FIRST_HOLE, 16)

    def choose(self, kept: Kept) -> Piece:
        """A piece with one fault (or none, where the operands' values decide)."""
        random = self.random
        return random.choice((self._simple, self._simple, self._address, self._address, self._branch, self._string))(
            kept
        )

    def _site(self, before: Piece, faulting: str) -> Piece:
        site, then = self.operands.fresh_label(), self.operands.fresh_label()
        return (*before, f"{site}: {faulting}", f"{then}:", *self._flags(), *_entry(site, then))

    def _flags(self) -> Piece:
        return (f"push {self.random.getrandbits(12) & ARITHMETIC_FLAGS:#x}", "popfq")

    def _simple(self, kept: Kept) -> Piece:
        base = name(kept.base)
        faulting = self.random.choice(
            (
                "ud2",
                "hlt",
                "ud1 eax, ecx",
                ".byte 0x06",
                ".byte 0xf0, 0x90",  # lock nop
                "in al, dx",
                "cli",
                "mov cr0, rax",
                f"movaps xmm3, [{base}+1]",
                f"movntdq [{base}+8], xmm4",
                f"paddd xmm9, [{base}+4]",
                f"lock cmpxchg16b [{base}+8]",
                "mov rax, qword ptr ds:0x3000" if RAX not in kept.all else "ud2",
                "add dword ptr ds:0x3008, ecx",
                "push qword ptr ds:0x3010",
                "inc byte ptr gs:0x7ff0000",
                "mov qword ptr fs:0x7ff0000, rcx",
            )
        )
        if RAX not in kept.all and RDX not in kept.all and self.random.random() < 0.2:
            return self._site((), f"{self.random.choice(('div', 'idiv'))} {self.operands.memory(kept, 32)}")
        if self.random.random() < 0.1:
            # A trap: seen behind the instruction.
            then = self.operands.fresh_label()
            # What follows must not fault itself: the two would look alike.
            return ("int3", f"{then}: {self.random.choice(AFTER_TRAP)}", *_entry(then, then))
        return self._site((), faulting)

    def _address(self, kept: Kept) -> Piece:
        random = self.random
        number = self.operands.written(kept)
        wild, other = name(number), random.choice([each for each in range(16) if each not in (number, 4, *kept.all)])
        value = random.choice((NON_CANONICAL + random.randrange(4096), random.randrange(0x1000, 0x4000)))
        faulting = random.choice(
            (
                f"mov [{wild}], {name(other)}",
                f"add {name(other, 32)}, [{wild}+64]",
                f"push qword ptr [{wild}]",
                f"pop qword ptr [{wild}]",
                f"cmp byte ptr [{wild}+8], 3",
                f"lock xadd [{wild}], {name(other)}",
                f"movups xmm1, [{wild}+{wild}]",
                f"vmovdqu [{wild}], ymm2",
                f"imul {name(other)}, [{wild}], 7",
                f"mov {name(other)}, gs:[{wild}+16]",
                f"or qword ptr gs:[{wild}], 1",
                f"sete [{wild}]",
                f"shl dword ptr [{wild}], cl",
                f"adc {name(other)}, [{wild}]",
                f"call [{wild}]",
                f"jmp [{wild}]",
            )
        )
        if "gs:" in faulting:  # small offsets lie in the program's memory
            value = NON_CANONICAL
        return self._site((f"mov {wild}, {value}",), faulting)

    def _branch(self, kept: Kept) -> Piece:
        random = self.random
        register = name(self.operands.written(kept))
        hole, then, back = next(self._holes), self.operands.fresh_label(), self.operands.fresh_label()
        resumed = (f"{then}: ret", f"{back}:")
        jump = random.choice(
            (
                (f"mov {register}, {hole}", f"call {register}", f"jmp {back}", *resumed),
                (
                    f"lea {register}, [rip+{back}]",
                    f"push {register}",
                    f"mov {register}, {hole}",
                    f"jmp {register}",
                    *resumed,
                ),
                (f"lea {register}, [rip+{back}]", f"push {register}", f"push {hole}", "ret", *resumed),
            )
        )
        return (*jump, *self._flags(), *_entry(str(hole), then))

    def _string(self, kept: Kept) -> Piece:
        """A repeated string instruction that runs into a page that may not be accessed."""
        if {RAX, RCX, RSI, RDI} & kept.all:
            return self._simple(kept)
        inside = self.random.randrange(1, 40)
        operation = self.random.choice(("rep movsb", "rep stosb", "repne scasb", "rep lodsb", "rep movsd"))
        register, other = ("rsi", "rdi") if operation == "rep lodsb" else ("rdi", "rsi")
        return self._site(
            ("mov ecx, 200", f"lea {register}, [rip+guard-{inside}]", f"lea {other}, [rip+scratch+64]", "mov al, 0xa5"),
            operation,
        )
