"""Takes the runtime out of a process again: every thread goes on in its own code, and nothing is left of the runtime.

Runs in the controller. All threads are stopped and told to park in the runtime, their own state complete; what waits in
a system call is taken out of it and put back at the end (`process/take_out.py`). Should parking fail, the process goes
on recorded.
"""

from __future__ import annotations

import secrets
import signal
import time
from collections.abc import Callable, Collection
from typing import Final, Protocol

from clew.address import Pid, RemoteAddress, Tid
from clew.dataclass import dataclass, field, replace
from clew.errors import AttachError, TargetError, TargetGoneError
from clew.process import ptrace
from clew.process.attach import read_labels, signal_code
from clew.process.attachable import has_own_filter
from clew.process.fetcher import Fetcher
from clew.process.held_process import POLL_SECONDS, HeldProcess, Stop
from clew.process.identity import find_sharer_of_memory, has_exited, read_status
from clew.process.injection_plan import InjectionPlan
from clew.process.maps import read_maps
from clew.process.take_out import ParkedProcess
from clew.process.thread_state import ThreadState, call_to_make_again, parse_state
from clew.protocol._constants import DETACH_CODE, THREAD_STATE_BYTES

__all__ = ["PATIENCE_SECONDS", "Departure", "StatusPage", "detach", "draw_ticket", "is_inside"]

PATIENCE_SECONDS: Final = 10.0
LOOK_AGAIN_SECONDS: Final = 0.02
"""What has not parked by then is stopped once more, and looked at where it is now."""

_N_TICKETS: Final = 1 << 32


class StatusPage(Protocol):
    """The status page of the region that a process uses."""

    def set_status_ticket(self, name: str, value: int) -> int:
        """Set one of its u32 fields; where that is."""


@dataclass(frozen=True)
class Departure:
    """`seconds`: how long the process was stopped or was on its way out. `wait_status` says how it ended, if it did and
    this process was told.
    """

    seconds: float
    has_ended: bool
    wait_status: int | None


def detach(
    pid: Pid,
    shared: StatusPage,
    plan: InjectionPlan,
    *,
    patience_seconds: float = PATIENCE_SECONDS,
    on_wait: Callable[[], object] = lambda: None,
    is_given_up: Callable[[], bool] = lambda: False,
    find_running: Callable[[], Collection[int]] | None = None,
) -> Departure:
    """Leave process `pid`, which has the runtime as `plan` says, as it was.

    `on_wait` is called while the threads are waited for: rings have to be emptied and requests answered meanwhile.
    `find_running` gives the ids of the threads under the runtime as the target tells them, if anybody knows. A process
    that has ended, or became another program, needs nothing. Raises TargetError if it can't be left within
    `patience_seconds`, or if `is_given_up` says so while its threads are stopped; it goes on recorded then.
    """
    held = HeldProcess(pid)
    started = time.monotonic()
    try:
        held.stop_all(patience_seconds, on_wait=on_wait, is_given_up=is_given_up)
        if not held.has_executed and is_inside(held, plan):
            _Leaving(held, shared, plan, patience_seconds, on_wait, find_running).leave()
    except (TargetError, OSError) as error:
        held.let_go()
        if not held.has_executed and not has_exited(pid):
            if isinstance(error, TargetError):
                raise
            raise AttachError(pid, f"process {pid}: can't be left now: {error.strerror or error}") from error
        if isinstance(error, TargetGoneError) and held.wait_status is None:
            held.wait_status = error.wait_status
    finally:
        held.let_go()
    return Departure(time.monotonic() - started, has_exited(pid), held.wait_status)


def draw_ticket() -> int:
    """A number (u32, not 0) for an attempt to leave, which no other clew has, nor a fork of this process.

    Threads that go on late take back the attempt that they parked for.
    """
    return 1 + secrets.randbelow(_N_TICKETS - 1)


def is_inside(held: HeldProcess, plan: InjectionPlan) -> bool:
    """Whether the runtime is in a held process as `plan` says: a program that it executed does not have it."""
    return any(mapping.start == plan.image_base for mapping in read_maps(Pid(next(iter(held.threads)))))


