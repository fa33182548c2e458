"""Basic blocks, edges and counts of a single-stepped run, by an independent decoder and the definitions of the design.

Runs on the machine that tests. Pure: steps in, truth out. Shares no code with clew.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import capstone
import numpy as np
from capstone import x86_const as x86

from tests.oracle.steps import StepKind, Steps

MAX_INSTRUCTION_BYTES = 15
FAULTS = {4, 7, 8, 11}  # SIGILL, SIGBUS, SIGFPE, SIGSEGV

_LOOPS = {
    x86.X86_INS_LOOP,
    x86.X86_INS_LOOPE,
    x86.X86_INS_LOOPNE,
    x86.X86_INS_JRCXZ,
    x86.X86_INS_JECXZ,
    x86.X86_INS_JCXZ,
}
_STRINGS = {
    x86.X86_INS_MOVSB, x86.X86_INS_MOVSW, x86.X86_INS_MOVSD, x86.X86_INS_MOVSQ,
    x86.X86_INS_STOSB, x86.X86_INS_STOSW, x86.X86_INS_STOSD, x86.X86_INS_STOSQ,
    x86.X86_INS_LODSB, x86.X86_INS_LODSW, x86.X86_INS_LODSD, x86.X86_INS_LODSQ,
    x86.X86_INS_CMPSB, x86.X86_INS_CMPSW, x86.X86_INS_CMPSD, x86.X86_INS_CMPSQ,
    x86.X86_INS_SCASB, x86.X86_INS_SCASW, x86.X86_INS_SCASD, x86.X86_INS_SCASQ,
}  # fmt: skip


@dataclass(frozen=True)
class Instruction:
    """One decoded instruction. `flow` is what it does to the program counter: none, jump, conditional, call, ... ."""

    pc: int
    code: bytes
    flow: str
    is_repeated: bool

    @property
    def end(self) -> int:
        return self.pc + len(self.code)


@dataclass(frozen=True, order=True)
class BlockKey:
    """What a block is, wherever it was recorded: its first address and its bytes."""

    pc: int
    code: bytes

    def __str__(self) -> str:
        return f"{self.pc:#x}+{len(self.code)}"


@dataclass(frozen=True)
class EdgeKey:
    """An edge between two blocks; `source` is None for the start."""

    source: BlockKey | None
    target: BlockKey
    kind: str

    def __str__(self) -> str:
        return f"{self.source} -> {self.target} {self.kind}"


_known: dict[bytes, tuple[int, str, bool]] = {}
"""By the bytes that an instruction is the start of: its size, its flow, and whether it is repeated."""


class Decoder:
    """capstone, and what it says of one instruction's flow."""

    def __init__(self) -> None:
        self._capstone = capstone.Cs(capstone.CS_ARCH_X86, capstone.CS_MODE_64)
        self._capstone.detail = True

    def decode(self, pc: int, code: bytes) -> Instruction:
        """The instruction at the start of `code`; one of no bytes when there is none."""
        # All that is told but the address is of the bytes alone, of which programs have much in common.
        window = code[:MAX_INSTRUCTION_BYTES]
        if window not in _known:
            found = next(self._capstone.disasm(window, pc, count=1), None)
            if found is None:
                _known[window] = 0, "none", False
            else:
                _known[window] = found.size, self._flow(found), self._is_repeated(found)
        size_bytes, flow, is_repeated = _known[window]
        return Instruction(pc, window[:size_bytes], flow, is_repeated)

    def _is_repeated(self, found: capstone.CsInsn) -> bool:
        return found.id in _STRINGS and found.prefix[0] in (x86.X86_PREFIX_REP, x86.X86_PREFIX_REPNE)

    def _flow(self, found: capstone.CsInsn) -> str:
        direct = bool(found.operands) and found.operands[0].type == x86.X86_OP_IMM
        if found.id in _LOOPS:
            return "conditional"
        if found.id in (x86.X86_INS_SYSCALL, x86.X86_INS_SYSENTER) or (found.id == x86.X86_INS_INT and direct):
            return "syscall"
        if found.id in (x86.X86_INS_JMP, x86.X86_INS_LJMP):
            return "jump" if direct else "indirect_jump"
        if found.group(x86.X86_GRP_CALL):
            return "call" if direct else "indirect_call"
        if found.group(x86.X86_GRP_RET) or found.group(x86.X86_GRP_IRET):
            return "return"
        if found.group(x86.X86_GRP_JUMP):
            return "conditional"
        return "none"


