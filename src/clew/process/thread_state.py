"""What a stopped thread of a program is doing, as the program itself would tell it: its own registers, and the system
call that it is inside of.

Runs in the controller. A thread that is stopped inside a system call has in rax an error that the kernel keeps to
itself and acts upon when the thread goes on (arch/x86/kernel/signal.c, arch_do_signal_or_restart). The runtime gets the
thread in front of that call, and is told; and back.
"""

from __future__ import annotations

import struct
from typing import Final

from clew.address import RemoteAddress, Tid
from clew.binary.system_calls import RESTART_SYSCALL
from clew.dataclass import dataclass, replace
from clew.errors import TargetError
from clew.process import ptrace
from clew.process.stopped_process import SYSCALL_INSTRUCTION, USER_CS, USER_SS, StoppedProcess
from clew.protocol.layout import field_offset, pack_struct, unpack_number

__all__ = [
    "ERESTART_RESTARTBLOCK",
    "REGISTER_NAMES",
    "ThreadState",
    "call_to_make_again",
    "give_back",
    "make_disturbed_call_again",
    "parse_state",
    "read_state",
]

REGISTER_NAMES: Final = (
    *("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"),
    *("r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15"),
)
"""The general registers in the processor's numbering."""

ERESTARTNOHAND: Final = 514
ERESTART_RESTARTBLOCK: Final = 516
_RESTART_CODES: Final = (512, 513, ERESTARTNOHAND, ERESTART_RESTARTBLOCK)
_EINTR: Final = 4
_U64: Final = (1 << 64) - 1

_ENDED_BY_STOPS: Final = frozenset({43, 44, 45, 46, 47, 65, 128, 208, 220, 232, 281, 288, 299, 333, 426, 441})
"""System calls that a stop ends with EINTR although no handler ran (signal(7)), and that did nothing then: accept,
sendto, recvfrom, sendmsg and recvmsg with a time limit, semop, rt_sigtimedwait, io_getevents, semtimedop, epoll_wait,
epoll_pwait, accept4, recvmmsg, io_pgetevents, io_uring_enter, epoll_pwait2."""


@dataclass(frozen=True)
class ThreadState:
    """A thread outside the runtime. `call_code` is not 0 inside the system call at `rip`: its internal error."""

    tid: Tid
    registers: tuple[int, ...]
    rip: int
    rflags: int
    gs_base: int
    mask: int
    call_code: int = 0
    tid_inside: Tid | None = None
    """What it is called in its own pid namespace, if that is another one."""
    rseq_area: int = 0
    rseq_signature: int = 0
    """Where it has its area for restartable sequences, 0: it has none."""

    code_selector: int = 0
    stack_selector: int = 0
    """Of the segments that it goes on in, 0: those of 64-bit programs."""

    def packed(self) -> bytes:
        """As struct ThreadState of the protocol."""
        return pack_struct(
            "ThreadState",
            tid=self.tid if self.tid_inside is None else self.tid_inside,
            registers=self.registers,
            rip=self.rip,
            rflags=self.rflags,
            gs_base=self.gs_base,
            mask=self.mask,
            call_code=self.call_code,
            rseq_area=self.rseq_area,
            rseq_signature=self.rseq_signature,
            code_selector=self.code_selector,
            stack_selector=self.stack_selector,
        )


def parse_state(data: bytes) -> ThreadState:
    """Parse struct ThreadState of the protocol."""

    def number(name: str) -> int:
        return unpack_number(data, "ThreadState", name)

    return ThreadState(
        Tid(number("tid")),
        struct.unpack_from("<16Q", data, field_offset("ThreadState", "registers")),
        number("rip"),
        number("rflags"),
        number("gs_base"),
        number("mask"),
        number("call_code"),
        code_selector=number("code_selector"),
        stack_selector=number("stack_selector"),
    )


def call_to_make_again(registers: ptrace.UserRegisters) -> tuple[int, int]:
    """The system call that a stopped thread is inside of: its internal error and the number to make it anew by; (0, 0)
    if it is inside none, or that one has ended. By the registers alone: whether a call is in front of rip is the
    caller's to know.
    """
    call, error = registers.orig_rax, -registers.rax & _U64
    if call >> 63:
        return 0, 0
    if error == ERESTART_RESTARTBLOCK:
        return error, RESTART_SYSCALL
    if error in _RESTART_CODES:
        return error, call
    if error == _EINTR and call in _ENDED_BY_STOPS:
        # No handler has run yet, or rax would not be this.
        return ERESTARTNOHAND, call
    return 0, 0


def read_state(process: StoppedProcess, tid: Tid) -> ThreadState:
    """The state of a stopped thread of `process`, which may be any thread of it."""
    registers = ptrace.get_registers(tid)
    state = ThreadState(
        tid,
        tuple(getattr(registers, name) for name in REGISTER_NAMES),
        registers.rip,
        registers.eflags,
        registers.gs_base,
        ptrace.get_signal_mask(tid),
        code_selector=0 if registers.cs == USER_CS else registers.cs,
        stack_selector=0 if registers.ss == USER_SS else registers.ss,
    )
    code, call = call_to_make_again(registers)
    if code:
        address = RemoteAddress(registers.rip - len(SYSCALL_INSTRUCTION))
        if _try_read(process, address, 2) == SYSCALL_INSTRUCTION:
            return replace(state, registers=(call, *state.registers[1:]), rip=address, call_code=code)
    return _abort_sequence(process, state)


def make_disturbed_call_again(tid: Tid) -> None:
    """Let a stopped thread that is inside a system call make it again, where the call takes the stop for its end."""
    registers = ptrace.get_registers(tid)
    code, _ = call_to_make_again(registers)
    if code and registers.rax != -code & _U64:
        registers.rax = -code & _U64
        ptrace.set_registers(tid, registers)


def give_back(state: ThreadState) -> None:
    """Give a stopped thread this state: from then on it is the program's own again."""
    registers = ptrace.get_registers(state.tid)
    for name, value in zip(REGISTER_NAMES, state.registers, strict=True):
        setattr(registers, name, value)
    registers.rip, registers.eflags, registers.gs_base = state.rip, state.rflags, state.gs_base
    registers.cs, registers.ss = state.code_selector or USER_CS, state.stack_selector or USER_SS
    registers.orig_rax = _U64
    if state.call_code:
        # Inside the call again: the kernel makes it anew, or ends it if a signal's handler comes first.
        registers.orig_rax = registers.rax
        registers.rax = -state.call_code & _U64
        registers.rip += len(SYSCALL_INSTRUCTION)
        registers.rcx, registers.r11 = registers.rip, registers.eflags
    # The mask first: with it alone, should this process be killed, the thread gives itself the rest.
    ptrace.set_signal_mask(state.tid, state.mask)
    ptrace.set_registers(state.tid, registers)


def _abort_sequence(process: StoppedProcess, state: ThreadState) -> ThreadState:
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
    if not 0 <= state.rip - start < size_bytes:
        return state
    # What is announced stays: the kernel takes it back once the thread is elsewhere (kernel/rseq.c, rseq_ip_fixup).
    return replace(state, rip=abort)


def _try_read(process: StoppedProcess, address: RemoteAddress, size_bytes: int) -> bytes:
    try:
        return process.read(address, size_bytes)
    except TargetError:
        return b""
