"""ptrace, as far as entering a process needs it.

Runs in the controller. A thin layer: one function for each request, errors as OSError. All calls about one tracee must
come from the thread that seized it.
"""

from __future__ import annotations

import ctypes
import os
import signal
from typing import Final

from clew.address import Pid
from clew.process.linux import libc

__all__ = [
    "EVENT_EXEC",
    "EVENT_STOP",
    "GROUP_STOP_SIGNALS",
    "OPTION_EXITKILL",
    "OPTION_TRACEEXEC",
    "OPTION_TRACESYSGOOD",
    "SYSCALL_STOP_SIGNAL",
    "UserRegisters",
    "cont",
    "detach",
    "get_registers",
    "interrupt",
    "listen",
    "poll_stop",
    "resume_to_syscall",
    "seize",
    "set_registers",
    "wait_stop",
]

OPTION_TRACESYSGOOD: Final = 0x1
OPTION_TRACEEXEC: Final = 0x10
OPTION_EXITKILL: Final = 0x100000
EVENT_EXEC: Final = 4
EVENT_STOP: Final = 128
SYSCALL_STOP_SIGNAL: Final = signal.SIGTRAP | 0x80
GROUP_STOP_SIGNALS: Final = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
"""An EVENT_STOP with one of these is job control's (ptrace(2))."""

_CONT: Final = 7
_GETREGS: Final = 12
_SETREGS: Final = 13
_DETACH: Final = 17
_SYSCALL: Final = 24
_SEIZE: Final = 0x4206
_INTERRUPT: Final = 0x4207
_LISTEN: Final = 0x4208
_WALL: Final = 0x40000000

_REGISTER_NAMES: Final = (
    *("r15", "r14", "r13", "r12", "rbp", "rbx", "r11", "r10", "r9", "r8", "rax", "rcx", "rdx", "rsi", "rdi"),
    *("orig_rax", "rip", "cs", "eflags", "rsp", "ss", "fs_base", "gs_base", "ds", "es", "fs", "gs"),
)

libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


class UserRegisters(ctypes.Structure):
    """The general registers of a stopped thread (struct user_regs_struct)."""

    _fields_ = [(name, ctypes.c_ulonglong) for name in _REGISTER_NAMES]

    def copy(self) -> UserRegisters:
        return UserRegisters.from_buffer_copy(self)

    def __getattr__(self, name: str) -> int:  # for the type checker: every field is an integer
        raise AttributeError(name)


def seize(pid: Pid, options: int) -> None:
    """Become the tracer of `pid` without stopping it."""
    _ptrace(_SEIZE, pid, 0, options)


def cont(pid: Pid, signal_number: int = 0) -> None:
    """Let a stopped tracee run on, delivering `signal_number` if it is not 0."""
    _ptrace(_CONT, pid, 0, signal_number)


def resume_to_syscall(pid: Pid, signal_number: int = 0) -> None:
    """Let a stopped tracee run until it enters or leaves a system call."""
    _ptrace(_SYSCALL, pid, 0, signal_number)


def detach(pid: Pid, signal_number: int = 0) -> None:
    """Let a stopped tracee run on without a tracer."""
    _ptrace(_DETACH, pid, 0, signal_number)


def interrupt(pid: Pid) -> None:
    """Stop a running tracee, with EVENT_STOP."""
    _ptrace(_INTERRUPT, pid, 0, 0)


def listen(pid: Pid) -> None:
    """Leave a tracee stopped as job control has it, and still hear what comes."""
    _ptrace(_LISTEN, pid, 0, 0)


def poll_stop(pid: Pid) -> int | None:
    """The status of `pid` as waitpid gives it, if it stopped or ended. Raises ChildProcessError if there is no such."""
    found, status = os.waitpid(pid, _WALL | os.WNOHANG)
    return status if found else None


def get_registers(pid: Pid) -> UserRegisters:
    """The registers of a stopped tracee."""
    registers = UserRegisters()
    _ptrace(_GETREGS, pid, 0, ctypes.addressof(registers))
    return registers


def set_registers(pid: Pid, registers: UserRegisters) -> None:
    """Give a stopped tracee these registers."""
    _ptrace(_SETREGS, pid, 0, ctypes.addressof(registers))


def wait_stop(pid: Pid) -> int:
    """Wait until `pid` stops or ends; the status as waitpid gives it."""
    _, status = os.waitpid(pid, _WALL)
    return status


def _ptrace(request: int, pid: Pid, address: int, data: int) -> None:
    if libc.ptrace(request, pid, address, data) == -1:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
