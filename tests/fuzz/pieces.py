"""Pieces: short sequences of instructions that belong together, at random.

Pure. A piece may be left out of a program, never cut. It leaves the stack pointer and the kept registers as it found
them, and is entered only at its first instruction.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.fuzz.instructions import AVX, AVX512, BMI, CONDITIONS, INTEGER, MMX, SSE
from tests.fuzz.operands import SCRATCH_BYTES, Kept, OperandSource
from tests.fuzz.registers import GENERAL, RAX, RBX, RCX, RDI, RDX, RSI, name

Piece = tuple[str, ...]

ARITHMETIC_FLAGS = 0x8D5  # CF PF AF ZF SF OF
# Numbers of system calls that do the same in every process and change nothing: sched_yield, getuid, an unknown one.
QUIET_SYSCALLS = (24, 102, 1000)


class PieceSource:
    """Chooses pieces for the processor features given ("bmi", "avx", "avx512").

    `is_stepped`: none that shows all flags, because a single-stepped program sees the trap flag among them.
    """

    def __init__(self, random: Random, operands: OperandSource, features: frozenset[str], *, is_stepped: bool) -> None:
        self.random = random
        self.operands = operands
        vectors = [SSE, SSE]
        vectors += [AVX, AVX] if "avx" in features else []
        vectors += [AVX512, AVX512] if "avx512" in features else []
        self.vectors = vectors
        self.integers = [INTEGER] * 9 + ([BMI] if "bmi" in features else [])
        self.has_avx512 = "avx512" in features
        self.kinds: tuple[tuple[int, Callable[[Kept], Piece | None]], ...] = (
            (40, self.integer),
            (16, self.vector),
            (4, self.flags_loaded),
            (0 if is_stepped else 3, self.flags_stored),
            (6, self.push_pop),
            (2, self.division),
            (3, self.string),
            (2, self.skip),
            (2, self.call_pop),
            (1, self.other_stack if operands.has_quiet_stack else self.red_zone),
            (1, self.red_zone),
            (1, self.mmx),
            (1, self.x87),
            (1, self.cpuid),
            (0 if is_stepped else 1, self.syscall),  # leaves the flags in r11
            (1, self.enter_leave),
            (1, self.segment_base),
            (1, self.gather if "avx" in features else self.integer),
        )

    def choose(self, kept: Kept) -> Piece:
        """A piece of any kind."""
        weights = [weight for weight, _ in self.kinds]
        makers = [maker for _, maker in self.kinds]
        while True:
            piece = self.random.choices(makers, weights)[0](kept)
            if piece is not None:
                return piece

    def integer(self, kept: Kept) -> Piece | None:
        text = self.operands.fill(self.random.choice(self.random.choice(self.integers)), kept)
        return None if text is None else (text,)

    def vector(self, kept: Kept) -> Piece | None:
        text = self.operands.fill(self.random.choice(self.random.choice(self.vectors)), kept)
        return None if text is None else (text,)

    def mmx(self, kept: Kept) -> Piece | None:
        lines = [self.operands.fill(self.random.choice(MMX), kept) for _ in range(self.random.randrange(1, 4))]
        return None if None in lines else (*[line for line in lines if line], "emms")

    def x87(self, kept: Kept) -> Piece:
        middle = self.random.choice(("fadd st, st", "fsqrt", "fchs", "fmul st, st", "fcos", "frndint", "fld1; faddp"))
        load = f"fild {self.operands.memory(kept, 32)}"
        store = self.random.choice(("fistp", "fstp")) + " " + self.operands.memory(kept, 32)
        return (load, middle, "fnstsw ax", store) if RAX not in kept.all else (load, middle, store)

    def flags_loaded(self, kept: Kept) -> Piece:
        load = (f"push {self.random.getrandbits(12) & ARITHMETIC_FLAGS:#x}", "popfq")
        used = self.operands.fill("set{cc} {D8}", kept)
        return load if used is None or self.random.random() < 0.5 else (*load, used)

    def flags_stored(self, kept: Kept) -> Piece:
        return ("pushfq", f"pop {name(self.operands.written(kept))}")

    def push_pop(self, kept: Kept) -> Piece:
        random, operands = self.random, self.operands
        pushed = (
            f"push {name(random.choice(GENERAL))}",
            "push rsp",
            f"push {operands.memory(kept, 64)}",
            f"push {random.randrange(-(1 << 31), 1 << 31)}",
            f"push {random.randrange(-128, 128)}",
        )
        popped = (
            f"pop {name(operands.written(kept))}",
            f"pop {operands.memory(kept, 64)}",
            "pop qword ptr [rsp+40]",
            "lea rsp, [rsp+8]",
        )
        count = random.randrange(1, 4)
        lines = [random.choice(pushed) for _ in range(count)]
        lines += [random.choice(popped) for _ in range(count)]
        if random.random() < 0.2:
            lines = [f"push {name(random.choice(GENERAL), 16)}", *lines, f"pop {name(operands.written(kept), 16)}"]
        return tuple(lines)

    def division(self, kept: Kept) -> Piece | None:
        if {RAX, RDX} & kept.all:
            return None
        divisor = self.operands.written(kept, (RCX, RBX, 8, 11))
        sign = self.random.choice((("xor edx, edx", "div"), ("cqo", "idiv")))
        return (f"and {name(divisor)}, 0xffff", f"or {name(divisor)}, 2", sign[0], f"{sign[1]} {name(divisor)}")

    def string(self, kept: Kept) -> Piece | None:
        random = self.random
        if {RAX, RCX, RSI, RDI} & kept.all:
            return None
        operation, prefixes = random.choice(
            (
                ("movs", ("", "rep ")),
                ("stos", ("", "rep ")),
                ("lods", ("", "rep ")),
                ("scas", ("", "repe ", "repne ")),
                ("cmps", ("", "repe ", "repne ")),
            )
        )
        backwards = random.random() < 0.3
        quarter = SCRATCH_BYTES // 4
        lines = [
            f"mov ecx, {random.choice((0, 1, 2, 7, 30))}",
            f"lea rsi, [rip+scratch+{quarter + random.randrange(quarter)}]",
            f"lea rdi, [rip+scratch+{2 * quarter + random.randrange(quarter)}]",
            random.choice(prefixes) + operation + random.choice("bwdq"),
        ]
        if backwards:
            lines.insert(random.randrange(4), "std")
            lines.append("cld")
        return tuple(lines)

    def skip(self, kept: Kept) -> Piece:
        """A branch over one instruction."""
        label = self.operands.fresh_label()
        branch = self.random.choice((f"j{self.random.choice(CONDITIONS)}", "jrcxz", "jecxz"))
        shape = "{disp32} " if branch not in ("jrcxz", "jecxz") and self.random.random() < 0.3 else ""
        inner = self.integer(kept) or ("nop",)
        return (f"{shape}{branch} {label}", *inner, f"{label}:")

    def call_pop(self, kept: Kept) -> Piece:
        label = self.operands.fresh_label()
        written = name(self.operands.written(kept))
        return self.random.choice(
            (
                (f"call {label}", f"{label}: pop {written}"),
                (f"lea {written}, [rip+{label}]", f"push {written}", "ret", f"{label}:"),
                (f"lea {written}, [rip+{label}]", f"push {written}", "ret 0", "ud2", f"{label}:"),
                (f"call {label}", f"{label}: lea rsp, [rsp+8]"),
            )
        )

    def red_zone(self, kept: Kept) -> Piece:
        place = f"[rsp-{self.random.randrange(8, 128)}]"
        inner = self.integer(kept) or ("nop",)
        written, read = name(self.operands.written(kept)), name(self.random.choice(GENERAL))
        return (f"mov {place}, {read}", *inner, f"mov {written}, {place}")

    def other_stack(self, kept: Kept) -> Piece:
        """The scratch memory as the stack."""
        base, pushed = name(kept.base), name(self.random.choice([r for r in GENERAL if r != kept.base]))
        return (f"xchg rsp, {base}", f"push {pushed}", f"pop {name(self.operands.written(kept))}", f"xchg {base}, rsp")

    def enter_leave(self, kept: Kept) -> Piece | None:
        if name(5) in {name(number) for number in kept.all}:
            return None
        return (
            f"enter {self.random.randrange(0, 200)}, 0",
            f"mov qword ptr [rbp-{self.random.randrange(8, 64)}], rsp",
            "leave",
        )

    def cpuid(self, kept: Kept) -> Piece | None:
        if {RAX, RBX, RCX, RDX} & kept.all:
            return None
        leaf = self.random.choice(("mov eax, 0; cpuid", "mov eax, 7; mov ecx, 0; cpuid", "mov ecx, 0; xgetbv"))
        return tuple(leaf.split("; "))

    def syscall(self, kept: Kept) -> Piece | None:
        if {RAX, RCX, 11} & kept.all:
            return None
        return (f"mov eax, {self.random.choice(QUIET_SYSCALLS)}", "syscall")

    def segment_base(self, kept: Kept) -> Piece:
        through = name(self.operands.written(kept))
        segment = self.random.choice(("fs", "gs"))
        inside = self.random.randrange(8, 64)
        moved = f"lea {through}, [{through}+{inside}]", f"lea {through}, [{through}-{inside}]"
        read, write = f"rd{segment}base {through}", f"wr{segment}base {through}"
        used = f"inc dword ptr {segment}:[{inside}]"
        return (read, moved[0], write, used, moved[1], write)

    def gather(self, kept: Kept) -> Piece:
        random = self.random
        index, mask, target = random.sample(range(16), 3)
        base = name(kept.base)
        if self.has_avx512 and random.random() < 0.5:
            into, k = 16 + target, random.randrange(1, 8)
            scatter = f"vpscatterdd [{base}+zmm{index}*4-128]{{k{k}}}, zmm{into}"
            gather = f"vpgatherdd zmm{into}{{k{k}}}, [{base}+zmm{index}*4-128]"
            return (f"vpsrld zmm{index}, zmm{index}, 26", f"kxnorw k{k}, k{k}, k{k}", random.choice((gather, scatter)))
        return (
            f"vpsrld ymm{index}, ymm{target}, 26",
            f"vpcmpeqd ymm{mask}, ymm{mask}, ymm{mask}",
            f"vgatherdps ymm{target}, [{base}+ymm{index}*4-128], ymm{mask}",
        )
