"""Takes the runtime out of a process again: every thread goes on in its own code, and nothing is left of the runtime.

Runs in the controller. All threads are stopped and told to park in the runtime, their own state complete; what waits in
a system call is taken out of it and put back at the end. Then the signal actions and mappings are restored, by calls
made with one of the threads, and each thread gets its own registers. Should parking fail, the process goes on recorded;
should this process be killed when all have parked, the threads do the rest by themselves.
"""

from __future__ import annotations

import contextlib
import errno
import signal
import struct
import time
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from clew.address import Pid, RemoteAddress, Tid
from clew.errors import AttachError, RemoteCallError, TargetError, TargetGoneError
from clew.process import ptrace
from clew.process.attach import (
    ALL_BUT_TRAP,
    ALL_SIGNALS,
    SI_KERNEL,
    read_labels,
    restore_trap,
    run_until_parked,
    send_again,
    set_stage,
    signal_code,
)
from clew.process.attachable import has_own_filter, has_own_namespace, tid_inside
from clew.process.held_process import POLL_SECONDS, HeldProcess, Stop
from clew.process.identity import iter_sharers, read_stat, read_status
from clew.process.injection_plan import InjectionPlan
from clew.process.linux import queue_signal
from clew.process.maps import read_maps
from clew.process.refuge import refuge
from clew.process.shared_memory import SharedMemory
from clew.process.stopped_process import StoppedProcess
from clew.process.thread_state import ERESTART_RESTARTBLOCK, ThreadState, call_to_make_again, give_back, parse_state
from clew.protocol._constants import DETACH_CODE, THREAD_STATE_BYTES, THREAD_STRIDE_BYTES, Stage

__all__ = ["PATIENCE_SECONDS", "Departure", "detach"]

PATIENCE_SECONDS: Final = 10.0
LEAVE_SECONDS: Final = 20.0
LOOK_AGAIN_SECONDS: Final = 0.02
"""What has not parked by then is stopped once more, and looked at where it is now."""

_PENDING_LEAVE: Final = 2
_SIGINFO_BYTES: Final = 128
_SIGTRAP_BIT: Final = 1 << signal.SIGTRAP - 1
_STACK: Final = struct.Struct("<QIIQ")
_RSEQ_CS_OFFSET: Final = 8
_RSEQ_DESCRIPTOR_BYTES: Final = 32
_SS_DISABLE, _SS_AUTODISARM = 2, 1 << 31


@dataclass(frozen=True)
class Departure:
    """`seconds`: how long the process stood still or was on its way out. `wait_status` says how it ended, if it did and
    this process was told.
    """

    seconds: float
    has_ended: bool
    wait_status: int | None


def detach(
    pid: Pid,
    shared: SharedMemory,
    plan: InjectionPlan,
    *,
    patience_seconds: float = PATIENCE_SECONDS,
    on_wait: Callable[[], object] = lambda: None,
    is_given_up: Callable[[], bool] = lambda: False,
    find_running: Callable[[], Collection[int]] = list,
) -> Departure:
    """Leave process `pid`, which has the runtime as `plan` says, as it was.

    `on_wait` is called while the threads are waited for: rings have to be emptied and requests answered meanwhile.
    `find_running` gives the ids of the threads under the runtime as the target tells them. A process that has ended, or
    became another program, needs nothing. Raises TargetError if it can't be left within `patience_seconds`, or if
    `is_given_up` says so while its threads are stopped; it goes on recorded then.
    """
    held = HeldProcess(pid)
    started = time.monotonic()
    try:
        held.stop_all(patience_seconds, on_wait=on_wait, is_given_up=is_given_up)
        if not held.has_executed and _is_inside(held, plan):
            _Leaving(held, shared, plan, patience_seconds, on_wait, find_running).leave()
    except (TargetError, OSError) as error:
        held.let_go()
        if not held.has_executed and not _has_ended(pid):
            if isinstance(error, TargetError):
                raise
            raise AttachError(pid, f"process {pid}: can't be left now: {error.strerror or error}") from error
        if isinstance(error, TargetGoneError) and held.wait_status is None:
            held.wait_status = error.wait_status
    finally:
        held.let_go()
    return Departure(time.monotonic() - started, _has_ended(pid), held.wait_status)


