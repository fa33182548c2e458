"""A random program: functions made of blocks made of pieces, always the same for one seed.

Pure. Knows nothing of how it is framed, assembled and run. Whatever is left out of it (whole bodies of functions and
blocks, single pieces), what is left still runs and ends.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum
from random import Random

from tests.fuzz.faults import FaultSource
from tests.fuzz.flow import FlowSource, Surroundings
from tests.fuzz.operands import Kept, OperandSource
from tests.fuzz.pieces import Piece, PieceSource
from tests.fuzz.registers import GENERAL, R10, R11, RCX, name

FRAME_BYTES = 512  # of the stack, above the stack pointer, that a function's operands may name


class Variant(Enum):
    """What happens to the program while it runs."""

    PLAIN = "plain"
    TIMER = "timer"  # a signal every 200 us
    FAULTS = "faults"  # faults at many instructions, and a handler that goes on behind them


@dataclass(frozen=True)
class Block:
    """`head` and `tail` stand around the body and loop over it; `end` is the branch to other blocks."""

    label: str
    setup: Piece
    head: Piece
    body: tuple[Piece, ...]
    tail: Piece
    end: Piece

    def lines(self) -> tuple[str, ...]:
        inner = tuple(line for piece in self.body for line in piece)
        return (f"{self.label}:", *self.head, *self.setup, *inner, *self.tail, *self.end)


@dataclass(frozen=True)
class Function:
    """`drop`: bytes of arguments it takes from the stack as it returns."""

    label: str
    drop: int
    enter: Piece
    blocks: tuple[Block, ...]
    leave: Piece

    def lines(self) -> tuple[str, ...]:
        inner = tuple(line for block in self.blocks for line in block.lines())
        return (
            f"{self.label}:",
            *self.enter,
            *inner,
            f"{self.label}_end:",
            f"lea rsp, [rsp+{FRAME_BYTES}]",
            *self.leave,
        )


@dataclass(frozen=True)
class Program:
    """A whole program. `is_fixed`: linked at a fixed low address; otherwise position independent. `is_stepped`: to be
    single-stepped, so that it never looks at the trap flag."""

    seed: int
    variant: Variant
    is_fixed: bool
    has_alternate_stack: bool
    is_stepped: bool
    repetitions: int
    features: frozenset[str]
    functions: tuple[Function, ...]
    tables: tuple[tuple[str, tuple[str, ...]], ...] = field(default=())

    def with_functions(self, functions: tuple[Function, ...]) -> Program:
        return replace(self, functions=functions)

    @property
    def n_pieces(self) -> int:
        return sum(len(block.body) + bool(block.end) for function in self.functions for block in function.blocks)


class _Maker:
    def __init__(
        self,
        random: Random,
        variant: Variant,
        *,
        is_fixed: bool,
        has_alternate_stack: bool,
        is_stepped: bool,
        features: frozenset[str],
    ) -> None:
        self.random = random
        self.variant = variant
        self.operands = OperandSource(random, is_fixed, has_alternate_stack)
        self.pieces = PieceSource(random, self.operands, features, is_stepped=is_stepped)
        self.faults = FaultSource(random, self.operands)
        self.tables: list[tuple[str, tuple[str, ...]]] = []
        self.flow = FlowSource(random, self.operands, self.tables)

    def function(self, index: int, drops: list[int]) -> Function:
        label = f"function{index}"
        callees = tuple((f"function{later}", drops[later]) for later in range(index + 1, len(drops)))
        near = callees[:12]
        n_blocks = self.random.randrange(2, 9)
        labels = [f"{label}_block{number}" for number in range(n_blocks)]
        blocks = []
        for number, each in enumerate(labels):
            ahead = (*labels[number + 1 :], f"{label}_end")
            blocks.append(self.block(each, Surroundings(ahead, tuple(labels[: number + 1]), near)))
        enter = [f"lea rsp, [rsp-{FRAME_BYTES}]"]
        if not self.operands.has_quiet_stack:
            enter += [f"mov qword ptr [rsp+{inside}], 0" for inside in range(0, FRAME_BYTES, 8)]
        return Function(label, drops[index], tuple(enter), tuple(blocks), self.leave(drops[index]))

    def block(self, label: str, around: Surroundings) -> Block:
        random = self.random
        base, index = random.sample(GENERAL, 2)
        kept = Kept(base, index)
        setup = [f"lea {name(base)}, [rip+scratch+1024]", f"mov {name(index)}, {random.choice((-16, 0, 16, 32, 48))}"]
        random.shuffle(setup)
        is_loop = random.random() < 0.2
        head: Piece = ()
        tail: Piece = ()
        size = random.choice((0, 1, 2, 4, 8, 12, 30 if not is_loop else 5))
        if is_loop:
            head, tail, counter = self.loop(kept)
            kept = Kept(base, index, frozenset({counter}))
        body = tuple(self.piece(kept) for _ in range(size))
        end: Piece = self.flow.choose(around, kept) if random.random() < 0.9 else ()
        return Block(label, tuple(setup), head, body, tail, end)

    def piece(self, kept: Kept) -> Piece:
        if self.variant is Variant.FAULTS and self.random.random() < 0.08:
            return self.faults.choose(kept)
        return self.pieces.choose(kept)

    def loop(self, kept: Kept) -> tuple[Piece, Piece, int]:
        """Counted by a register: what starts it, what ends it, and the register."""
        random = self.random
        again, times = self.operands.fresh_label(), random.choice((1, 2, 3, 10, 50))
        counter = self.operands.written(kept, (RCX, RCX, R10, R11, *GENERAL))
        count = name(counter)
        ways: list[Piece] = [
            (f"dec {count}", f"jnz {again}"),
            (f"sub {name(counter, 32)}, 1", f"ja {again}"),
            (f"add {count}, -1", f"jne {again}"),
            (f"lea {count}, [{count}-1]", f"test {count}, {count}", f"jg {again}"),
        ]
        if counter == RCX:
            far, out = self.operands.fresh_label(), self.operands.fresh_label()
            ways += [
                (f"loop{random.choice(('', 'e', 'ne'))} {far}", f"jmp {out}", f"{far}: jmp {again}", f"{out}:"),
                ("lea rcx, [rcx-1]", f"jrcxz {out}", f"jmp {again}", f"{out}:"),
            ]
        return (f"mov {name(counter, 32)}, {times}", f"{again}:"), random.choice(ways), counter

    def leave(self, drop: int) -> Piece:
        random = self.random
        if drop:
            return (f"ret {drop}",)
        register = name(random.choice((RCX, R10, R11, *GENERAL)))
        return random.choice(
            (
                ("ret",),
                ("ret",),
                ("ret",),
                ("rep ret",),
                ("bnd ret",),
                (f"pop {register}", f"jmp {register}"),
                (f"pop {register}", f"push {register}", "ret"),
                ("lea rsp, [rsp+8]", "jmp [rsp-8]"),
                (f"mov {register}, [rsp]", "push [rsp]", "ret 8"),
            )
        )


def make_program(seed: int, features: frozenset[str], n_functions: int = 40, variant: Variant | None = None) -> Program:
    """The program of that seed. `features`: any of "bmi", "avx", "avx512"."""
    random = Random(seed)
    chosen = random.choices((Variant.PLAIN, Variant.TIMER, Variant.FAULTS), (5, 3, 3))[0]
    variant = variant or chosen
    has_alternate_stack = variant is not Variant.TIMER or random.random() < 0.5
    repetitions = 60 if variant is Variant.TIMER else random.choice((1, 3, 8))
    return _make(random, seed, features, n_functions, variant, has_alternate_stack, repetitions, is_stepped=False)


def make_stepped_program(seed: int, n_functions: int = 20) -> Program:
    """The program of that seed for single-stepping: of integer instructions, which every decoder knows."""
    return _make(Random(seed), seed, frozenset({"bmi"}), n_functions, Variant.PLAIN, True, 2, is_stepped=True)


def _make(
    random: Random,
    seed: int,
    features: frozenset[str],
    n_functions: int,
    variant: Variant,
    has_alternate_stack: bool,
    repetitions: int,
    *,
    is_stepped: bool,
) -> Program:
    is_fixed = random.random() < 0.5
    maker = _Maker(
        random,
        variant,
        is_fixed=is_fixed,
        has_alternate_stack=has_alternate_stack,
        is_stepped=is_stepped,
        features=features,
    )
    drops = [0] + [random.choice((0, 0, 0, 0, 8, 16, 24)) for _ in range(n_functions - 1)]
    functions = tuple(maker.function(index, drops) for index in range(n_functions))
    return Program(
        seed=seed,
        variant=variant,
        is_fixed=is_fixed,
        has_alternate_stack=has_alternate_stack,
        is_stepped=is_stepped,
        repetitions=repetitions,
        features=features,
        functions=functions,
        tables=tuple(maker.tables),
    )
