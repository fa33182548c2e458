"""A made-up program, run by an interpreter that knows the truth, and recorded as the runtime records.

The program is a random control-flow graph over a few kilobytes of made-up code. The interpreter keeps what really
happened, instruction by instruction (`Truth`), and at the same time plays the runtime: it translates fragments where
execution comes to, with size limits, counts exits, and writes records. What the assembler makes of the records can
then be compared with the truth, which never heard of fragments.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field

import numpy as np

from clew.address import FileOffset, Pid, RemoteAddress, Tid
from clew.protocol import _generated as protocol
from clew.protocol._generated import EdgeKind, EndKind, EventKind, ExitKind, Mode, RecordKind
from clew.recording.raw import RawImage, RawProcess, RawThread, SessionInfo

BASE = 0x55550000
NO_INDEX = 0xFFFFFFFF
PID = 4242
HANDLER = "handler"


@dataclass(frozen=True)
class Instruction:
    """One instruction. `kind` is plain, or an ExitKind's name; `targets` where it may go."""

    pc: int
    size: int
    kind: str
    targets: tuple[int, ...] = ()
    may_fault: bool = False

    @property
    def end(self) -> int:
        return self.pc + self.size


class Program:
    """Functions of random code. `code[pc]` is the instruction that decoding at `pc` finds.

    Now and then an instruction has a prefix that may be jumped over: decoding finds another one a byte later.
    """

    def __init__(self, rng: random.Random, n_functions: int = 5) -> None:
        self.rng = rng
        self.code: dict[int, Instruction] = {}
        self.memory = bytearray(rng.randbytes(1 << 16))
        self.functions: list[list[int]] = []
        at = BASE
        layout: list[list[tuple[int, int, bool]]] = []
        for _ in range(n_functions + 1):
            rows = []
            for _ in range(rng.randint(3, 24)):
                size = rng.randint(2, 7)
                rows.append((at, size, rng.random() < 0.08))
                at += size
            layout.append(rows)
            at += rng.randint(0, 5)
        self.end = at
        self.functions = [[pc for pc, _, _ in rows] for rows in layout]
        self.handler = self.functions[-1][0]
        for number, rows in enumerate(layout):
            is_handler = number == n_functions
            for index, (pc, size, is_prefixed) in enumerate(rows):
                is_last = index == len(rows) - 1
                self._add(number, pc, size, is_prefixed, is_last, is_handler)

    def _add(self, number: int, pc: int, size: int, is_prefixed: bool, is_last: bool, is_handler: bool) -> None:
        rng = self.rng
        own, others = self.functions[number], self.functions[:-1]
        targets: tuple[int, ...] = ()
        if is_last:
            kind = "sigreturn" if is_handler else rng.choices(["return_", "jump", "exit"], [20, 6, 1])[0]
        else:
            kind = rng.choices(
                [
                    "plain",
                    "conditional",
                    "jump",
                    "call",
                    "indirect_call",
                    "indirect_jump",
                    "syscall",
                    "return_",
                    "push_ret",
                ],
                [50, 18, 4, 6, 3, 3, 5, 6, 1],
            )[0]
            if is_handler and kind in ("return_", "push_ret", "indirect_jump"):
                kind = "plain"

        def place() -> int:
            target = rng.choice(own)
            return target + 1 if target + 1 in self.code else target

        if kind in ("conditional", "jump"):
            targets = (place(),)
        elif kind == "call":
            targets = (rng.choice(others)[0],)
        elif kind == "indirect_call":
            targets = tuple(rng.choice(others)[0] for _ in range(rng.randint(1, 3)))
        elif kind in ("indirect_jump", "push_ret"):
            targets = tuple(rng.choice(own) for _ in range(rng.randint(1, 3)))
        may_fault = kind in ("plain", "return_", "call") and rng.random() < 0.1
        self.code[pc] = Instruction(pc, size, kind, targets, may_fault)
        if is_prefixed:
            self.code[pc + 1] = Instruction(pc + 1, size - 1, kind, targets, may_fault)