def _is_inside(held: HeldProcess, plan: InjectionPlan) -> bool:
    return any(mapping.start == plan.image_base for mapping in read_maps(Pid(next(iter(held.threads)))))


def _is_readable(memory: StoppedProcess, descriptor: RemoteAddress) -> bool:
    try:
        memory.read(descriptor, _RSEQ_DESCRIPTOR_BYTES)
    except TargetError:
        return False
    return True


def _has_ended(pid: Pid) -> bool:
    fields = read_stat(pid)
    return not fields or fields[0] in (b"Z", b"X")


@dataclass
class _Leaving:
    """Leaving a process, all threads of which are stopped."""

    held: HeldProcess
    shared: SharedMemory
    plan: InjectionPlan
    patience_seconds: float
    on_wait: Callable[[], object]
    find_running: Callable[[], Collection[int]]
    parked: dict[Tid, ThreadState] = field(default_factory=dict)
    parking: set[Tid] = field(default_factory=set)
    native: set[Tid] = field(default_factory=set)
    """Threads that the runtime had released before: they are not sent anywhere."""

    fetched: set[Tid] = field(default_factory=set)
    """Threads whose signal, which fetches them out of the code cache, has not arrived yet."""

    held_signals: list[int] = field(default_factory=list)

    def leave(self) -> None:
        self._pid = self.held.pid
        self._has_own_namespace = has_own_namespace(self._pid)
        self._memory = StoppedProcess(self._pid, tid=next(iter(self.held.threads)))
        self._labels = read_labels(self._memory, self.plan)
        self.shared.set_status_ticket("detach_ticket", 1)
        try:
            for tid in list(self.held.threads):
                self._send(tid)
            self._wait_until_parked()
            self._check_alone()
        except BaseException:
            # The threads that have parked go on as if nothing had been.
            self.shared.set_status_ticket("detach_ticket", 0)
            raise
        finally:
            self._memory.close()
        if not self.held.threads:
            return
        self._take_out()

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
        if not self._labels["leave_pc"]:
            raise AttachError(self._pid, f"process {self._pid}: the runtime in it has never begun")
        known = {self._tid_inside(tid) for tid in self.held.threads}
        if not known.issuperset(self.find_running()):
            # What the target tells may be of a thread that was killed.
            other = next((pid for pid in iter_sharers(self.shared) if pid != self._pid), None)
            if other is not None:
                raise AttachError(self._pid, f"process {self._pid}: shares its memory with process {other}")
        for tid in self.native:
            if has_own_filter(read_status(f"{self._pid}/task/{tid}") or {}):
                raise AttachError(
                    self._pid, f"process {self._pid}: thread {tid} is under seccomp, and runs natively already"
                )

    def _handle(self, stop: Stop) -> None:
        tid = stop.tid
        if stop.signal_number == 0:
            registers = ptrace.get_registers(tid)
            if tid in self.parking and registers.rip == self._labels["parked_pc"]:
                state = parse_state(self._memory.read(RemoteAddress(registers.rdi), THREAD_STATE_BYTES))
                self.parked[tid] = replace(state, tid=tid)
            else:
                self._send(tid)
            return
        if stop.signal_number == signal.SIGTRAP:
            code = signal_code(tid)
            registers = ptrace.get_registers(tid)
            self._read_labels()
            if code == SI_KERNEL and registers.rip == self._labels["parked_pc"]:
                self.parking.add(tid)
                # It stops again at once, its trap taken: that would reach it if this process died.
                self.held.interrupt(tid)
                self.held.resume(tid)
                return
            if code == -DETACH_CODE:
                self.fetched.discard(tid)
            elif code <= 0:
                # Sent by somebody, and perhaps blocked by the program: it comes when the runtime is gone.
                self.held_signals.append(stop.signal_number)
                self.held.resume(tid)
                return
        self.held.resume(tid, stop.signal_number)

    def _send(self, tid: Tid) -> None:
        """Let a stopped thread go where it parks, by the shortest way from where it is."""
        self._read_labels()
        labels = self._labels
        registers = ptrace.get_registers(tid)
        is_in_image = self.plan.is_in_image(registers.rip)
        if not self.plan.is_private(registers.gs_base):
            if not is_in_image:
                self.native.add(tid)
                return
        elif self._owns(tid, registers.gs_base):
            self._set_pending(registers.gs_base)
            code, call = call_to_make_again(registers)
            if code and registers.rip == labels["syscall_return_pc"]:
                self._write_u32(registers.gs_base + labels["call_code_offset"], code)
                registers.rip, registers.rax, registers.orig_rax = labels["syscall_again_pc"], call, ALL_SIGNALS
                ptrace.set_registers(tid, registers)
            elif self._must_be_fetched(registers, is_in_image=is_in_image):
                self._fetch(tid)
        self.held.resume(tid)

    def _read_labels(self) -> None:
        # The runtime may have been at its very beginning still, where it has told nothing.
        if not self._labels["parked_pc"]:
            self._labels = read_labels(self._memory, self.plan)

    def _fetch(self, tid: Tid) -> None:
        """Send the signal that makes the runtime leave the code cache at the block's end."""
        if tid in self.fetched:
            return
        mask = ptrace.get_signal_mask(tid)
        # Behind si_pid and si_uid, which the kernel may write itself.
        info = struct.pack("<iii12xQQ", signal.SIGTRAP, 0, -DETACH_CODE, DETACH_CODE, mask).ljust(_SIGINFO_BYTES, b"\0")
        try:
            queue_signal(self._pid, tid, signal.SIGTRAP, info)
        except OSError as error:
            if error.errno == errno.ESRCH:
                return
            raise AttachError(self._pid, f"process {self._pid}: can't be sent a signal ({error.strerror})") from error
        self.fetched.add(tid)
        ptrace.set_signal_mask(tid, mask & ~_SIGTRAP_BIT)

    def _owns(self, tid: Tid, context: int) -> bool:
        # A thread that is just starting has its parent's gs base still.
        return self._read_u32(context + self._labels["tid_offset"]) == self._tid_inside(tid)

    def _tid_inside(self, tid: Tid) -> Tid:
        return tid_inside(tid) if self._has_own_namespace else tid

    def _must_be_fetched(self, registers: ptrace.UserRegisters, *, is_in_image: bool) -> bool:
        """Whether a thread may stay for long where it is: in the code cache, or about to make a system call.

        One that is to go on in a call that the kernel made a note for comes to that by itself; the return from a
        signal's handler would make it fail (arch/x86/kernel/signal_64.c, restore_sigcontext).
        """
        if is_in_image and not self._labels["gates_start"] <= registers.rip < self._labels["gates_end"]:
            return False
        return self._read_u32(registers.gs_base + self._labels["call_code_offset"]) != ERESTART_RESTARTBLOCK

    def _set_pending(self, context: int) -> None:
        address = context + self._labels["pending_offset"]
        self._write_u32(address, self._read_u32(address) | _PENDING_LEAVE)

    def _read_u32(self, address: int) -> int:
        return int.from_bytes(self._memory.read(RemoteAddress(address), 4), "little")

    def _write_u32(self, address: int, value: int) -> None:
        self._memory.write(RemoteAddress(address), value.to_bytes(4, "little"))

    def _take_out(self) -> None:
        """Give back what belongs to the whole process, with one of its threads, and each thread its own state; all of
        them stand still.
        """
        tids = list(self.held.threads)
        # A process that is killed has its first thread waited for last.
        worker = min(tids, key=lambda tid: (tid in self.native, tid == Tid(self._pid)))
        process = StoppedProcess(self._pid, tid=worker)
        original, mask = process.registers.copy(), ptrace.get_signal_mask(worker)
        extended_state = ptrace.get_extended_state(worker)
        # Until the others are given back the worker goes on in the runtime, whatever is raised: they wait for it there.
        is_last = False
        try:
            announced = [self._find_announced(process, tid) for tid in self.native if tid in self.held.threads]
            ptrace.set_signal_mask(worker, ALL_BUT_TRAP)
            set_stage(process, self.plan, Stage.LEAVING)
            if worker in self.native:
                process.registers.rip, process.registers.rsp = self._labels["leave_pc"], self.plan.stack_end
                process.registers.eflags, process.registers.orig_rax = 0x202, ALL_SIGNALS
            run_until_parked(process, LEAVE_SECONDS)
            process.registers = original
            ptrace.set_extended_state(worker, extended_state)
            for tid in self.native:
                if tid in self.held.threads:
                    self._restore_signal_stack(process, tid)
            for state in self.parked.values():
                if state.tid in self.held.threads and state.tid != worker:
                    give_back(state)
            is_last = True
            with self._calling(process, self.parked.get(worker)):
                restore_trap(process, self.plan)
                for address, size_bytes in self.plan.regions:
                    process.call("munmap", address, size_bytes)
            for place, descriptor in announced:
                # The kernel would kill the thread for a descriptor that it can't read.
                if descriptor and not _is_readable(process, descriptor):
                    process.write(place, bytes(8))
        finally:
            process.close()
            if worker in self.native:
                ptrace.set_registers(worker, original)
                ptrace.set_signal_mask(worker, mask)
            elif is_last:
                give_back(self.parked[worker])
        send_again(self._pid, [*self.held_signals, *process.held_signals])

    @contextlib.contextmanager
    def _calling(self, thread: StoppedProcess, state: ThreadState | None) -> Iterator[None]:
        """Calls are made with `thread`, which goes on with `state`, None: as it is, should this process be killed.

        Under a filter of the program's they are made where it has no say, and the thread is not safe there.
        """
        if has_own_filter(read_status(f"{self._pid}/task/{thread.task}") or {}):
            with thread.calling_at(RemoteAddress(self._labels["call_pc"])):
                yield
        else:
            with refuge(thread, read_maps(Pid(thread.task)), state):
                yield

    def _find_announced(self, memory: StoppedProcess, tid: Tid) -> tuple[RemoteAddress, RemoteAddress]:
        """Where a thread announces restartable sequences (rseq(2)), and the descriptor there, if it can be read.

        A thread that was released may have one of the runtime's there still.
        """
        registration = ptrace.get_rseq(tid)
        if registration is None:
            return RemoteAddress(0), RemoteAddress(0)
        place = RemoteAddress(registration[0] + _RSEQ_CS_OFFSET)
        with contextlib.suppress(TargetError):
            descriptor = RemoteAddress(int.from_bytes(memory.read(place, 8), "little"))
            if descriptor and _is_readable(memory, descriptor):
                return place, descriptor
        return place, RemoteAddress(0)

    def _restore_signal_stack(self, memory: StoppedProcess, tid: Tid) -> None:
        """A thread that was released has the runtime's alternate stack still."""
        thread = StoppedProcess(self._pid, tid=tid)
        mask = ptrace.get_signal_mask(tid)
        room = self.plan.start_block
        try:
            with self._calling(thread, None):
                thread.call("sigaltstack", 0, room)
                address, _, _, _ = _STACK.unpack(memory.read(room, _STACK.size))
                if self.plan.is_private(address):
                    base = self.plan.private_base
                    context = address - (address - base) % THREAD_STRIDE_BYTES
                    place = RemoteAddress(context + self._labels["signal_stack_offset"])
                    start, flags, _, size_bytes = _STACK.unpack(memory.read(place, _STACK.size))
                    flags = flags & _SS_AUTODISARM | (0 if size_bytes else _SS_DISABLE)
                    memory.write(room, _STACK.pack(start, flags, 0, size_bytes))
                    thread.call("sigaltstack", room, 0)
        except RemoteCallError as error:
            raise AttachError(self._pid, error.message) from error
        finally:
            ptrace.set_registers(tid, thread.registers)
            ptrace.set_signal_mask(tid, mask)
            thread.close()