class Truth:
    """What really ran. Built from steps; raises ValueError for a flow that no instruction explains."""

    def __init__(self, steps: Steps) -> None:
        self._decode(steps)
        self._trace(steps)
        self._count()

    def _decode(self, steps: Steps) -> None:
        """Instructions by number; the same bytes at the same address are one, whatever follows them."""
        decoder = Decoder()
        known: dict[tuple[int, bytes], int] = {}
        self.instructions: list[Instruction] = []
        self._number_of_code = np.zeros(len(steps.codes), dtype=np.int64)
        for index, entry in enumerate(steps.codes):
            found = decoder.decode(int(entry["pc"]), entry["bytes"].tobytes())
            number = known.setdefault((found.pc, found.code), len(self.instructions))
            if number == len(self.instructions):
                self.instructions.append(found)
            self._number_of_code[index] = number

    def _trace(self, steps: Steps) -> None:
        """The run as nodes (instructions that ran, or waited for a handler) and how each was left."""
        node: list[int] = []
        ran: list[bool] = []
        left_by: list[str] = []
        repeated = [found.is_repeated for found in self.instructions]
        was_step, how = False, "flow"
        for kind, value in zip(steps.kinds.tolist(), steps.values.tolist(), strict=True):
            if kind == StepKind.STEP:
                number = int(self._number_of_code[value])
                if left_by and node[-1] == number and left_by[-1] == "flow" and repeated[number]:
                    continue
                node.append(number)
                ran.append(True)
                left_by.append("flow")
            elif kind == StepKind.SIGNAL:
                number = int(self._number_of_code[value])
                was_step = bool(node) and node[-1] == number and left_by[-1] == "flow"
                if not was_step:
                    node.append(number)
                    ran.append(True)
                    left_by.append("flow")
            elif kind == StepKind.WHICH:
                code = value & 0xFFFFFFFF
                how = "fault" if was_step and value >> 32 in FAULTS and 0 < code < 0x8000_0000 else "signal"
            elif kind == StepKind.HANDLE:
                ran[-1], left_by[-1] = False, how
        if steps.kinds[-2] == StepKind.WHICH:  # the last signal ended the program before what waited could run
            ran[-1] = False
            if how == "signal":  # nothing came of what waited: the run ends with what was before
                del node[-1], ran[-1], left_by[-1]
        self._node = np.array(node, dtype=np.int64)
        self._ran = np.array(ran, dtype=bool)
        self._left_by = left_by

    def _count(self) -> None:
        n = len(self.instructions)
        self.executions = np.bincount(self._node[self._ran], minlength=n)
        links: Counter[tuple[int, int, str]] = Counter()
        flowing = np.array([how == "flow" for how in self._left_by[:-1]], dtype=bool)
        pairs = self._node[:-1] * n + self._node[1:]
        unique, counts = np.unique(pairs[flowing], return_counts=True)
        announced = {found.end for found, times in zip(self.instructions, self.executions, strict=True)
                     if times and found.flow in ("call", "indirect_call")}  # fmt: skip
        for pair, times in zip(unique.tolist(), counts.tolist(), strict=True):
            source, target = divmod(pair, n)
            links[source, target, self._kind(source, target, announced)] += times
        for at in np.nonzero(~flowing)[0].tolist():
            links[int(self._node[at]), int(self._node[at + 1]), self._left_by[at]] += 1
        self._links = links

    def _kind(self, source: int, target: int, announced: set[int]) -> str:
        here, there = self.instructions[source], self.instructions[target]
        match here.flow:
            case "conditional":
                return "not_taken" if there.pc == here.end else "taken"
            case "return":
                return "return" if there.pc in announced else "indirect_jump"
            case "syscall":
                return "syscall" if there.pc == here.end else "sigreturn"
            case "none" if there.pc == here.end:
                return "fall_through"
            case "none":
                raise ValueError(f"{here.pc:#x} {here.code.hex()} came to {there.pc:#x}")
            case flow:
                return flow

    @cached_property
    def _leaders(self) -> set[int]:
        leaders = {int(self._node[0])}
        predecessors: dict[int, set[int]] = defaultdict(set)
        for source, target, kind in self._links:
            if kind == "fall_through":
                predecessors[target].add(source)
            else:
                leaders.add(target)
            if kind in ("fault", "signal"):
                leaders.add(source)
        leaders.update(target for target, sources in predecessors.items() if len(sources) > 1)
        waited = self._node[~self._ran]
        leaders.update(int(number) for number in np.unique(waited))
        return leaders

    @cached_property
    def _block_of(self) -> dict[int, BlockKey]:
        """The block of each instruction, by number."""
        successor = {source: target for source, target, kind in self._links if kind == "fall_through"}
        block_of: dict[int, BlockKey] = {}
        for leader in self._leaders:
            members = [leader]
            # An instruction that never ran (it faulted each time, or only waited) is a block by itself.
            while self.executions[members[-1]] and members[-1] in successor:
                following = successor[members[-1]]
                if following in self._leaders:
                    break
                members.append(following)
            key = BlockKey(self.instructions[leader].pc, b"".join(self.instructions[m].code for m in members))
            for member in members:
                if block_of.setdefault(member, key) != key:
                    raise ValueError(f"{self.instructions[member].pc:#x} lies in two blocks")
        return block_of

    @cached_property
    def blocks(self) -> dict[BlockKey, tuple[int, int]]:
        """Executions and instructions of each block that ran."""
        blocks: dict[BlockKey, tuple[int, int]] = {}
        for number, key in self._block_of.items():
            times = int(self.executions[number])
            if times == 0:
                continue
            known, instructions = blocks.get(key, (times, 0))
            if known != times:
                raise ValueError(f"block {key}: its instructions ran {known} and {times} times")
            blocks[key] = (times, instructions + 1)
        return blocks

    @cached_property
    def edges(self) -> dict[EdgeKey, int]:
        """Times each edge was taken. A return runs from the block of its call."""
        calls: dict[int, BlockKey] = {}
        for number, key in sorted(self._block_of.items(), key=lambda item: item[1], reverse=True):
            found = self.instructions[number]
            if found.flow in ("call", "indirect_call") and self.executions[number]:
                calls[found.end] = key
        edges: Counter[EdgeKey] = Counter()
        edges[EdgeKey(None, self._block_of[int(self._node[0])], "start")] = 1
        for (source, target, kind), times in self._links.items():
            if kind == "fall_through" and target not in self._leaders:
                continue
            block = calls[self.instructions[target].pc] if kind == "return" else self._block_of[source]
            edges[EdgeKey(block, self._block_of[target], kind)] += times
        return dict(edges)

    @cached_property
    def instruction_counts(self) -> dict[BlockKey, int]:
        """Executions of each instruction: address and bytes, whatever lies around it."""
        counts: Counter[BlockKey] = Counter()
        for found, times in zip(self.instructions, self.executions.tolist(), strict=True):
            if times:
                counts[BlockKey(found.pc, found.code)] += times
        return dict(counts)

    @cached_property
    def branch_counts(self) -> dict[tuple[int, int], int]:
        """Times that control went from the instruction at one address to another address but by running on."""
        counts: Counter[tuple[int, int]] = Counter()
        for (source, target, kind), times in self._links.items():
            if kind != "fall_through":
                counts[self.instructions[source].pc, self.instructions[target].pc] += times
        return dict(counts)

    @property
    def path(self) -> Iterator[tuple[Instruction, bool, str]]:
        """Instructions in order: whether each ran, or only waited, and how it was left: flow, signal, fault."""
        for number, has_run, how in zip(self._node.tolist(), self._ran.tolist(), self._left_by, strict=True):
            yield self.instructions[number], has_run, how

    @property
    def total_instructions(self) -> int:
        """Instructions executed; a repeated string instruction is one."""
        return int(self.executions.sum())
