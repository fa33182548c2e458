"""Takes probes out of a process that is to be followed, between two instructions of each of its threads.

Runs in the controller. All threads are held from before the code is as it was until the engine has them: no thread
comes to a place meanwhile. One that is in a handler executes that to its end first, an instruction at a time; so it
stands in front of the very instruction that was probed, or in front of the probe. Which of both is told, since there
nothing is to be captured again.
"""

from __future__ import annotations

import contextlib
import signal
import time
from collections.abc import Callable
from typing import Final, NamedTuple

from clew.address import Tid
from clew.errors import AttachError, TargetGoneError
from clew.probing.code_writer import has_trap_pending
from clew.probing.leaving import take_out
from clew.probing.placing import Placing
from clew.probing.probed_process import ProbedProcess
from clew.probing.spans import find_frames
from clew.process import ptrace
from clew.process.attach import ALL_BUT_TRAP, send_again, signal_code
from clew.process.held_process import POLL_SECONDS, HeldProcess
from clew.process.processors.chosen import processor_of

__all__ = ["Handing", "TakenOut"]

_PATIENCE_SECONDS: Final = 5.0
_RUN_SECONDS: Final = 0.001
_PUSHES_FLAGS: Final = b"\x9c"
_TRAP_FLAG: Final = 1 << 8
_NEVER_BLOCKED: Final = 1 << signal.SIGKILL - 1 | 1 << signal.SIGSTOP - 1
_OWN_MASKS: Final = (ALL_BUT_TRAP & ~_NEVER_BLOCKED, ALL_BUT_TRAP & ~_NEVER_BLOCKED & ~(1 << signal.SIGILL - 1))
"""What is blocked here, and what the runtime blocks while it is in a handler (runtime/src/probe/hits.rs), as the kernel
tells of it."""


class TakenOut(NamedTuple):
    """`captured`: threads in front of an instruction of which the events are made. `left`: what stays, for people.
    `n_steps` is how many instructions threads executed to get out of handlers."""

    captured: frozenset[Tid]
    left: list[str]
    n_steps: int


