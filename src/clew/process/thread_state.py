"""What a stopped thread of a program is doing, as the program itself would tell it: its own registers, and the system
call that it is inside of.

Runs in the controller. A thread that is stopped inside a system call shows an error that the kernel keeps to itself and
acts upon when the thread goes on. The runtime gets the thread in front of that call, and is told; and back. Which
registers that are is the processor's to know.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from functools import cache
from typing import Final

from clew.address import Pid, RemoteAddress, Tid
from clew.binary.architectures.architecture import Architecture
from clew.dataclass import dataclass, replace
from clew.errors import TargetError
from clew.process import ptrace
from clew.process.processors.chosen import processor_of
from clew.process.processors.processor import Registers
from clew.process.stopped_process import StoppedProcess
from clew.protocol.architecture import ArchitectureDefinition
from clew.protocol.layout import field_offset, pack_struct, unpack_number

__all__ = [
    "ERESTART_RESTARTBLOCK",
    "ThreadState",
    "apply_state",
    "call_to_make_again",
    "calling_thread",
    "give_back",
    "make_disturbed_call_again",
    "parse_state",
    "read_state",
    "state_of",
]

ERESTARTNOHAND: Final = 514
ERESTART_RESTARTBLOCK: Final = 516
_RESTART_CODES: Final = (512, 513, ERESTARTNOHAND, ERESTART_RESTARTBLOCK)
_EINTR: Final = 4

_ENDED_BY_STOPS: Final = (
    *("accept", "sendto", "recvfrom", "sendmsg", "recvmsg", "semop", "rt_sigtimedwait", "io_getevents", "semtimedop"),
    *("epoll_wait", "epoll_pwait", "accept4", "recvmmsg", "io_pgetevents", "io_uring_enter", "epoll_pwait2"),
)
"""System calls that a stop ends with EINTR although no handler ran (signal(7)), and that did nothing then: those on
sockets with a time limit."""


@cache
def _calls_ended_by_stops(architecture: Architecture) -> frozenset[int | None]:
    return frozenset(map(architecture.find_call, _ENDED_BY_STOPS)) - {None}


@dataclass(frozen=True)
class ThreadState:
    """A thread outside the runtime: its general `registers`, where it goes on, and what of its processor's `own` it has
    besides. `call_code` is not 0 inside the system call at `pc`: its internal error."""

    tid: Tid
    registers: tuple[int, ...]
    pc: int
    own: dict[str, int]
    mask: int
    call_code: int = 0
    tid_inside: Tid | None = None
    """What it is called in its own pid namespace, if that is another one."""
    rseq_area: int = 0
    rseq_signature: int = 0
    """Where it has its area for restartable sequences, 0: it has none."""
    is_captured: bool = False
    has_calls: bool = False
    """What is to be captured at `pc` was; calls that are open will be in its window of calls (struct ThreadState)."""

    def packed(self, definition: ArchitectureDefinition) -> bytes:
        """As struct ThreadState of the protocol."""
        return pack_struct(
            "ThreadState",
            tid=self.tid if self.tid_inside is None else self.tid_inside,
            registers=self.registers,
            mask=self.mask,
            call_code=self.call_code,
            rseq_area=self.rseq_area,
            rseq_signature=self.rseq_signature,
            is_captured=int(self.is_captured),
            has_calls=int(self.has_calls),
            **{definition.program_counter: self.pc},
            **self.own,
        )


def parse_state(data: bytes, definition: ArchitectureDefinition) -> ThreadState:
    """Parse struct ThreadState of the protocol."""

    def number(name: str) -> int:
        return unpack_number(data, "ThreadState", name)

    n_registers = len(definition.registers)
    return ThreadState(
        Tid(number("tid")),
        struct.unpack_from(f"<{n_registers}Q", data, field_offset("ThreadState", "registers")),
        number(definition.program_counter),
        {name: number(name) for name in definition.own_fields["ThreadState"] if name != definition.program_counter},
        number("mask"),
        number("call_code"),
    )


def call_to_make_again(registers: Registers, architecture: Architecture) -> tuple[int, int]:
    """The system call that a stopped thread is inside of: its internal error and the number to make it anew by; (0, 0)
    if it is inside none, or that one has ended. By the registers alone: whether a call is in front of its pc is the
    caller's to know.
    """
    call, error = registers.call_number, -registers.result
    if call is None:
        return 0, 0
    if error == ERESTART_RESTARTBLOCK:
        return error, architecture.restart_call
    if error in _RESTART_CODES:
        return error, call
    if error == _EINTR and call in _calls_ended_by_stops(architecture):
        # No handler has run yet, or the result would not be this.
        return ERESTARTNOHAND, call
    return 0, 0


def read_state(process: StoppedProcess, tid: Tid) -> ThreadState:
    """The state of a stopped thread of `process`, which may be any thread of it."""
    processor = process.processor
    registers = processor.get_registers(tid)
    state = state_of(registers, tid, ptrace.get_signal_mask(tid))
    code, call = call_to_make_again(registers, processor.architecture)
    if code:
        registers.step_in_front_of_call(call)
        instruction = processor.call_instruction
        if _try_read(process, RemoteAddress(registers.pc), len(instruction)) == instruction:
            return replace(state_of(registers, tid, state.mask), call_code=code)
    return _abort_rseq(process, state)


def state_of(registers: Registers, tid: Tid, mask: int) -> ThreadState:
    """The state of a thread that has these registers, and is in no system call."""
    return ThreadState(tid, registers.general, registers.pc, registers.own, mask)


def make_disturbed_call_again(tid: Tid) -> None:
    """Let a stopped thread that is inside a system call make it again, where the call takes the stop for its end."""
    processor = processor_of(tid)
    registers = processor.get_registers(tid)
    code, _ = call_to_make_again(registers, processor.architecture)
    if code and registers.result != -code:
        registers.result = -code
        processor.set_registers(tid, registers)


def give_back(state: ThreadState) -> None:
    """Give a stopped thread this state: from then on it is the program's own again."""
    processor = processor_of(state.tid)
    registers = processor.get_registers(state.tid)
    apply_state(state, registers)
    registers.leave_call()
    if state.call_code:
        # Inside the call again: the kernel makes it anew, or ends it if a signal's handler comes first.
        registers.step_into_call(state.call_code)
    # The mask first: with it alone, should this process be killed, the thread gives itself the rest.
    ptrace.set_signal_mask(state.tid, state.mask)
    processor.set_registers(state.tid, registers)


