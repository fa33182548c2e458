"""Puts the runtime into a process that runs already, all its threads at once.

Runs in the controller. Every thread is stopped where it is; one of them makes the system calls that map the runtime,
and runs its initialisation. Then each thread is sent through the runtime's gate, its own state in its context, and let
go. If anything fails the process is given back as it was; if this process is killed before all of them were sent, those
that were go back by themselves. What the runtime does is not known here.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable, Sequence
from typing import Final

from clew.address import Pid, RemoteAddress, Tid
from clew.dataclass import dataclass, replace
from clew.errors import AttachError, InjectionError, TargetError, TargetGoneError
from clew.process import ptrace
from clew.process.attachable import check_attachable, has_own_namespace, tid_inside
from clew.process.held_process import POLL_SECONDS, HeldProcess
from clew.process.inject import map_runtime, start_block, unmap_runtime
from clew.process.injection_plan import InjectionPlan, layout_for_limits, plan_injection
from clew.process.maps import Mapping, read_maps
from clew.process.processors.processor import Processor, Registers
from clew.process.refuge import refuge
from clew.process.runtime_image import RuntimeImage
from clew.process.shared_layout import SharedLayout
from clew.process.shared_memory import SharedMemory
from clew.process.stopped_process import StoppedProcess
from clew.process.thread_state import ThreadState, give_back, read_state
from clew.protocol._constants import CONTROL_BLOCK_BYTES, LAYOUTS, THREAD_STATE_BYTES, RuntimeState, Stage
from clew.protocol.layout import field_offset, pack_struct, unpack_number

__all__ = [
    "STOP_SECONDS",
    "Attachment",
    "HandOver",
    "SharedMemoryMaker",
    "attach",
    "attach_held",
    "read_labels",
    "restore_trap",
    "run_until_parked",
    "send_again",
    "set_stage",
    "signal_code",
]

STOP_SECONDS: Final = 2.0
START_SECONDS: Final = 20.0
OTHER_CODE_SECONDS: Final = 2.0
OTHER_CODE_PAUSE_SECONDS: Final = 0.01
"""Between two attempts. It is stopped for a hundredth of that."""

ALL_SIGNALS: Final = (1 << 64) - 1
ALL_BUT_TRAP: Final = ALL_SIGNALS & ~(1 << signal.SIGTRAP - 1)
"""Masks. A trap that is blocked would cost the program its action for SIGTRAP."""

_SIGNAL_MASK_BYTES: Final = 8

SharedMemoryMaker = Callable[[int, SharedLayout, list[Mapping]], SharedMemory]
"""Given an empty memfd, the sizes to give it, and what is mapped in the process."""


@dataclass(frozen=True)
class HandOver:
    """Of a process whose own code had probes: the threads that are in front of an instruction of which all was
    captured, and those that have calls open whose returns are to be (struct ThreadState)."""

    captured: frozenset[Tid] = frozenset()
    calling: frozenset[Tid] = frozenset()


@dataclass(frozen=True)
class Attachment:
    """A process with the runtime in it, how it is told, and for how long it was stopped."""

    pid: Pid
    shared: SharedMemory
    plan: InjectionPlan
    stopped_seconds: float
    written_pages: dict[int, int]
    """As StoppedProcess has them."""


def attach(
    pid: Pid, image: RuntimeImage, make_shared: SharedMemoryMaker, *, is_given_up: Callable[[], bool] = lambda: False
) -> Attachment:
    """Make every thread of `pid` go on under the runtime. Once `is_given_up` says so the process is let go unharmed.

    A thread in 32-bit code is waited for: the process runs on meanwhile, and is stopped again. Raises AttachError or
    InjectionError, with the process as it was, and TargetGoneError.
    """
    check_attachable(pid)
    deadline = time.monotonic() + OTHER_CODE_SECONDS
    while True:
        try:
            return _attach_once(pid, image, make_shared, is_given_up)
        except _OtherCodeError:
            if time.monotonic() > deadline or is_given_up():
                raise
        time.sleep(OTHER_CODE_PAUSE_SECONDS)


class _OtherCodeError(AttachError):
    """A thread is in 32-bit code, where the runtime can't be entered from."""


def _attach_once(
    pid: Pid, image: RuntimeImage, make_shared: SharedMemoryMaker, is_given_up: Callable[[], bool]
) -> Attachment:
    started = time.monotonic()
    held = HeldProcess(pid)
    try:
        held.stop_all(STOP_SECONDS, is_given_up=is_given_up)
        if held.has_executed:
            raise AttachError(pid, f"process {pid}: became another program just now; try again")
        return _Entry(held, image, started).enter(make_shared)
    except ProcessLookupError as error:
        raise TargetGoneError(pid, f"process {pid}: ended while it was attached to") from error
    except OSError as error:
        raise AttachError(pid, f"process {pid}: can't be attached to: {error.strerror or error}") from error
    finally:
        held.let_go()