@dataclass
class Truth:
    """What happened, by thread: executions of instructions, and steps from one to the next by kind."""

    executed: dict[int, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    # (source, target, kind): source is the last instruction before; for signal and fault the one that waits or faulted
    steps: dict[int, Counter[tuple[int, int, str]]] = field(default_factory=lambda: defaultdict(Counter))
    # (call instruction, return point, callee)
    returns: dict[int, Counter[tuple[int, int, int]]] = field(default_factory=lambda: defaultdict(Counter))
    faulted: set[int] = field(default_factory=set)
    # Where a thread had got to, but ran nothing any more.
    pending: dict[int, int] = field(default_factory=dict)


@dataclass
class Fragment:
    number: int
    instructions: list[Instruction]
    is_limited: bool
    counter: int
    app_pc: int
    end_pc: int


@dataclass
class Thread:
    tid: int
    parent_tid: int
    pc: int
    counters: np.ndarray
    stack: list[tuple[int, int, int]] = field(default_factory=list)
    # Frames of signal handlers: where to resume, and how deep the stack was.
    frames: list[tuple[int, int]] = field(default_factory=list)
    records: list[bytes] = field(default_factory=list)
    end_kind: int = EndKind.UNKNOWN
    is_over: bool = False
    # How it came to `pc`, if nothing was counted yet since: undone in the truth if it never runs on.
    has_faulted: bool = False
    arrival: tuple[str, tuple[int, int, int] | tuple[int, int, str]] | None = None


class Runtime:
    """Runs `program` as the runtime does and keeps the truth beside it."""

    def __init__(
        self, program: Program, rng: random.Random, *, max_steps: int, with_signals: bool, max_threads: int
    ) -> None:
        self.program, self.rng = program, rng
        self.with_signals, self.max_threads = with_signals, max_threads
        self.truth = Truth()
        self.fragments: dict[int, Fragment] = {}
        self.by_number: list[Fragment] = []
        self.edges: dict[tuple[int, int, int, int], int] = {}
        self.announced: set[int] = set()
        self.n_counters = 0
        self.tsc = 1000
        self.threads = [Thread(PID, 0, program.functions[0][0], np.zeros(20000, np.uint64))]
        self.limit = rng.choice([3, 5, 200])
        self._start(self.threads[0])
        steps = 0
        while steps < max_steps and any(not thread.is_over for thread in self.threads):
            thread = rng.choice([thread for thread in self.threads if not thread.is_over])
            steps += self.run(thread)
        for thread in self.threads:
            self.settle(thread)
            thread.counters = thread.counters[: self.n_counters]

    def settle(self, thread: Thread) -> None:
        """A thread that was stopped: nobody counts a return, or the end of a system call, that nothing follows."""
        if thread.end_kind == EndKind.UNKNOWN and not thread.has_faulted:
            self.truth.pending[thread.tid] = thread.pc
        if thread.arrival is not None:
            sort, key = thread.arrival
            counter = self.truth.returns if sort == "return" else self.truth.steps
            counter[thread.tid][key] -= 1  # type: ignore[index]

    def take_counters(self, n: int) -> int:
        first = self.n_counters
        self.n_counters += n
        assert self.n_counters <= 20000
        return first

    def translate(self, thread: Thread, pc: int) -> Fragment:
        if pc in self.fragments:
            return self.fragments[pc]
        instructions = []
        at = pc
        while len(instructions) < self.limit:
            instruction = self.program.code.get(at)
            if instruction is None:
                break
            instructions.append(instruction)
            at = instruction.end
            if instruction.kind != "plain":
                break
        last = instructions[-1]
        is_limited = last.kind == "plain"
        kind = _exit_kind(last)
        counter = NO_INDEX
        if kind not in (ExitKind.INDIRECT_JUMP, ExitKind.INDIRECT_CALL):
            counter = self.take_counters(2 if kind == ExitKind.CONDITIONAL else 1)
        if kind in (ExitKind.CALL, ExitKind.INDIRECT_CALL):
            self.announced.add(last.end)
        fragment = Fragment(len(self.by_number), instructions, is_limited, counter, pc, at)
        self.fragments[pc] = fragment
        self.by_number.append(fragment)
        self.write_fragment(thread, fragment, kind)
        return fragment

    def write_fragment(self, thread: Thread, fragment: Fragment, kind: ExitKind) -> None:
        size = fragment.end_pc - fragment.app_pc
        bits = np.zeros((size + 7) // 8 * 8, np.uint8)
        for instruction in fragment.instructions:
            bits[instruction.pc - fragment.app_pc] = 1
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
                tsc=self.now(),
                fragment_id=fragment.number,
                counter_index=fragment.counter,
                size_bytes=size,
                n_instructions=len(fragment.instructions),
                exit_kind=kind,
                flags=2 if fragment.is_limited else 0,
            )
        )

    def now(self) -> int:
        self.tsc += 10
        return self.tsc

    def count(self, thread: Thread, kind: EdgeKind, fragment: int, source: int, target: int) -> None:
        key = (kind, fragment, source, target)
        if key not in self.edges:
            self.edges[key] = self.take_counters(1)
            known = self.fragments.get(target)
            thread.records.append(
                record(
                    protocol.DYNAMIC_EDGE_RECORD,
                    kind=RecordKind.DYNAMIC_EDGE,
                    tid=thread.tid,
                    source_pc=source,
                    target_pc=target,
                    tsc=self.now(),
                    source_fragment_id=fragment,
                    target_fragment_id=NO_INDEX if known is None else known.number,
                    counter_index=self.edges[key],
                    edge_kind=kind,
                )
            )
        thread.counters[self.edges[key]] += 1

    def step(self, thread: Thread, source: int, target: int, kind: EdgeKind) -> None:
        self.truth.steps[thread.tid][source, target, kind.name.lower()] += 1

    def _start(self, thread: Thread) -> None:
        self.count(thread, EdgeKind.START, NO_INDEX, 0, thread.pc)
        self.step(thread, 0, thread.pc, EdgeKind.START)

    def run(self, thread: Thread) -> int:
        """Run `thread` through one fragment; the number of instructions."""
        rng = self.rng
        if rng.random() < 0.0005:
            thread.is_over = True  # Killed before it runs on.
            return 1
        arrival, thread.arrival = thread.arrival, None
        if self.with_signals and len(thread.frames) < 2 and rng.random() < 0.02:
            self.enter_handler(thread, EdgeKind.SIGNAL, thread.pc)
            return 1
        fragment = self.translate(thread, thread.pc)
        executed = self.truth.executed[thread.tid]
        for instruction in fragment.instructions:
            faults = instruction.may_fault and self.with_signals and len(thread.frames) < 2 and rng.random() < 0.1
            if faults:
                is_first = instruction.pc == fragment.app_pc
                if not is_first:
                    self.count(thread, EdgeKind.PARTIAL, fragment.number, fragment.app_pc, instruction.pc)
                if rng.random() < 0.02:
                    if is_first:
                        thread.arrival = arrival  # Nothing tells that it came here.
                    else:
                        thread.has_faulted = True
                        self.truth.faulted.add(instruction.pc)
                    thread.is_over = True  # Nothing handles it.
                    return 1
                self.enter_handler(thread, EdgeKind.FAULT, instruction.pc)
                return 1
            executed[instruction.pc] += 1
            if instruction is not fragment.instructions[-1]:
                self.truth.steps[thread.tid][instruction.pc, instruction.end, "next"] += 1
        self.leave(thread, fragment)
        return len(fragment.instructions)

    def enter_handler(self, thread: Thread, kind: EdgeKind, pc: int) -> None:
        handler = self.program.handler
        self.count(thread, kind, NO_INDEX, pc, handler)
        self.step(thread, pc, handler, kind)
        thread.frames.append((pc, len(thread.stack)))
        thread.pc = handler

    def leave(self, thread: Thread, fragment: Fragment) -> None:
        rng, last = self.rng, fragment.instructions[-1]
        counters = thread.counters
        if last.kind == "plain":
            if last.end not in self.program.code:
                counters[fragment.counter] += 1
                self.step(thread, last.pc, last.end, EdgeKind.FALL_THROUGH)
                thread.is_over = True  # Killed by running into nothing.
                return
            counters[fragment.counter] += 1
            self.truth.steps[thread.tid][last.pc, last.end, "next"] += 1
            thread.pc = last.end
        elif last.kind == "conditional":
            is_taken = rng.random() < 0.5
            counters[fragment.counter + (not is_taken)] += 1
            thread.pc = last.targets[0] if is_taken else last.end
            self.step(thread, last.pc, thread.pc, EdgeKind.TAKEN if is_taken else EdgeKind.NOT_TAKEN)
        elif last.kind == "jump":
            counters[fragment.counter] += 1
            thread.pc = last.targets[0]
            self.step(thread, last.pc, thread.pc, EdgeKind.JUMP)
        elif last.kind in ("call", "indirect_call"):
            target = rng.choice(last.targets)
            if last.kind == "call":
                counters[fragment.counter] += 1
                self.step(thread, last.pc, target, EdgeKind.CALL)
            else:
                self.count(thread, EdgeKind.INDIRECT_CALL, fragment.number, fragment.app_pc, target)
                self.step(thread, last.pc, target, EdgeKind.INDIRECT_CALL)
            thread.stack.append((last.pc, last.end, target))
            thread.pc = target
            if len(thread.stack) > 200:
                self.unwind(thread, fragment, last)
        elif last.kind == "indirect_jump":
            thread.pc = rng.choice(last.targets)
            self.count(thread, EdgeKind.INDIRECT_JUMP, fragment.number, fragment.app_pc, thread.pc)
            self.step(thread, last.pc, thread.pc, EdgeKind.INDIRECT_JUMP)
        elif last.kind in ("return_", "push_ret"):
            counters[fragment.counter] += 1
            floor = thread.frames[-1][1] if thread.frames else 0
            if last.kind == "push_ret" or len(thread.stack) <= floor:
                target = rng.choice(last.targets) if last.targets else self.program.functions[0][0]
                # The made-up return address may be one that a call announced: then it is a return like any other.
                key = (EdgeKind.INDIRECT_JUMP, fragment.number, fragment.app_pc, target)
                if target not in self.announced or key in self.edges:
                    self.count(thread, EdgeKind.INDIRECT_JUMP, fragment.number, fragment.app_pc, target)
                    self.step(thread, last.pc, target, EdgeKind.INDIRECT_JUMP)
                else:
                    self.truth.returns[thread.tid][-1, target, -1] += 1
                    thread.arrival = ("return", (-1, target, -1))
                thread.pc = target
            else:
                call, thread.pc, callee = thread.stack.pop()
                self.truth.returns[thread.tid][call, thread.pc, callee] += 1
                thread.arrival = ("return", (call, thread.pc, callee))
        else:
            self.system_call(thread, fragment, last)

    def unwind(self, thread: Thread, fragment: Fragment, last: Instruction) -> None:
        """The stack is full: the thread ends, as one that overflowed it would."""
        thread.is_over = True

    def system_call(self, thread: Thread, fragment: Fragment, last: Instruction) -> None:
        thread.counters[fragment.counter] += 1
        if last.kind == "exit" and not thread.frames:
            thread.end_kind = EndKind.EXIT
            thread.is_over = True
        elif last.kind == "sigreturn" and thread.frames:
            thread.pc, depth = thread.frames.pop()
            del thread.stack[depth:]
            self.count(thread, EdgeKind.SIGRETURN, fragment.number, last.pc, thread.pc)
            self.step(thread, last.pc, thread.pc, EdgeKind.SIGRETURN)
        elif last.end not in self.program.code:
            thread.is_over = True
            thread.end_kind = EndKind.EXIT
        else:
            if last.kind == "syscall" and len(self.threads) < self.max_threads and self.rng.random() < 0.3:
                child = Thread(PID + len(self.threads), thread.tid, last.end, np.zeros(20000, np.uint64))
                self.threads.append(child)
                self._start(child)
            thread.pc = last.end
            self.step(thread, last.pc, last.end, EdgeKind.SYSCALL)
            thread.arrival = ("step", (last.pc, last.end, "syscall"))

    def raw_process(self) -> RawProcess:
        records = b"".join(b"".join(thread.records) for thread in self.threads)
        status = np.zeros((), protocol.STATUS_PAGE)
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
        return RawProcess(
            pid=Pid(PID),
            parent_pid=Pid(1),
            executable="/made/up",
            command=["made-up"],
            start_ns=1_700_000_000_000_000_000,
            end_ns=1_700_000_001_000_000_000,
            exit_code=0,
            signal=None,
            mode=Mode.COUNTS,
            initial_images=[
                RawImage("/made/up", RemoteAddress(BASE), RemoteAddress(BASE + (1 << 16)), FileOffset(0), 5, 0, 0)
            ],
            records=np.frombuffer(records, np.uint8).reshape(-1, 64),
            threads=threads,
            status=status[()],
        )