class Handing:
    """Of one process, all threads of which are `held`."""

    def __init__(self, held: HeldProcess, process: ProbedProcess, placing: Placing) -> None:
        self._held, self._process, self._placing = held, process, placing
        plan = process.plan
        self._image = (plan.image_base, plan.image_base + plan.image_bytes)
        self._spans = [self._image, *placing.chunk_spans()]
        self._masks: dict[Tid, int] = {}
        """Of threads that execute instructions one by one: the masks that they will have."""
        self._stepped: dict[Tid, bool] = {}
        """Those threads, and whether the program itself has them do so."""
        self._signals: list[int] = []
        """Those that no mask keeps from a thread, and came meanwhile."""
        self._is_clear = True
        self._n_steps = 0
        self._let_go: Callable[[], object] = lambda: None

    def bring_out(self, tid: Tid, let_go: Callable[[], object]) -> None:
        """Have all threads be where the program could have them. `let_go` lets those go on that wait in handlers for
        the controller, thread `tid` among them: none gets farther than to the instruction behind that. Raises
        AttachError where one does not get there in time, TargetGoneError; the threads are held still."""
        if tid not in self._held.threads:
            raise AttachError(self._process.pid, f"process {self._process.pid}: thread {tid} is not its own")
        deadline = time.monotonic() + _PATIENCE_SECONDS
        self._let_go = let_go
        try:
            self._settle(deadline)
        except BaseException:
            self._give_up()
            raise

    def take_out(self) -> TakenOut:
        """Have the code as it was, and nothing be left; threads are in it. Raises TargetError, OSError."""
        placing = self._placing
        placing.begin_leaving()
        is_own = placing.restore(self._process.pid)
        captured = {tid for tid in self._held.threads if self._move(tid)}
        left = take_out(self._held, self._process, placing, is_clear=self._is_clear and is_own)
        return TakenOut(frozenset(captured), left, self._n_steps)

    def send_again(self) -> None:
        """Have the process get what came while threads stepped. They are let go."""
        send_again(self._process.pid, self._signals)

    def _move(self, tid: Tid) -> bool:
        """Have a thread that is in a copy be in the code; whether it is in front of what was captured."""
        processor = processor_of(tid)
        registers = processor.get_registers(tid)
        origin = self._placing.find_origin(registers.pc)
        if origin is None:
            return False
        registers.pc = origin.address
        registers.stack_pointer += origin.stack_bytes
        processor.set_registers(tid, registers)
        return origin.is_behind

    def _settle(self, deadline: float) -> None:
        """Have all threads out of handlers, and of handlers of signals that interrupted those."""
        while True:
            inside = [tid for tid in list(self._held.threads) if not self._is_out(tid)]
            if inside:
                self._step(inside, deadline)
                continue
            for tid in list(self._stepped):
                self._end_steps(tid)
            self._is_clear = True
            led = [tid for tid in self._held.threads if self._leads_inside(tid)]
            if not led:
                return
            self._check(deadline, led[0], "a signal's handler interrupted one of probes, and does not return")
            # The probes are there still.
            for tid in led:
                self._held.resume(tid)
            time.sleep(_RUN_SECONDS)
            self._stop(led, deadline)

    def _give_up(self) -> None:
        """Have threads go on that executed instructions one by one, as ever."""
        held, deadline = self._held, time.monotonic() + _PATIENCE_SECONDS
        with contextlib.suppress(AttachError, TargetGoneError):
            for tid in self._stepped:
                if tid in held.threads and not held.threads[tid].is_stopped:
                    held.interrupt(tid)
            self._wait(list(self._stepped), deadline)
            # That one was executed may be told behind that the thread was interrupted.
            late = [tid for tid in self._stepped if tid in held.threads and has_trap_pending(held.pid, tid)]
            for tid in late:
                held.resume(tid)
            self._wait(late, deadline)
        for tid in list(self._stepped):
            if tid in held.threads and held.threads[tid].is_stopped:
                self._take_signal(tid)
                self._end_steps(tid)

    def _is_out(self, tid: Tid) -> bool:
        """Whether a thread is in the program's code, or in a copy where that may be left."""
        pc = processor_of(tid).get_registers(tid).pc
        if any(start <= pc < end for start, end in self._spans):
            origin = self._placing.find_origin(pc)
            if origin is None or (origin.is_inserted and origin.copy_address != pc):
                return False
        return not has_trap_pending(self._held.pid, tid)

    def _leads_inside(self, tid: Tid) -> bool:
        """Whether a handler of a signal that the thread is in returns into one of probes, or in front of it."""
        found = find_frames(tid, processor_of(tid).get_registers(tid), self._spans)
        self._is_clear = self._is_clear and not found
        origins = [self._placing.find_origin(pc) for pc in found]
        return any(origin is None or origin.is_inserted for origin in origins)

    def _step(self, tids: list[Tid], deadline: float) -> None:
        """Have threads execute instructions one by one, until each is out."""
        held = self._held
        signals = dict.fromkeys(tids, 0)
        for tid in tids:
            self._stepped.setdefault(tid, processor_of(tid).get_registers(tid).is_stepping)
        told: set[Tid] = set()
        while signals:
            for tid in [tid for tid in signals if tid in held.threads and held.threads[tid].is_stopped]:
                self._block(tid)
                if self._tells_flags(tid):
                    told.add(tid)
                held.step(tid, signals[tid])
                self._n_steps += 1
            # One may wait for another one that has something locked; or come to where it waits for the controller.
            self._let_go()
            self._hear()
            for tid in list(signals):
                if tid not in held.threads:
                    del signals[tid]
                elif held.threads[tid].is_stopped:
                    if tid in told:
                        told.discard(tid)
                        self._correct_flags(tid)
                    signals[tid] = self._take_signal(tid)
                    if not signals[tid] and self._is_out(tid):
                        del signals[tid]
                else:
                    self._check(deadline, tid, "it does not come out of a probe's handler")

    def _take_signal(self, tid: Tid) -> int:
        """The signal that a thread which has stopped is to get next, if it is one that it has trapped by. What tells
        that it executed an instruction is none of the program's; what else comes, although nothing may, comes later."""
        thread = self._held.threads[tid]
        number, thread.stop_signal = thread.stop_signal, 0
        if number == signal.SIGTRAP:
            return number if signal_code(tid) == processor_of(tid).trap_code else 0
        if number:
            self._signals.append(number)
        return 0

    def _hear(self) -> None:
        """Take note of what stopped. Raises TargetGoneError."""
        for _ in self._held.poll():
            pass
        if not self._held.threads or self._held.has_executed:
            raise TargetGoneError(self._process.pid, f"process {self._process.pid}: ended meanwhile")

    def _tells_flags(self, tid: Tid) -> bool:
        """Whether a thread is about to push its flags: among them is then that it executes one instruction."""
        return self._process.read(processor_of(tid).get_registers(tid).pc, 1) == _PUSHES_FLAGS

    def _correct_flags(self, tid: Tid) -> None:
        """It has pushed them. What the program itself has there is told as it is."""
        pushed = processor_of(tid).get_registers(tid).stack_pointer
        flags = int.from_bytes(self._process.read(pushed, 2), "little")
        if not self._stepped[tid]:
            self._process.write(pushed, (flags & ~_TRAP_FLAG).to_bytes(2, "little"))

    def _wait(self, tids: list[Tid], deadline: float) -> None:
        """Wait until these have stopped. Raises TargetGoneError, AttachError."""
        held = self._held
        while True:
            self._hear()
            running = [tid for tid in tids if tid in held.threads and not held.threads[tid].is_stopped]
            if not running:
                return
            self._check(deadline, running[0], "it can't be stopped")
            time.sleep(POLL_SECONDS)

    def _stop(self, tids: list[Tid], deadline: float) -> None:
        """Have these stop; signals that come first are delivered. Raises TargetGoneError, AttachError."""
        held, waiting = self._held, set(tids)
        for tid in waiting:
            held.interrupt(tid)
        while waiting & held.threads.keys():
            for stop in held.poll():
                if stop.signal_number:
                    held.interrupt(stop.tid)
                    held.resume(stop.tid, stop.signal_number)
                else:
                    waiting.discard(stop.tid)
            for tid in waiting:
                self._check(deadline, tid, "it can't be stopped")
            time.sleep(POLL_SECONDS)
        self._hear()

    def _check(self, deadline: float, tid: Tid, why: str) -> None:
        if time.monotonic() > deadline:
            raise AttachError(self._process.pid, f"process {self._process.pid}: thread {tid}: {why}")

    def _block(self, tid: Tid) -> None:
        """Have no signal come while a thread steps: it would be told of a handler's address. Its mask is noted, as soon
        as it is not the runtime's."""
        mask = ptrace.get_signal_mask(tid)
        if mask not in _OWN_MASKS:
            self._masks[tid] = mask
            ptrace.set_signal_mask(tid, ALL_BUT_TRAP)

    def _end_steps(self, tid: Tid) -> None:
        """Have a thread be as if it had not executed one instruction after the other."""
        was_stepping, mask = self._stepped.pop(tid), self._masks.pop(tid, None)
        if tid not in self._held.threads:
            return
        if mask is not None:
            ptrace.set_signal_mask(tid, mask)
        if not was_stepping:
            processor = processor_of(tid)
            registers = processor.get_registers(tid)
            registers.end_stepping()
            processor.set_registers(tid, registers)
