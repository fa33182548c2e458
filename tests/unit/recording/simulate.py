"""A made-up program run by an interpreter that knows the truth, and recorded as the runtime records.

The interpreter keeps what really happened, instruction by instruction (`Truth`), and at the same time tells a stand-in
for the runtime where execution goes. What the assembler makes of its records can then be compared with the truth, which
never heard of fragments.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from clew.protocol._generated import NO_INDEX, EdgeKind, EndKind, Mode
from clew.recording.raw.process import RawProcess
from tests.unit.recording.made_up_program import Instruction, Program
from tests.unit.recording.made_up_recorder import PID, Fragment, Recorder, Return, Step, Thread

__all__ = ["PID", "Runtime", "Truth", "make_runtime"]


@dataclass
class Truth:
    """What happened, by thread. Instructions are named as `Program.name` does.

    `steps` go from one instruction to the next by kind, "next" along the straight line; of a signal or fault the source
    is the one that waits or faulted. `returns` are (call, return point, callee). `pending` is where a thread had got to
    but ran nothing any more.
    """

    executed: defaultdict[int, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    steps: defaultdict[int, Counter[Step]] = field(default_factory=lambda: defaultdict(Counter))
    returns: defaultdict[int, Counter[Return]] = field(default_factory=lambda: defaultdict(Counter))
    faulted: set[int] = field(default_factory=set)
    pending: dict[int, int] = field(default_factory=dict)


def make_runtime(seed: int, **options: Any) -> Runtime:
    """A run of the program that `seed` stands for."""
    rng = random.Random(seed)
    return Runtime(Program(rng), rng, **options)


class Runtime:
    """Runs `program`, has it recorded, and keeps the truth beside it."""

    def __init__(
        self,
        program: Program,
        rng: random.Random,
        *,
        max_steps: int = 1500,
        with_signals: bool = True,
        max_threads: int = 3,
        with_rewriting: bool = False,
        with_stops: bool = False,
        with_leaders: bool = True,
        mode: Mode = Mode.COUNTS,
    ) -> None:
        self.program, self.rng, self.mode = program, rng, mode
        self.with_signals, self.with_stops, self.max_threads = with_signals, with_stops, max_threads
        self.truth = Truth()
        self.recorder = Recorder(program, mode, rng.choice([3, 5, 200]), with_leaders)
        self.threads = self.recorder.threads
        self.threads.append(Thread(PID, 0, program.entry))
        self._start(self.threads[0])
        steps = 0
        while steps < max_steps and not all(thread.is_over for thread in self.threads):
            thread = rng.choice([thread for thread in self.threads if not thread.is_over])
            if with_rewriting and rng.random() < 0.02:
                self._rewrite(thread)
            steps += self._run(thread)
        for thread in self.threads:
            self._settle(thread)
            thread.counters = thread.counters[: self.recorder.n_counters]

    def raw_process(self) -> RawProcess:
        """What a session would hand over."""
        return self.recorder.raw_process()

    def _rewrite(self, thread: Thread) -> None:
        """The program rewrites a function."""
        number = self.rng.randrange(len(self.program.rows) - 1)
        start, end = self.program.span(number)
        # Who was stopped inside a fragment goes on in other code.
        if any(start <= other.pc < end and not other.stopped_after for other in self.threads):
            return
        self.program.rewrite(number)
        self.recorder.drop_code(thread, start, end)

    def _start(self, thread: Thread) -> None:
        self.recorder.count_edge(thread, EdgeKind.START, NO_INDEX, 0, thread.pc)
        self._step(thread, 0, EdgeKind.START)

    def _step(self, thread: Thread, source: int, kind: EdgeKind) -> None:
        """The truth: from `source`, a name, to where the thread is now."""
        self.truth.steps[thread.tid][source, self.program.name(thread.pc), kind.name.lower()] += 1

    def _resume(self, thread: Thread) -> None:
        """A thread that was stopped inside a fragment goes on with what is there by now."""
        if thread.stopped_after:
            name = self.program.name(thread.pc)
            self.truth.steps[thread.tid][thread.stopped_after, name, "next"] += 1
            self.truth.faulted.add(name)
            thread.stopped_after = 0

    def _settle(self, thread: Thread) -> None:
        """A thread that was stopped: nobody counts a return, or the end of a system call, that nothing follows."""
        self.recorder.go_elsewhere(thread)
        if thread.stopped_after:
            thread.has_faulted = True
            self._resume(thread)
        if thread.end_kind == EndKind.UNKNOWN and not thread.has_faulted:
            self.truth.pending[thread.tid] = thread.pc
        if thread.arrival is not None:
            if isinstance(thread.arrival[2], int):
                self.truth.returns[thread.tid][thread.arrival] -= 1
            else:
                self.truth.steps[thread.tid][thread.arrival] -= 1

    def _run(self, thread: Thread) -> int:
        """Run `thread` through one fragment; the number of instructions."""
        rng, program = self.rng, self.program
        if rng.random() < 0.0005:
            thread.is_over = True  # Killed before it runs on.
            self.recorder.go_elsewhere(thread)
            return 1
        self._resume(thread)
        arrival, thread.arrival = thread.arrival, None
        if self.with_signals and len(thread.frames) < 2 and rng.random() < 0.02:
            self.recorder.go_elsewhere(thread)
            self._enter_handler(thread, EdgeKind.SIGNAL, thread.pc)
            return 1
        fragment = self.recorder.translate(thread, thread.pc)
        self.recorder.enter(thread, fragment)
        before = 0
        for instruction in fragment.instructions:
            name = program.name(instruction.pc)
            if self.with_stops and before and rng.random() < 0.05:
                self.recorder.take_back(thread, fragment)
                self.recorder.count_edge(thread, EdgeKind.PARTIAL, fragment.number, fragment.app_pc, instruction.pc)
                self.truth.steps[thread.tid][before, name, "next"] -= 1
                thread.pc, thread.stopped_after = instruction.pc, before
                return 1
            if instruction.may_fault and self.with_signals and len(thread.frames) < 2 and rng.random() < 0.1:
                is_first = instruction.pc == fragment.app_pc
                self.recorder.take_back(thread, fragment)
                if not is_first:
                    self.recorder.count_edge(thread, EdgeKind.PARTIAL, fragment.number, fragment.app_pc, instruction.pc)
                if rng.random() < 0.02:
                    thread.is_over = True  # Nothing handles it.
                    if is_first:
                        thread.arrival = arrival  # Nothing tells that it came here.
                    else:
                        thread.has_faulted = True
                        self.truth.faulted.add(name)
                    return 1
                self._enter_handler(thread, EdgeKind.FAULT, instruction.pc)
                return 1
            self.truth.executed[thread.tid][name] += 1
            if instruction is not fragment.instructions[-1]:
                self.truth.steps[thread.tid][name, program.name(instruction.end), "next"] += 1
            before = name
        self._leave(thread, fragment)
        return len(fragment.instructions)

    def _enter_handler(self, thread: Thread, kind: EdgeKind, pc: int) -> None:
        self.recorder.count_edge(thread, kind, NO_INDEX, pc, self.program.handler)
        thread.frames.append((pc, len(thread.stack)))
        thread.pc = self.program.handler
        self._step(thread, self.program.name(pc), kind)

    def _leave(self, thread: Thread, fragment: Fragment) -> None:
        rng, last = self.rng, fragment.instructions[-1]
        name = self.program.name(last.pc)
        if last.kind == "plain":
            thread.pc = last.end
            self.recorder.take_exit(thread, fragment, EdgeKind.FALL_THROUGH, last.end)
            if last.end in self.program.code:
                self.truth.steps[thread.tid][name, self.program.name(last.end), "next"] += 1
            else:
                self._step(thread, name, EdgeKind.FALL_THROUGH)
                thread.is_over = True  # Killed by running into nothing.
        elif last.kind in ("conditional", "jump", "call"):
            kind, thread.pc = (
                EdgeKind[last.kind.upper()] if last.kind != "conditional" else EdgeKind.TAKEN,
                last.targets[0],
            )
            if last.kind == "conditional" and rng.random() < 0.5:
                kind, thread.pc = EdgeKind.NOT_TAKEN, last.end
            self.recorder.take_exit(thread, fragment, kind, thread.pc)
            self._step(thread, name, kind)
            if kind == EdgeKind.CALL:
                self._push(thread, name, last.end)
        elif last.kind in ("indirect_call", "indirect_jump"):
            kind, thread.pc = EdgeKind[last.kind.upper()], rng.choice(last.targets)
            self.recorder.count_edge(thread, kind, fragment.number, fragment.app_pc, thread.pc)
            self._step(thread, name, kind)
            if kind == EdgeKind.INDIRECT_CALL:
                self._push(thread, name, last.end)
        elif last.kind in ("return_", "push_ret"):
            self._return(thread, fragment, last)
        else:
            self._call_system(thread, fragment, last)

    def _push(self, thread: Thread, call: int, return_pc: int) -> None:
        thread.stack.append((call, return_pc, self.program.name(thread.pc)))
        # The stack is full: the thread ends.
        thread.is_over = len(thread.stack) > 200

    def _return(self, thread: Thread, fragment: Fragment, last: Instruction) -> None:
        name = self.program.name(last.pc)
        if self.mode == Mode.COUNTS:
            self.recorder.count(thread, fragment)
        floor = thread.frames[-1][1] if thread.frames else 0
        call = callee = -1
        if last.kind == "push_ret" or len(thread.stack) <= floor:
            # A made-up return address. It may be one that a call announced: then it is a return like any other.
            thread.pc = self.rng.choice(last.targets) if last.targets else self.program.entry
        else:
            call, thread.pc, callee = thread.stack.pop()
        key = (EdgeKind.INDIRECT_JUMP, fragment.number, fragment.app_pc, thread.pc)
        if thread.pc not in self.recorder.announced or key in self.recorder.edges:
            self.recorder.count_edge(thread, EdgeKind.INDIRECT_JUMP, fragment.number, fragment.app_pc, thread.pc)
            self._step(thread, name, EdgeKind.INDIRECT_JUMP)
            return
        self.recorder.take_exit(
            thread, self.recorder.by_number[self.recorder.announced[thread.pc]], EdgeKind.RETURN, thread.pc
        )
        thread.arrival = (call, self.program.name(thread.pc), callee)
        self.truth.returns[thread.tid][thread.arrival] += 1

    def _call_system(self, thread: Thread, fragment: Fragment, last: Instruction) -> None:
        name = self.program.name(last.pc)
        if last.kind == "sigreturn" and thread.frames:
            if self.mode == Mode.COUNTS:
                self.recorder.count(thread, fragment)
            thread.pc, depth = thread.frames.pop()
            del thread.stack[depth:]
            self.recorder.count_edge(thread, EdgeKind.SIGRETURN, fragment.number, last.pc, thread.pc)
            self._step(thread, name, EdgeKind.SIGRETURN)
        elif (last.kind == "exit" and not thread.frames) or last.end not in self.program.code:
            if self.mode == Mode.COUNTS:
                self.recorder.count(thread, fragment)
            thread.end_kind = EndKind.EXIT
            thread.is_over = True
        else:
            self.recorder.take_exit(thread, fragment, EdgeKind.SYSCALL, last.end)
            thread.pc = last.end
            self._step(thread, name, EdgeKind.SYSCALL)
            thread.arrival = (name, self.program.name(last.end), "syscall")
            if last.kind == "syscall" and len(self.threads) < self.max_threads and self.rng.random() < 0.3:
                child = Thread(PID + len(self.threads), thread.tid, last.end)
                self.threads.append(child)
                self._start(child)