def attach_held(
    held: HeldProcess, image: RuntimeImage, make_shared: SharedMemoryMaker, handed: HandOver, started: float
) -> Attachment:
    """The same of a process whose threads are held since `started`, a monotonic time. They are let go then. Raises
    AttachError, InjectionError, TargetGoneError, OSError: they are held still, as they were."""
    return _Entry(held, image, started, handed).enter(make_shared)


def run_until_parked(process: StoppedProcess, seconds: float) -> None:
    """Let the one thread run in the runtime until it traps for the controller. Raises InjectionError if it does not."""
    process.processor.set_registers(process.task, process.registers)
    ptrace.cont(process.task)
    deadline = time.monotonic() + seconds
    while True:
        status = ptrace.try_wait(process.task)
        if status is None:
            if time.monotonic() > deadline:
                raise InjectionError(process.pid, f"process {process.pid}: the runtime does not answer")
            time.sleep(POLL_SECONDS)
            continue
        if not os.WIFSTOPPED(status):
            raise TargetGoneError(process.pid, f"process {process.pid}: ended meanwhile", status)
        number, event = os.WSTOPSIG(status), status >> 16
        if event == 0 and number == signal.SIGTRAP and signal_code(process.task) == process.processor.trap_code:
            return
        if event == 0 and ptrace.is_forced(process.task, number):
            raise InjectionError(process.pid, f"process {process.pid}: the runtime failed with signal {number}")
        if event == 0:
            process.held_signals.append(number)
        ptrace.cont(process.task)


def read_labels(process: StoppedProcess, plan: InjectionPlan) -> dict[str, int]:
    """The fields of the runtime's ControlBlock. Those that the runtime writes are 0 before it has begun."""
    block = process.read(plan.control_block, CONTROL_BLOCK_BYTES)
    names = [name for name in LAYOUTS["ControlBlock"][1] if not name.startswith("reserved")]
    return {name: unpack_number(block, "ControlBlock", name) for name in names}


def set_stage(process: StoppedProcess, plan: InjectionPlan, stage: int) -> None:
    """Tell the runtime how far the process is in its hands: one of `Stage`."""
    address = RemoteAddress(plan.control_block + field_offset("ControlBlock", "stage"))
    process.write(address, stage.to_bytes(4, "little"))


def restore_trap(process: StoppedProcess, plan: InjectionPlan) -> None:
    """Give the process its own action for SIGTRAP back if the runtime's is in place, as far as that is possible."""
    with contextlib.suppress(OSError, TargetError):
        process.call("rt_sigaction", signal.SIGTRAP, 0, plan.scratch, _SIGNAL_MASK_BYTES)
        if plan.is_in_image(int.from_bytes(process.read(plan.scratch, 8), "little")):
            action = read_labels(process, plan)["trap_action"]
            process.call("rt_sigaction", signal.SIGTRAP, action, 0, _SIGNAL_MASK_BYTES)


def signal_code(task: ptrace.TaskId) -> int:
    """si_code of the signal that a tracee has stopped for."""
    return int.from_bytes(ptrace.get_signal_info(task)[8:12], "little", signed=True)


def send_again(pid: Pid, numbers: Sequence[int]) -> None:
    """Send a process the signals that were kept from it while a thread of it ran in the runtime."""
    for number in dict.fromkeys(numbers):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


_NOTHING_HANDED: Final = HandOver()


