"""How blocks end: branches of every kind, and what bounds them.

Pure. Knows blocks and functions by their labels only. A way back, and every call, uses up fuel (a counter in memory):
when it is at its end the program goes straight on, so every program ends. Counting fuel changes no flags.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.fuzz.instructions import CONDITIONS
from tests.fuzz.operands import Kept, OperandSource
from tests.fuzz.pieces import Piece
from tests.fuzz.registers import GENERAL, R10, R11, RAX, RCX, name

TABLE_ENTRIES = 8
# Registers that a translator may want for itself come more often.
_LIKELY = (RAX, RCX, R10, R11, R10, R11)


@dataclass(frozen=True)
class Surroundings:
    """What a block may branch to: `ahead` are labels of later blocks (the next one first), `behind` of this and earlier
    ones; `callees` are later functions' labels, with the bytes of arguments that they drop."""

    ahead: tuple[str, ...]
    behind: tuple[str, ...]
    callees: tuple[tuple[str, int], ...]


class FlowSource:
    """Chooses ends of blocks. `tables` collects jump tables: label and the labels it holds."""

    def __init__(self, random: Random, operands: OperandSource, tables: list[tuple[str, tuple[str, ...]]]) -> None:
        self.random = random
        self.operands = operands
        self.tables = tables

    def choose(self, around: Surroundings, kept: Kept) -> Piece:
        """The last piece of a block. It may change any register but the stack pointer."""
        random = self.random
        makers = [self.conditional, self.conditional, self.forward, self.indirect_jump, self.indirect_jump, self.pushed]
        makers += [self.backward, self.backward, self.register_zero]
        if around.callees:
            makers += [self.call, self.call, self.indirect_call, self.indirect_call]
        return random.choice(makers)(around, kept)

    def fueled(self, transfer: Piece) -> Piece:
        """`transfer`, if there is fuel. rcx and flags are there as before."""
        empty = self.operands.fresh_label()
        return (
            "mov [rip+kept_rcx], rcx",
            "mov rcx, [rip+fuel]",
            "lea rcx, [rcx-1]",
            f"jrcxz {empty}",
            "mov [rip+fuel], rcx",
            "mov rcx, [rip+kept_rcx]",
            *transfer,
            f"{empty}: mov rcx, [rip+kept_rcx]",
        )

    def _register(self) -> int:
        return self.random.choice((*_LIKELY, *GENERAL))

    def conditional(self, around: Surroundings, kept: Kept) -> Piece:
        shape = self.random.choice(("", "{disp32} "))
        return (f"{shape}j{self.random.choice(CONDITIONS)} {self.random.choice(around.ahead)}",)

    def register_zero(self, around: Surroundings, kept: Kept) -> Piece:
        """jrcxz and the loop instructions, ahead; they reach only near, so there is a jump in between."""
        label, out = self.operands.fresh_label(), self.operands.fresh_label()
        branch = self.random.choice(("jrcxz", "jecxz", "loop", "loope", "loopne"))
        return (f"{branch} {label}", f"jmp {out}", f"{label}: jmp {self.random.choice(around.ahead)}", f"{out}:")

    def forward(self, around: Surroundings, kept: Kept) -> Piece:
        junk = self.random.choice(((), (".byte 0x06, 0x0f, 0xff",), (".skip 150, 0xcc",)))
        return (self.random.choice(("jmp ", "{disp32} jmp ")) + self.random.choice(around.ahead), *junk)

    def backward(self, around: Surroundings, kept: Kept) -> Piece:
        out = self.operands.fresh_label()
        target = self.random.choice(around.behind)
        condition = self.random.choice(CONDITIONS)
        transfer = self.random.choice(((f"jmp {target}",), (f"j{condition} {target}", f"jmp {out}")))
        return (*self.fueled(transfer), f"{out}:")

    def _table(self, entries: tuple[str, ...]) -> str:
        label = f"table{len(self.tables)}"
        self.tables.append((label, tuple(self.random.choice(entries) for _ in range(TABLE_ENTRIES))))
        return label

    def _target(self, entries: tuple[str, ...]) -> tuple[Piece, str]:
        """Code that makes a target, and the operand that has it. Flags live in about half of the cases."""
        random = self.random
        number = self._register()
        register, narrow = name(number), name(number, 32)
        if random.random() < 0.3:
            spot = f"[rip+spot+{8 * random.randrange(8)}]"
            lines = (f"lea {register}, [rip+{random.choice(entries)}]",)
            return random.choice(
                (
                    (lines, register),
                    ((*lines, f"mov {spot}, {register}"), f"qword ptr {spot}"),
                    ((*lines, f"mov [rsp-16], {register}"), "qword ptr [rsp-16]"),
                    ((*lines, f"mov [rsp+24], {register}"), "qword ptr [rsp+24]"),
                    ((*lines, f"mov fs:[40], {register}"), "qword ptr fs:[40]"),
                    ((*lines, f"mov gs:[48], {register}"), "qword ptr gs:[48]"),
                )
            )
        table = self._table(entries)
        other = name(random.choice([each for each in (*_LIKELY, *GENERAL) if each != number]))
        source = name(random.choice(GENERAL), 32)
        choose: Piece
        if random.random() < 0.7:
            choose = (f"mov [rip+spot], {source}", f"movzx {narrow}, byte ptr [rip+spot+{random.randrange(4)}]")
            if self.operands.is_fixed:
                choose = (*choose, f"movzx {narrow}, byte ptr [{register}+modulo]")
            else:
                choose = (*choose, f"lea {other}, [rip+modulo]", f"movzx {narrow}, byte ptr [{other}+{register}]")
        else:
            choose = (f"mov {narrow}, {source}", f"and {narrow}, {TABLE_ENTRIES - 1}")
        if self.operands.is_fixed and random.random() < 0.5:
            return choose, f"qword ptr [{register}*8+{table}]"
        lines = (*choose, f"lea {other}, [rip+{table}]")
        operand = f"[{other}+{register}*8]"
        if random.random() < 0.4:
            return (*lines, f"mov {other}, {operand}"), other
        return lines, f"qword ptr {operand}"

    def indirect_jump(self, around: Surroundings, kept: Kept) -> Piece:
        lines, operand = self._target(around.ahead)
        prefixes = ("", "", "bnd ") if "s:" in operand else ("", "", "bnd ", "notrack ")
        return (*lines, f"{self.random.choice(prefixes)}jmp {operand}")

    def pushed(self, around: Surroundings, kept: Kept) -> Piece:
        """push and ret; pop and jmp."""
        target, register = self.random.choice(around.ahead), name(self._register())
        drop = self.random.choice((8, 16, 24))
        return self.random.choice(
            (
                (
                    f"lea {register}, [rip+{target}]",
                    f"push {register}",
                    self.random.choice(("ret", "rep ret", "bnd ret")),
                ),
                (f"lea rsp, [rsp-{drop}]", f"lea {register}, [rip+{target}]", f"push {register}", f"ret {drop}"),
                (f"lea {register}, [rip+{target}]", f"push {register}", f"pop {register}", f"jmp {register}"),
                (f"lea {register}, [rip+{target}]", f"push {register}", "lea rsp, [rsp+8]", "jmp [rsp-8]"),
            )
        )

    def _after_call(self, around: Surroundings) -> Piece:
        return (f"jmp {around.ahead[0]}",)

    def call(self, around: Surroundings, kept: Kept) -> Piece:
        callee, drop = self.random.choice(around.callees)
        arguments = tuple(f"push {name(self.random.choice(GENERAL))}" for _ in range(drop // 8))
        plain = (f"{self.random.choice(('', '', 'bnd '))}call {callee}",)
        through = self.operands.fresh_label()
        register = name(self._register())
        tail = (f"call {through}", f"jmp {around.ahead[0]}", f"{through}: jmp {callee}")
        back = self.operands.fresh_label()
        made = (f"lea {register}, [rip+{back}]", f"push {register}", f"jmp {callee}", f"{back}:")
        return self.fueled((*arguments, *self.random.choice((plain, plain, tail, made)), *self._after_call(around)))

    def indirect_call(self, around: Surroundings, kept: Kept) -> Piece:
        _, drop = self.random.choice(around.callees)
        callees = tuple(label for label, dropped in around.callees if dropped == drop)
        arguments = tuple(f"push {self.random.randrange(1 << 31)}" for _ in range(drop // 8))
        lines, operand = self._target(callees)
        short = self.operands.fresh_label()
        # The fuel's branch reaches only near: the call stands outside.
        out = self.operands.fresh_label()
        guard = self.fueled((f"jmp {short}",))
        return (*guard, f"jmp {out}", f"{short}:", *arguments, *lines, f"call {operand}", f"{out}:")