def session_info() -> SessionInfo:
    """A session that recorded a made-up program."""
    return SessionInfo(
        command=["made-up"],
        mode=Mode.COUNTS,
        include=[],
        exclude=[],
        start_ns=1_700_000_000_000_000_000,
        end_ns=1_700_000_001_000_000_000,
        clew_version="0",
        machine={"architecture": "x86_64"},
        target_cpu_seconds=1.0,
        controller_cpu_seconds=0.5,
    )


def record(dtype: np.dtype[np.void], payload: bytes = b"", **fields: int) -> bytes:
    """A record with its continuations."""
    row = np.zeros((), dtype)
    chunks = [payload[at : at + 60] for at in range(0, len(payload), 60)]
    fields.setdefault("continuations", len(chunks))
    for name, value in fields.items():
        row[name] = value
    data = row.tobytes()
    for index, chunk in enumerate(chunks):
        more = np.zeros((), protocol.CONTINUATION_RECORD)
        more["kind"], more["index"] = RecordKind.CONTINUATION, index
        more["payload"][: len(chunk)] = np.frombuffer(chunk, np.uint8)
        data += more.tobytes()
    return data


def event(kind: EventKind, tid: int, **fields: int) -> bytes:
    """An event record."""
    return record(protocol.EVENT_RECORD, kind=RecordKind.EVENT, event_kind=kind, tid=tid, **fields)


def _exit_kind(last: Instruction) -> ExitKind:
    return {
        "plain": ExitKind.FALL_THROUGH,
        "jump": ExitKind.JUMP,
        "conditional": ExitKind.CONDITIONAL,
        "call": ExitKind.CALL,
        "indirect_jump": ExitKind.INDIRECT_JUMP,
        "indirect_call": ExitKind.INDIRECT_CALL,
        "return_": ExitKind.RETURN,
        "push_ret": ExitKind.RETURN,
        "syscall": ExitKind.SYSCALL,
        "exit": ExitKind.SYSCALL,
        "sigreturn": ExitKind.SYSCALL,
    }[last.kind]
