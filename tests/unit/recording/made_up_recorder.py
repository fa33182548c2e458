"""A stand-in for the runtime: records of a made-up program, written as the runtime writes them.

It translates fragments where execution comes to, with size limits, counts exits, and drops what is rewritten. What the
program does, and what is true of it, it is not told.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from clew.address import FileOffset, Pid, RemoteAddress, Tid
from clew.protocol import _generated as protocol
from clew.protocol._generated import NO_INDEX, EdgeKind, EndKind, ExitKind, FragmentFlag, Mode, RecordKind
from clew.recording.raw.process import Counters, RawImage, RawProcess, RawThread
from tests.unit.recording.made_up_program import BASE, Instruction, Program
from tests.unit.recording.made_up_records import record

__all__ = ["PID", "Fragment", "Recorder", "Return", "Step", "Thread"]

PID = 4242
MAX_COUNTERS = 40_000

WAYS = {
    ExitKind.FALL_THROUGH: (EdgeKind.FALL_THROUGH,),
    ExitKind.JUMP: (EdgeKind.JUMP,),
    ExitKind.CONDITIONAL: (EdgeKind.TAKEN, EdgeKind.NOT_TAKEN),
}
"""Ways out that may lead to a fragment without counting there."""

Step = tuple[int, int, str]
Return = tuple[int, int, int]


@dataclass
class Fragment:
    """A translated run of instructions."""

    number: int
    instructions: list[Instruction]
    counter: int
    app_pc: int
    end_pc: int
    # Numbers of the fragments whose exits were linked to it.
    incoming: set[int] = field(default_factory=set)
    is_valid: bool = True
    # By way out, counters of what is not to be added to the fragment that it leads to, and the number of that.
    misses: dict[EdgeKind, int] = field(default_factory=dict)
    followers: dict[EdgeKind, int] = field(default_factory=dict)
    # Ways that led somewhere already.
    has_led: set[EdgeKind] = field(default_factory=set)
    # The fragment, and the way out of it, that lead here without counting.
    leader: tuple[Fragment, EdgeKind] | None = None
    rank: int = 0


@dataclass
class Thread:
    """Where a thread is, and what is recorded of it."""

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
    # The name of the instruction that it ran last, if it was stopped inside a fragment and did not go on yet.
    stopped_after: int = 0
    # The fragment that its leader has just led to.
    led_to: Fragment | None = None
    # What the truth has of how it came to `pc`, where nothing but what follows tells of it.
    arrival: Return | Step | None = None


class Recorder:
    """Records threads that run `program`; no fragment has more than `limit` instructions."""

    def __init__(self, program: Program, mode: Mode, limit: int, has_leaders: bool = False) -> None:
        self.program, self.mode, self.limit, self.has_leaders = program, mode, limit, has_leaders
        self.threads: list[Thread] = []
        self.fragments: dict[int, Fragment] = {}
        self.by_number: list[Fragment] = []
        self.edges: dict[tuple[int, int, int, int], int] = {}
        self.links: set[tuple[int, int, int]] = set()
        # By return point, the number of a fragment whose call ends there.
        self.announced: dict[int, int] = {}
        self.n_counters = 0
        self.tsc = 1000

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
                counters=Counters.from_values(thread.counters),
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

    def translate(self, thread: Thread, pc: int, leader: tuple[Fragment, EdgeKind] | None = None) -> Fragment:
        """The fragment at `pc`, made if there is none, for `leader`."""
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
        ways = WAYS.get(kind, ())
        if counter != NO_INDEX and self.has_leaders and ways and fragment.number % 4:
            first = self._take_counters(len(ways))
            fragment.misses = {way: first + index for index, way in enumerate(ways)}
        if counter != NO_INDEX and leader is not None:
            fragment.leader, fragment.rank = leader, leader[0].rank + 2
        if kind in (ExitKind.CALL, ExitKind.INDIRECT_CALL):
            self.announced[at] = fragment.number
        self.fragments[pc] = fragment
        self.by_number.append(fragment)
        self._write_fragment(thread, fragment, kind)
        if fragment.leader is not None:
            self._lead(thread, *fragment.leader, fragment)
        return fragment

    def _lead(self, thread: Thread, leader: Fragment, way: EdgeKind, follower: Fragment) -> None:
        leader.followers[way] = follower.number
        self._write_link(thread, leader, way, follower)

    def _write_link(self, thread: Thread, source: Fragment, kind: EdgeKind, target: Fragment) -> None:
        thread.records.append(
            record(
                protocol.LINK_RECORD,
                kind=RecordKind.LINK,
                tid=thread.tid,
                source_pc=source.app_pc,
                target_pc=target.app_pc,
                tsc=self._now(),
                source_fragment_id=source.number,
                target_fragment_id=target.number,
                edge_kind=kind,
            )
        )

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
                n_misses=len(fragment.misses),
                flags=FragmentFlag.LIMIT if last.kind == "plain" else _BOTH_FLAGS[_both_counter(fragment)],
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

    def count_edge(self, thread: Thread, kind: EdgeKind, fragment: int, source: int, target: int) -> None:
        """Count an edge that is found at run time."""
        if kind in (EdgeKind.INDIRECT_CALL, EdgeKind.INDIRECT_JUMP) and target in self.program.code:
            self.translate(thread, target)
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

    def take_exit(self, thread: Thread, fragment: Fragment, kind: EdgeKind, target: int) -> None:
        """Go out of a fragment by a direct exit, or by its return to a call's landing."""
        if self.mode == Mode.COUNTS and kind in (EdgeKind.TAKEN, EdgeKind.NOT_TAKEN):
            own = int(kind == EdgeKind.NOT_TAKEN)
            both = _both_counter(fragment)
            if own != both:
                thread.counters[fragment.counter + own] += 1
            if both is not None:
                self.count(thread, fragment, both)
        elif self.mode == Mode.COUNTS and kind != EdgeKind.RETURN:
            self.count(thread, fragment)
        leads = kind in fragment.misses
        is_known = target in self.fragments
        if leads:
            thread.counters[fragment.misses[kind]] += 1
        if target not in self.program.code:
            return
        may_lead = leads and not is_known and kind not in fragment.has_led and fragment.is_valid
        reached = self.translate(thread, target, (fragment, kind) if may_lead else None)
        is_free = leads and kind not in fragment.has_led
        if is_known and is_free and reached.leader is not None and fragment.rank < reached.rank:
            self._lead(thread, fragment, kind, reached)
        fragment.has_led.add(kind)
        if fragment.followers.get(kind) == reached.number and is_known and self.tsc % 30:
            # It goes straight there, and not by the dispatcher.
            thread.counters[fragment.misses[kind]] -= 1
            thread.led_to = reached
        if kind != EdgeKind.RETURN:
            reached.incoming.add(fragment.number)
        key = (fragment.number, kind, reached.number)
        if self.mode == Mode.COVERAGE and key not in self.links:
            self.links.add(key)
            self._write_link(thread, fragment, kind, reached)

    def count(self, thread: Thread, fragment: Fragment, which: int = 0) -> None:
        """Count an execution, unless that was done where the fragment was entered."""
        if fragment.leader is None:
            thread.counters[fragment.counter + which] += 1

    def enter(self, thread: Thread, fragment: Fragment) -> None:
        """The thread comes to a fragment. If it has a leader it is counted here, unless it comes from there."""
        if thread.led_to is not fragment:
            self.go_elsewhere(thread)
            if fragment.leader is not None:
                thread.counters[fragment.counter + (_both_counter(fragment) or 0)] += 1
        thread.led_to = None

    def go_elsewhere(self, thread: Thread) -> None:
        """The thread does not go where its leader led it to."""
        if thread.led_to is not None:
            self.take_back(thread, thread.led_to)
        thread.led_to = None

    def take_back(self, thread: Thread, fragment: Fragment) -> None:
        """The thread does not run a fragment to its end that was counted where it was entered."""
        if fragment.leader is not None:
            leader, kind = fragment.leader
            thread.counters[leader.misses[kind]] += 1

    def drop_code(self, thread: Thread, start: int, end: int) -> None:
        """The program changed code: all that holds some of it is dropped, and what was linked to that."""
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


def _exit_kind(last: Instruction) -> ExitKind:
    kinds = {
        "plain": ExitKind.FALL_THROUGH,
        "return_": ExitKind.RETURN,
        "push_ret": ExitKind.RETURN,
        "exit": ExitKind.SYSCALL,
        "sigreturn": ExitKind.SYSCALL,
    }
    return kinds[last.kind] if last.kind in kinds else ExitKind[last.kind.upper()]


_BOTH_FLAGS = {None: 0, 0: FragmentFlag.FIRST_COUNTS_BOTH, 1: FragmentFlag.SECOND_COUNTS_BOTH}


def _both_counter(fragment: Fragment) -> int | None:
    """Of a conditional branch, which counter stands for both ways: of its two, if one does."""
    if _exit_kind(fragment.instructions[-1]) != ExitKind.CONDITIONAL:
        return None
    return (None, 0, 1)[fragment.number % 3] if fragment.leader is None else fragment.number % 2
