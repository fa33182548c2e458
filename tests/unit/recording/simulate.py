"""A made-up program run by an interpreter that knows the truth, and recorded as the runtime records.

The interpreter keeps what really happened, instruction by instruction (`Truth`), and at the same time plays the
runtime: it translates fragments where execution comes to, with size limits, counts exits, and writes records. What the
assembler makes of the records can then be compared with the truth, which never heard of fragments.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from clew.address import FileOffset, Pid, RemoteAddress, Tid
from clew.protocol import _generated as protocol
from clew.protocol._generated import EdgeKind, EndKind, ExitKind, Mode, RecordKind
from clew.recording.raw import RawImage, RawProcess, RawThread
from tests.unit.recording.made_up_program import BASE, Instruction, Program
from tests.unit.recording.made_up_records import record

__all__ = ["PID", "Runtime", "Truth", "make_runtime"]

NO_INDEX = 0xFFFFFFFF
PID = 4242
MAX_COUNTERS = 40_000

Step = tuple[int, int, str]
Return = tuple[int, int, int]


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


@dataclass
class Fragment:
    number: int
    instructions: list[Instruction]
    counter: int
    app_pc: int
    end_pc: int
    # Numbers of the fragments whose exits were linked to it.
    incoming: set[int] = field(default_factory=set)
    is_valid: bool = True


@dataclass
class Thread:
    tid: int
    parent_tid: int
    pc: int
    counters: npt.NDArray[np.uint64] = field(default_factory=lambda: np.zeros(MAX_COUNTERS, np.uint64))
    stack: list[Return] = field(default_factory=list)
    # Frames of signal handlers: where to resume, and how deep the stack was.
    frames: list[tuple[int, int]] = field(default_factory=list)
    records: list[bytes] = field(default_factory=list)
    end_kind: int = EndKind.UNKNOWN
    is_over: bool = False
    has_faulted: bool = False
    # What the truth has of how it came to `pc`, where nothing but what follows tells of it.
    arrival: Return | Step | None = None


def make_runtime(seed: int, **options: Any) -> Runtime:
    """A run of the program that `seed` stands for."""
    rng = random.Random(seed)
    return Runtime(Program(rng), rng, **options)


class Runtime:
    """Runs `program` as the runtime does and keeps the truth beside it."""

    def __init__(
        self,
        program: Program,
        rng: random.Random,
        *,
        max_steps: int = 1500,
        with_signals: bool = True,
        max_threads: int = 3,
        with_rewriting: bool = False,
        mode: Mode = Mode.COUNTS,
    ) -> None:
        self.program, self.rng, self.mode = program, rng, mode
        self.with_signals, self.max_threads, self.with_rewriting = with_signals, max_threads, with_rewriting
        self.truth = Truth()
        self.fragments: dict[int, Fragment] = {}
        self.by_number: list[Fragment] = []
        self.edges: dict[tuple[int, int, int, int], int] = {}
        self.links: set[tuple[int, int, int]] = set()
        # By return point, the number of a fragment whose call ends there.
        self.announced: dict[int, int] = {}
        self.n_counters = 0
        self.tsc = 1000
        self.limit = rng.choice([3, 5, 200])
        self.threads = [Thread(PID, 0, program.entry)]
        self._start(self.threads[0])
        steps = 0
        while steps < max_steps and not all(thread.is_over for thread in self.threads):
            thread = rng.choice([thread for thread in self.threads if not thread.is_over])
            if with_rewriting and rng.random() < 0.02:
                self._rewrite(thread)
            steps += self._run(thread)
        for thread in self.threads:
            self._settle(thread)
            thread.counters = thread.counters[: self.n_counters]

    def raw_process(self) -> RawProcess:
        """What a session would hand over."""
        records = b"".join(b"".join(thread.records) for thread in self.threads)
        status = np.zeros(1, protocol.STATUS_PAGE)
        status["start_tsc"], status["last_tsc"] = 1000, self.tsc + 1000
        status["start_ns"], status["last_ns"] = 5_000, 5_000 + self.tsc * 3
        threads = [
            RawThread(
                slot=index,
                tid=Tid(thread.tid),
                parent_tid=Tid(thread.parent_tid),
                name=f"thread {index}",
                start_tsc=1000,
                end_tsc=self.tsc if thread.end_kind else 0,
                end_kind=thread.end_kind,
                lost_records=0,
                counters=thread.counters,
            )
            for index, thread in enumerate(self.threads)
        ]
        image = RawImage("/made/up", RemoteAddress(BASE), RemoteAddress(BASE + (1 << 16)), FileOffset(0), 5, 0, 0)
        return RawProcess(
            pid=Pid(PID),
            parent_pid=Pid(1),
            executable="/made/up",
            command=["made-up"],
            start_ns=1_700_000_000_000_000_000,
            end_ns=1_700_000_001_000_000_000,
            exit_code=0,
            signal=None,
            mode=self.mode,
            initial_images=[image],
            records=np.frombuffer(records, np.uint8).reshape(-1, 64),
            threads=threads,
            status=status[0],
        )

    # What the runtime does.

    def _translate(self, thread: Thread, pc: int) -> Fragment:
        if pc in self.fragments:
            return self.fragments[pc]
        instructions: list[Instruction] = []
        at = pc
        while len(instructions) < self.limit and at in self.program.code:
            instructions.append(self.program.code[at])
            at = instructions[-1].end
            if instructions[-1].kind != "plain":
                break
        kind = _exit_kind(instructions[-1])
        counter = NO_INDEX
        if self.mode == Mode.COUNTS and kind not in (ExitKind.INDIRECT_JUMP, ExitKind.INDIRECT_CALL):
            counter = self._take_counters(2 if kind == ExitKind.CONDITIONAL else 1)
        fragment = Fragment(len(self.by_number), instructions, counter, pc, at)
        if kind in (ExitKind.CALL, ExitKind.INDIRECT_CALL):
            self.announced[at] = fragment.number
        self.fragments[pc] = fragment
        self.by_number.append(fragment)
        self._write_fragment(thread, fragment, kind)
        return fragment

    def _write_fragment(self, thread: Thread, fragment: Fragment, kind: ExitKind) -> None:
        size = fragment.end_pc - fragment.app_pc
        bits = np.zeros((size + 7) // 8 * 8, np.uint8)
        bits[[instruction.pc - fragment.app_pc for instruction in fragment.instructions]] = 1
        offset = fragment.app_pc - BASE
        payload = bytes(self.program.memory[offset : offset + size]) + np.packbits(bits, bitorder="little").tobytes()
        last = fragment.instructions[-1]
        has_target = kind in (ExitKind.JUMP, ExitKind.CONDITIONAL, ExitKind.CALL)
        thread.records.append(
            record(
                protocol.FRAGMENT_RECORD,
                payload,
                kind=RecordKind.FRAGMENT,
                tid=thread.tid,
                app_pc=fragment.app_pc,
                target_pc=last.targets[0] if has_target else 0,
                tsc=self._now(),
                fragment_id=fragment.number,
                counter_index=fragment.counter,
                size_bytes=size,
                n_instructions=len(fragment.instructions),
                exit_kind=kind,
                flags=2 if last.kind == "plain" else 0,
            )
        )

    def _now(self) -> int:
        self.tsc += 10
        return self.tsc

    def _take_counters(self, n: int) -> int:
        first = self.n_counters
        self.n_counters += n
        assert self.n_counters <= MAX_COUNTERS
        return first

    def _count_edge(self, thread: Thread, kind: EdgeKind, fragment: int, source: int, target: int) -> None:
        """Count an edge that is found at run time."""
        if kind in (EdgeKind.INDIRECT_CALL, EdgeKind.INDIRECT_JUMP) and target in self.program.code:
            self._translate(thread, target)
        key = (kind, fragment, source, target)
        if key not in self.edges:
            self.edges[key] = self._take_counters(1) if self.mode == Mode.COUNTS else NO_INDEX
            known = self.fragments.get(target)
            thread.records.append(
                record(
                    protocol.DYNAMIC_EDGE_RECORD,
                    kind=RecordKind.DYNAMIC_EDGE,
                    tid=thread.tid,
                    source_pc=source,
                    target_pc=target,
                    tsc=self._now(),
                    source_fragment_id=fragment,
                    target_fragment_id=NO_INDEX if known is None else known.number,
                    counter_index=self.edges[key],
                    edge_kind=kind,
                )
            )
        if self.mode == Mode.COUNTS:
            thread.counters[self.edges[key]] += 1

    def _take_exit(self, thread: Thread, fragment: Fragment, kind: EdgeKind, target: int) -> None:
        """Go out of a fragment by a direct exit, or by its return to a call's landing."""
        if self.mode == Mode.COUNTS and kind != EdgeKind.RETURN:
            thread.counters[fragment.counter + (kind == EdgeKind.NOT_TAKEN)] += 1
        if target not in self.program.code:
            return
        reached = self._translate(thread, target)
        if kind != EdgeKind.RETURN:
            reached.incoming.add(fragment.number)
        key = (fragment.number, kind, reached.number)
        if self.mode == Mode.COVERAGE and key not in self.links:
            self.links.add(key)
            thread.records.append(
                record(
                    protocol.LINK_RECORD,
                    kind=RecordKind.LINK,
                    tid=thread.tid,
                    source_pc=fragment.app_pc,
                    target_pc=target,
                    tsc=self._now(),
                    source_fragment_id=fragment.number,
                    target_fragment_id=reached.number,
                    edge_kind=kind,
                )
            )

    def _rewrite(self, thread: Thread) -> None:
        """The program rewrites a function: all that holds its code is dropped, and what was linked to that."""
        number = self.rng.randrange(len(self.program.rows) - 1)
        start, end = self.program.span(number)
        if any(start <= other.pc < end for other in self.threads):
            return
        self.program.rewrite(number)
        for fragment in list(self.fragments.values()):
            if fragment.app_pc < end and fragment.end_pc > start:
                self._drop(thread, fragment)
                for source in fragment.incoming:
                    self._drop(thread, self.by_number[source])

    def _drop(self, thread: Thread, fragment: Fragment) -> None:
        if not fragment.is_valid:
            return
        fragment.is_valid = False
        del self.fragments[fragment.app_pc]
        # Pads to it are taken out; what the dispatcher counts by itself stays.
        for key in [key for key in self.edges if key[3] == fragment.app_pc]:
            if key[0] in (EdgeKind.INDIRECT_CALL, EdgeKind.INDIRECT_JUMP):
                del self.edges[key]
        thread.records.append(
            record(
                protocol.INVALIDATE_RECORD,
                kind=RecordKind.INVALIDATE,
                tid=thread.tid,
                app_pc=fragment.app_pc,
                tsc=self._now(),
                fragment_id=fragment.number,
            )
        )

    # What the program does.

    def _start(self, thread: Thread) -> None:
        self._count_edge(thread, EdgeKind.START, NO_INDEX, 0, thread.pc)
        self._step(thread, 0, EdgeKind.START)

    def _step(self, thread: Thread, source: int, kind: EdgeKind) -> None:
        """The truth: from `source`, a name, to where the thread is now."""
        self.truth.steps[thread.tid][source, self.program.name(thread.pc), kind.name.lower()] += 1

    def _settle(self, thread: Thread) -> None:
        """A thread that was stopped: nobody counts a return, or the end of a system call, that nothing follows."""
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
            return 1
        arrival, thread.arrival = thread.arrival, None
        if self.with_signals and len(thread.frames) < 2 and rng.random() < 0.02:
            self._enter_handler(thread, EdgeKind.SIGNAL, thread.pc)
            return 1
        fragment = self._translate(thread, thread.pc)
        for instruction in fragment.instructions:
            name = program.name(instruction.pc)
            if instruction.may_fault and self.with_signals and len(thread.frames) < 2 and rng.random() < 0.1:
                is_first = instruction.pc == fragment.app_pc
                if not is_first:
                    self._count_edge(thread, EdgeKind.PARTIAL, fragment.number, fragment.app_pc, instruction.pc)
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
        self._leave(thread, fragment)
        return len(fragment.instructions)

    def _enter_handler(self, thread: Thread, kind: EdgeKind, pc: int) -> None:
        self._count_edge(thread, kind, NO_INDEX, pc, self.program.handler)
        thread.frames.append((pc, len(thread.stack)))
        thread.pc = self.program.handler
        self._step(thread, self.program.name(pc), kind)

    def _leave(self, thread: Thread, fragment: Fragment) -> None:
        rng, last = self.rng, fragment.instructions[-1]
        name = self.program.name(last.pc)
        if last.kind == "plain":
            thread.pc = last.end
            self._take_exit(thread, fragment, EdgeKind.FALL_THROUGH, last.end)
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
            self._take_exit(thread, fragment, kind, thread.pc)
            self._step(thread, name, kind)
            if kind == EdgeKind.CALL:
                self._push(thread, name, last.end)
        elif last.kind in ("indirect_call", "indirect_jump"):
            kind, thread.pc = EdgeKind[last.kind.upper()], rng.choice(last.targets)
            self._count_edge(thread, kind, fragment.number, fragment.app_pc, thread.pc)
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
            thread.counters[fragment.counter] += 1
        floor = thread.frames[-1][1] if thread.frames else 0
        call = callee = -1
        if last.kind == "push_ret" or len(thread.stack) <= floor:
            # A made-up return address. It may be one that a call announced: then it is a return like any other.
            thread.pc = self.rng.choice(last.targets) if last.targets else self.program.entry
        else:
            call, thread.pc, callee = thread.stack.pop()
        key = (EdgeKind.INDIRECT_JUMP, fragment.number, fragment.app_pc, thread.pc)
        if thread.pc not in self.announced or key in self.edges:
            self._count_edge(thread, EdgeKind.INDIRECT_JUMP, fragment.number, fragment.app_pc, thread.pc)
            self._step(thread, name, EdgeKind.INDIRECT_JUMP)
            return
        self._take_exit(thread, self.by_number[self.announced[thread.pc]], EdgeKind.RETURN, thread.pc)
        thread.arrival = (call, self.program.name(thread.pc), callee)
        self.truth.returns[thread.tid][thread.arrival] += 1

    def _call_system(self, thread: Thread, fragment: Fragment, last: Instruction) -> None:
        name = self.program.name(last.pc)
        if last.kind == "sigreturn" and thread.frames:
            if self.mode == Mode.COUNTS:
                thread.counters[fragment.counter] += 1
            thread.pc, depth = thread.frames.pop()
            del thread.stack[depth:]
            self._count_edge(thread, EdgeKind.SIGRETURN, fragment.number, last.pc, thread.pc)
            self._step(thread, name, EdgeKind.SIGRETURN)
        elif (last.kind == "exit" and not thread.frames) or last.end not in self.program.code:
            if self.mode == Mode.COUNTS:
                thread.counters[fragment.counter] += 1
            thread.end_kind = EndKind.EXIT
            thread.is_over = True
        else:
            self._take_exit(thread, fragment, EdgeKind.SYSCALL, last.end)
            thread.pc = last.end
            self._step(thread, name, EdgeKind.SYSCALL)
            thread.arrival = (name, self.program.name(last.end), "syscall")
            if last.kind == "syscall" and len(self.threads) < self.max_threads and self.rng.random() < 0.3:
                child = Thread(PID + len(self.threads), thread.tid, last.end)
                self.threads.append(child)
                self._start(child)


def _exit_kind(last: Instruction) -> ExitKind:
    kinds = {
        "plain": ExitKind.FALL_THROUGH,
        "return_": ExitKind.RETURN,
        "push_ret": ExitKind.RETURN,
        "exit": ExitKind.SYSCALL,
        "sigreturn": ExitKind.SYSCALL,
    }
    return kinds[last.kind] if last.kind in kinds else ExitKind[last.kind.upper()]