class _Entry:
    """Entering a held process, once."""

    def __init__(
        self, held: HeldProcess, image: RuntimeImage, started: float, handed: HandOver = _NOTHING_HANDED
    ) -> None:
        self._held, self._handed = held, handed
        self._pid = held.pid
        self._image = image
        self._started = started
        self._has_own_namespace = has_own_namespace(held.pid)
        tids = list(held.threads)
        # A process that is killed has its first thread waited for last.
        self._worker = next((tid for tid in tids if tid != Tid(held.pid)), tids[0])

    def enter(self, make_shared: SharedMemoryMaker) -> Attachment:
        """Map the runtime, start it and send all threads into it; they run when they are let go."""
        process = StoppedProcess(self._pid, tid=self._worker)
        original = process.registers.copy()
        with contextlib.ExitStack() as undo:
            undo.callback(process.close)
            for tid in self._held.threads:
                if not process.processor.get_registers(tid).is_in_own_code:
                    raise _OtherCodeError(
                        self._pid,
                        f"process {self._pid}: thread {tid} stays in 32-bit code, where clew can't attach; try again",
                    )
            captured, calling = self._handed.captured, self._handed.calling
            states = [
                replace(read_state(process, tid), is_captured=tid in captured, has_calls=tid in calling)
                for tid in self._held.threads
            ]
            worker = next(state for state in states if state.tid == self._worker)
            if self._has_own_namespace:
                states = [replace(state, tid_inside=tid_inside(state.tid)) for state in states]
            extended_state = process.processor.get_extended_state(self._worker)
            undo.callback(self._restore_worker, process.processor, worker, extended_state)
            shared, plan = self._map(process, make_shared, states, worker, undo)
            self._start(process, shared, plan)
            labels = read_labels(process, plan)
            entered = self._read_entered(process, plan, len(states))
            undo.pop_all()
        process.processor.set_extended_state(self._worker, extended_state)
        for state, (context, stack_top) in zip(states, entered, strict=True):
            self._send(process.processor, state.tid, original, labels["attach_pc"], context, stack_top)
        set_stage(process, plan, Stage.ENTERED)
        process.close()
        self._held.let_go()
        send_again(self._pid, process.held_signals)
        return Attachment(self._pid, shared, plan, time.monotonic() - self._started, process.written_pages)

    def _map(
        self,
        process: StoppedProcess,
        make_shared: SharedMemoryMaker,
        states: list[ThreadState],
        worker: ThreadState,
        undo: contextlib.ExitStack,
    ) -> tuple[SharedMemory, InjectionPlan]:
        mappings = read_maps(Pid(self._worker))
        layout, heap_bytes = layout_for_limits(SharedLayout(), self._pid)
        if len(states) > layout.max_threads:
            raise AttachError(
                self._pid, f"process {self._pid}: has {len(states)} threads; clew follows up to {layout.max_threads}"
            )
        plan = plan_injection(
            self._image.memory_bytes,
            layout,
            heap_bytes,
            mappings,
            self._pid,
            bases=process.processor.bases,
            n_threads=len(states),
        )
        undo.callback(_take_back, process, plan, mappings, worker)
        registers = process.registers.copy()
        stack_end = next((mapping.end for mapping in mappings if mapping.path == "[stack]"), registers.stack_pointer)
        registers.stack_pointer = stack_end
        block = start_block(process, registers, plan, mappings)
        with refuge(process, mappings, worker):
            shared = map_runtime(
                process, self._image, plan, layout, block, lambda fd: make_shared(fd, layout, mappings)
            )
        undo.callback(shared.close)
        process.write(
            plan.control_block, pack_struct("ControlBlock", threads=plan.thread_states, thread_count=len(states))
        )
        process.write(plan.thread_states, b"".join(state.packed(process.processor.definition) for state in states))
        return shared, plan

    def _start(self, process: StoppedProcess, shared: SharedMemory, plan: InjectionPlan) -> None:
        registers = process.registers
        process.registers = registers.copy()
        process.registers.begin(plan.image_base + self._image.entry_offset)
        process.registers.argument = plan.start_block
        # Signals are blocked once it is where it opens them itself, should this process be killed.
        process.processor.set_registers(self._worker, process.registers)
        ptrace.set_signal_mask(self._worker, ALL_BUT_TRAP)
        try:
            run_until_parked(process, START_SECONDS)
        finally:
            process.registers = registers
        status = shared.status_u32("state")
        if status != RuntimeState.RUNNING:
            error = shared.status_u32("error")
            raise InjectionError(self._pid, f"process {self._pid}: the runtime could not start (error {error})")
        ptrace.set_signal_mask(self._worker, ALL_SIGNALS)

    def _read_entered(self, process: StoppedProcess, plan: InjectionPlan, n_threads: int) -> list[tuple[int, int]]:
        """Each thread's context and stack."""
        table = process.read(plan.thread_states, n_threads * THREAD_STATE_BYTES)
        rows = [table[start : start + THREAD_STATE_BYTES] for start in range(0, len(table), THREAD_STATE_BYTES)]
        return [
            (unpack_number(row, "ThreadState", "context"), unpack_number(row, "ThreadState", "stack_top"))
            for row in rows
        ]

    def _send(
        self, processor: Processor, tid: Tid, worker: Registers, attach_pc: int, context: int, stack_top: int
    ) -> None:
        registers = worker.copy() if tid == self._worker else processor.get_registers(tid)
        registers.begin(attach_pc)
        registers.stack_pointer, registers.context = stack_top, context
        processor.set_registers(tid, registers)
        ptrace.set_signal_mask(tid, ALL_SIGNALS)

    def _restore_worker(self, processor: Processor, worker: ThreadState, extended_state: bytes) -> None:
        with contextlib.suppress(OSError):
            processor.set_extended_state(self._worker, extended_state)
            give_back(worker)


def _take_back(process: StoppedProcess, plan: InjectionPlan, mappings: list[Mapping], worker: ThreadState) -> None:
    """Unmap what was mapped, as far as that is possible; the thread has the state `worker` then."""
    with contextlib.suppress(OSError, TargetError), refuge(process, mappings, worker):
        restore_trap(process, plan)
        unmap_runtime(process, plan)