@contextlib.contextmanager
def calling_thread(pid: Pid, tid: Tid) -> Iterator[StoppedProcess]:
    """A stopped thread of a process, in which calls can be made; it is as it was afterwards."""
    process = StoppedProcess(pid, tid=tid)
    state = read_state(process, tid)
    try:
        yield process
    finally:
        give_back(state)
        process.close()


def apply_state(state: ThreadState, registers: Registers, *, keeps_code: bool = False) -> None:
    """Give `registers` what a state has of them; with `keeps_code` but for which kind of code it goes on in."""
    registers.general, registers.pc = state.registers, state.pc
    registers.give_own(state.own, keeps_code=keeps_code)


def _abort_rseq(process: StoppedProcess, state: ThreadState) -> ThreadState:
    """A thread inside a restartable sequence goes on at its abort handler, as after any interruption (rseq(2))."""
    registration = ptrace.get_rseq(state.tid)
    if registration is None:
        return state
    area, signature = registration
    state = replace(state, rseq_area=area, rseq_signature=signature)
    descriptor = int.from_bytes(_try_read(process, RemoteAddress(area + 8), 8), "little")
    content = _try_read(process, RemoteAddress(descriptor), 32) if descriptor else b""
    if len(content) < 32:
        return state
    _, start, size_bytes, abort = struct.unpack("<QQQQ", content)
    if not 0 <= state.pc - start < size_bytes:
        return state
    # What is announced stays: the kernel takes it back once the thread is elsewhere (kernel/rseq.c, rseq_ip_fixup).
    return replace(state, pc=abort)


def _try_read(process: StoppedProcess, address: RemoteAddress, size_bytes: int) -> bytes:
    try:
        return process.read(address, size_bytes)
    except TargetError:
        return b""
