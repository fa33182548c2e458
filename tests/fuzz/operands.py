"""Operands for the shapes of instructions.py.

Pure. Knows the memory that the frame (frame.py) provides, and which registers a block keeps for its addresses.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import count
from random import Random

from tests.fuzz.instructions import CONDITIONS
from tests.fuzz.registers import GENERAL, HIGH_BYTES, NAMES, RSP, name

SCRATCH_BYTES = 2048  # [scratch]; the base register of a block points to its middle
SEGMENT_BYTES = 1024  # what the fs base and the gs base point to

_WORD = re.compile(r"\{(\w+)\}")
_SIZES = {8: "byte", 16: "word", 32: "dword", 64: "qword", 128: "xmmword", 256: "ymmword", 512: "zmmword"}
_NO_OPERAND = frozenset({"1to2", "1to4", "1to8", "1to16"})  # EVEX decorations, as the assembler writes them


@dataclass(frozen=True)
class Kept:
    """Registers that a block leaves alone: base points into the scratch memory, index is 16 times -1 to 3."""

    base: int
    index: int
    others: frozenset[int] = frozenset()

    @property
    def all(self) -> frozenset[int]:
        return self.others | {self.base, self.index}


class OperandSource:
    """Chooses operands.

    `is_fixed`: the program lies below 4 GiB, so that 32-bit addresses reach its memory. `has_quiet_stack`: nothing but
    the program writes below the stack pointer, so that what is there may be read.
    """

    def __init__(self, random: Random, is_fixed: bool, has_quiet_stack: bool) -> None:
        self.random = random
        self.is_fixed = is_fixed
        self.has_quiet_stack = has_quiet_stack
        self._labels = count()

    def fresh_label(self) -> str:
        """A label that nothing else in the program has."""
        return f".L{next(self._labels)}"

    def written(self, kept: Kept, among: tuple[int, ...] = GENERAL) -> int:
        """A register that may be written."""
        return self.random.choice([number for number in among if number not in kept.all])

    def address(self, kept: Kept, alignment_bytes: int = 1, is_plain: bool = False) -> str:
        """An address in brackets with up to 64 accessible bytes behind it, with a segment in front where it has one."""
        random = self.random
        step = max(alignment_bytes, 1)
        form = random.randrange(12 if not is_plain else 3)
        base, index = name(kept.base), name(kept.index)
        if form < 3:
            return f"[rip+scratch+{random.randrange(0, SCRATCH_BYTES - 64, step)}]"
        displacement = random.choice((0, random.randrange(-128, 128, step), random.randrange(-400, 400, step)))
        displacement -= displacement % step
        if form < 5:
            return f"[{base}{displacement:+d}]"
        if form < 8 and step <= 16:
            return f"[{base}+{index}*{random.choice((1, 2, 4, 8))}{displacement:+d}]"
        if form == 8 and step == 1:
            above = f"[rsp+{random.randrange(128)}]"
            return random.choice((above, f"[rsp-{random.randrange(64, 128)}]")) if self.has_quiet_stack else above
        if form == 9 and step == 1:
            return f"[rsp+{index}*{random.choice((1, 2, 4))}+{random.randrange(64, 128)}]"
        if form == 10 and step <= 16:
            segment = random.choice(("fs", "gs", "gs"))
            inside = random.randrange(128, SEGMENT_BYTES - 512, step)
            return random.choice((f"{segment}:{inside}", f"{segment}:[{index}*{random.choice((1, 2, 4, 8))}+{inside}]"))
        if form == 11 and self.is_fixed:
            low = random.choice(
                (f"[{name(kept.base, 32)}{displacement:+d}]", f"[eip+scratch+{64 * random.randrange(30)}]")
            )
            return random.choice((low, f"ds:[scratch+{64 * random.randrange(30)}]"))
        return f"[{base}{displacement:+d}]"

    def memory(self, kept: Kept, bits: int, is_aligned: bool = False, is_plain: bool = False) -> str:
        """A memory operand of so many bits."""
        return f"{_SIZES[bits]} ptr {self.address(kept, bits // 8 if is_aligned else 1, is_plain)}"

    def fill(self, shape: str, kept: Kept) -> str | None:
        """One instruction of that shape; None where it would write a register that the block keeps."""
        text, _, implicit = shape.partition(" ! ")
        if any(NAMES[64].index(register) in kept.all for register in implicit.split()):
            return None
        try:
            return _WORD.sub(lambda word: self._operand(word.group(1), kept), text)
        except IndexError:  # nothing left to choose from
            return None

    def _operand(self, kind: str, kept: Kept) -> str:
        random = self.random
        if kind in _NO_OPERAND:
            return f"{{{kind}}}"
        letter, rest = kind[0], kind[1:]
        if rest.isdigit():
            return self._sized(letter, int(rest), kept)
        match kind:
            case "cc":
                return random.choice(CONDITIONS)
            case "l8w":
                return name(self.written(kept, (0, 1, 2, 3)), 8)
            case "x" | "y" | "z":
                return f"{letter}mm{random.randrange(16)}"
            case "X" | "Y" | "Z":
                return f"{letter.lower()}mm{random.randrange(32)}"
            case "xa":
                return self._either(f"xmm{random.randrange(16)}", self.memory(kept, 128, is_aligned=True))
            case "xu" | "yu":
                return self._either(
                    f"{letter}mm{random.randrange(16)}", self.memory(kept, 128 if letter == "x" else 256)
                )
            case "XU" | "YU" | "ZU":
                bits = {"X": 128, "Y": 256, "Z": 512}[letter]
                return self._either(f"{letter.lower()}mm{random.randrange(32)}", self.memory(kept, bits))
            case "k":
                return f"k{random.randrange(8)}"
            case "K":
                return random.choice(("", f"{{k{random.randrange(1, 8)}}}", f"{{k{random.randrange(1, 8)}}}{{z}}"))
            case "J":
                return random.choice(("", f"{{k{random.randrange(1, 8)}}}"))
            case "mm":
                return f"mm{random.randrange(8)}"
        raise ValueError(f"no such operand: {kind}")

    def _either(self, register: str, memory: str) -> str:
        return self.random.choice((register, memory))

    def _sized(self, letter: str, bits: int, kept: Kept) -> str:
        random = self.random
        match letter:
            case "d":
                return name(self.written(kept), bits)
            case "e":
                return name(self.written(kept, (0, 1, 2, 3)), bits)
            case "s":
                return name(random.choice(GENERAL if random.random() < 0.95 else (RSP,)), bits)
            case "D":
                return self._either(name(self.written(kept), bits), self.memory(kept, bits))
            case "S":
                return self._either(name(random.choice(GENERAL), bits), self.memory(kept, bits))
            case "m":
                return self.memory(kept, bits)
            case "a":
                return self.memory(kept, bits, is_aligned=True)
            case "n":
                return self.memory(kept, bits, is_plain=True)
            case "h":
                return HIGH_BYTES[self.written(kept, (0, 1, 2, 3))]
            case "l":
                return random.choice((*HIGH_BYTES, *NAMES[8][:4]))
            case "f":
                return self._either(f"xmm{random.randrange(16)}", self.memory(kept, bits))
            case "b":
                return str(random.randrange(1 << bits))
            case "i":
                return self._immediate(bits)
        raise ValueError(f"no such operand: {letter}{bits}")

    def _immediate(self, bits: int) -> str:
        """Signed, but 64-bit ones. 8-bit ones are for operands of any width; so are 16-bit ones of 16 bits and more."""
        random = self.random
        if bits == 64:
            return hex(random.getrandbits(64))
        limit = 1 << (bits - 1)
        return str(random.choice((0, 1, -1, limit - 1, -limit, random.randrange(-limit, limit))))