@dataclass
class _Leaving:
    """Leaving a process, all threads of which are stopped."""

    held: HeldProcess
    shared: StatusPage
    plan: InjectionPlan
    patience_seconds: float
    on_wait: Callable[[], object]
    find_running: Callable[[], Collection[int]] | None
    parked: dict[Tid, ThreadState] = field(default_factory=dict)
    parking: dict[Tid, ThreadState] = field(default_factory=dict)
    native: set[Tid] = field(default_factory=set)
    """Threads that the runtime had released before: they are not sent anywhere."""

    held_signals: list[int] = field(default_factory=list)

    def leave(self) -> None:
        self._pid = self.held.pid
        self._fetcher = Fetcher(self.held, self.plan)
        self.shared.set_status_ticket("detach_ticket", draw_ticket())
        try:
            for tid in list(self.held.threads):
                self._send(tid)
            self._wait_until_parked()
            self._check_alone()
            labels = self._fetcher.labels
            if self.held.threads:
                # Whatever was told while it began: all of it by now.
                labels = read_labels(self._fetcher.memory, self.plan)
        except BaseException:
            # The threads that have parked go on as if nothing had been.
            self.shared.set_status_ticket("detach_ticket", 0)
            raise
        finally:
            self._fetcher.close()
        if self.held.threads:
            ParkedProcess(self.held, self.plan, labels, self.parked, self.native).take_out(self.held_signals)

    def _wait_until_parked(self) -> None:
        deadline = time.monotonic() + self.patience_seconds
        look_again_at = time.monotonic() + LOOK_AGAIN_SECONDS
        while waiting := [tid for tid in self.held.threads if tid not in self.parked and tid not in self.native]:
            for stop in self.held.poll():
                self._handle(stop)
            if self.held.has_executed:
                raise TargetGoneError(self._pid, "the process became another program")
            now = time.monotonic()
            if now > deadline:
                raise AttachError(
                    self._pid,
                    f"process {self._pid}: thread {waiting[0]} does not come out of the runtime (it may wait "
                    "for a child that vfork started); it stays recorded",
                )
            if now > look_again_at:
                look_again_at = now + LOOK_AGAIN_SECONDS
                for tid in waiting:
                    if tid in self.held.threads and not self.held.threads[tid].is_stopped:
                        self.held.interrupt(tid)
            self.on_wait()
            time.sleep(POLL_SECONDS)

    def _check_alone(self) -> None:
        """Raises AttachError if anybody else is in the memory that is about to go, or it can't be given back."""
        known = {self._fetcher.tid_inside(tid) for tid in self.held.threads}
        if self.find_running is None or not known.issuperset(self.find_running()):
            # What the target tells may be of a thread that was killed.
            other = find_sharer_of_memory(self._pid, self.plan.shared_base)
            if other is not None:
                raise AttachError(self._pid, f"process {self._pid}: shares its memory with process {other}")
        for tid in self.native:
            if has_own_filter(read_status(f"{self._pid}/task/{tid}") or {}):
                raise AttachError(
                    self._pid, f"process {self._pid}: thread {tid} is under seccomp, and runs natively already"
                )

    def _handle(self, stop: Stop) -> None:
        tid = stop.tid
        if tid in self.parking:
            self._handle_parking(stop)
            return
        if stop.signal_number == 0:
            self._send(tid)
            return
        if stop.signal_number == signal.SIGTRAP:
            code, processor = signal_code(tid), self._fetcher.memory.processor
            registers = self._fetcher.get_registers(tid)
            self._fetcher.read_labels()
            if code == processor.trap_code and registers.pc == self._fetcher.labels["parked_pc"]:
                data = self._fetcher.memory.read(RemoteAddress(registers.argument), THREAD_STATE_BYTES)
                state = parse_state(data, processor.definition)
                self.parking[tid] = replace(state, tid=tid)
                self.held.resume_to_syscall(tid)
                return
            if code == -DETACH_CODE:
                self._fetcher.fetched.discard(tid)
            elif code <= 0:
                # Sent by somebody, and perhaps blocked by the program: it comes when the runtime is gone.
                self.held_signals.append(stop.signal_number)
                self.held.resume(tid)
                return
        self.held.resume(tid, stop.signal_number)

    def _handle_parking(self, stop: Stop) -> None:
        """A thread on its way from the trap to behind the system call that follows it."""
        registers = self._fetcher.get_registers(stop.tid)
        handover_pc = self._fetcher.labels["handover_pc"]
        is_behind = stop.signal_number == ptrace.SYSCALL_STOP_SIGNAL and registers.pc == handover_pc
        if is_behind and not registers.is_in_front_of_call:
            self.parked[stop.tid] = self.parking.pop(stop.tid)
        else:
            # In front of the call, or stopped for something else; a signal that can't be blocked has been there.
            self.held.resume_to_syscall(stop.tid)

    def _send(self, tid: Tid) -> None:
        """Let a stopped thread go where it parks, by the shortest way from where it is."""
        fetcher = self._fetcher
        fetcher.read_labels()
        labels = fetcher.labels
        registers = fetcher.get_registers(tid)
        if not fetcher.is_in_runtime(registers):
            context = fetcher.find_native(tid)
            if context is not None:
                fetcher.mark(context)
                fetcher.fetch(tid)
            elif not fetcher.is_lent(tid, registers):
                self.native.add(tid)
                return
            self.held.resume(tid)
            return
        if fetcher.owns_context(tid, registers):
            fetcher.mark(registers.context)
            processor = fetcher.memory.processor
            code, call = call_to_make_again(registers, processor.architecture)
            if code and registers.pc == labels["syscall_return_pc"]:
                fetcher.write_u32(registers.context + labels["call_code_offset"], code)
                registers.make_call_at(labels["syscall_again_pc"], call)
                processor.set_registers(tid, registers)
            elif fetcher.must_be_fetched(registers):
                fetcher.fetch(tid)
        self.held.resume(tid)
