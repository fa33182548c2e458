"""A made-up program: a random control-flow graph over a few kilobytes of made-up code."""

from __future__ import annotations

import random
from dataclasses import dataclass

BASE = 0x55550000
VERSION_SHIFT = 48

_KINDS = ["plain", "conditional", "jump", "call", "indirect_call", "indirect_jump", "syscall", "return_", "push_ret"]
_WEIGHTS = [50, 18, 4, 6, 3, 3, 5, 6, 1]


@dataclass(frozen=True)
class Instruction:
    """One instruction. `kind` is plain, or says how it ends a block; `targets` where it may go."""

    pc: int
    size: int
    kind: str
    targets: tuple[int, ...] = ()
    may_fault: bool = False

    @property
    def end(self) -> int:
        return self.pc + self.size


class Program:
    """Functions of random code; the last one is the handler of signals.

    `code[pc]` is the instruction that decoding at `pc` finds. Now and then an instruction has a prefix that may be
    jumped over: decoding finds another one a byte later. A function can be rewritten: other instructions and bytes in
    the same places. `history` has every instruction there ever was, by its name.
    """

    def __init__(self, rng: random.Random, n_functions: int = 5) -> None:
        self.rng = rng
        self.code: dict[int, Instruction] = {}
        self.history: dict[int, Instruction] = {}
        self.memory = bytearray(1 << 16)
        self.rows: list[list[tuple[int, int, bool]]] = []
        at = BASE
        for _ in range(n_functions + 1):
            rows = []
            for _ in range(rng.randint(3, 24)):
                size = rng.randint(2, 7)
                rows.append((at, size, rng.random() < 0.08))
                at += size
            self.rows.append(rows)
            at += rng.randint(0, 5)
        self.functions = [[pc for pc, _, _ in rows] for rows in self.rows]
        self.entry, self.handler = self.functions[0][0], self.functions[-1][0]
        self.versions = [0] * len(self.rows)
        self.snapshots: dict[tuple[int, int], bytes] = {}
        self._function_of = {pc + more: number for number, rows in enumerate(self.rows) for pc, _, _ in rows
                             for more in (0, 1)}  # fmt: skip
        for number in range(len(self.rows)):
            self._write(number)

    def name(self, pc: int) -> int:
        """The instruction that is at `pc` now: its address, and above it the version of its function."""
        number = self._function_of.get(pc)
        return pc if number is None else pc + (self.versions[number] << VERSION_SHIFT)

    def find_names(self, pc: int, code: bytes) -> list[int]:
        """Names of the instructions at `pc` in those versions of the program that have `code` there."""
        number = self._function_of.get(pc)
        if number is None:
            return [pc]
        start, _ = self.span(number)
        return [
            pc + (version << VERSION_SHIFT)
            for version in range(self.versions[number] + 1)
            if self.snapshots[number, version][pc - start :].startswith(code)
        ]

    def span(self, number: int) -> tuple[int, int]:
        """Addresses of a function: the first, and the first after it."""
        rows = self.rows[number]
        return rows[0][0], rows[-1][0] + rows[-1][1]

    def rewrite(self, number: int) -> None:
        """Other instructions in the places of a function's, with other bytes."""
        self.versions[number] += 1
        self._write(number)

    def _write(self, number: int) -> None:
        start, end = self.span(number)
        code = self.rng.randbytes(end - start)
        self.memory[start - BASE : end - BASE] = code
        self.snapshots[number, self.versions[number]] = code
        rows = self.rows[number]
        for index, (pc, size, is_prefixed) in enumerate(rows):
            instruction = self._make(number, pc, size, is_last=index == len(rows) - 1)
            self.code[pc] = self.history[self.name(pc)] = instruction
            if is_prefixed:
                other = Instruction(pc + 1, size - 1, instruction.kind, instruction.targets, instruction.may_fault)
                self.code[pc + 1] = self.history[self.name(pc + 1)] = other

    def _make(self, number: int, pc: int, size: int, *, is_last: bool) -> Instruction:
        rng = self.rng
        is_handler = number == len(self.rows) - 1
        if is_last:
            kind = "sigreturn" if is_handler else rng.choices(["return_", "jump", "exit"], [20, 6, 1])[0]
        else:
            kind = rng.choices(_KINDS, _WEIGHTS)[0]
            if is_handler and kind in ("return_", "push_ret", "indirect_jump"):
                kind = "plain"
        own, others = self.functions[number], self.functions[:-1]
        targets: tuple[int, ...] = ()
        if kind in ("conditional", "jump"):
            target, _, is_prefixed = rng.choice(self.rows[number])
            targets = (target + (is_prefixed and rng.random() < 0.5),)
        elif kind == "call":
            targets = (rng.choice(others)[0],)
        elif kind == "indirect_call":
            targets = tuple(rng.choice(others)[0] for _ in range(rng.randint(1, 3)))
        elif kind in ("indirect_jump", "push_ret"):
            targets = tuple(rng.choice(own) for _ in range(rng.randint(1, 3)))
        may_fault = kind in ("plain", "return_", "call") and rng.random() < 0.1
        return Instruction(pc, size, kind, targets, may_fault)
