"""ptrace, as far as entering and leaving a process needs it.

Runs in the controller. A thin layer: one function for each request, errors as OSError; of registers the processors know
more. All calls about one tracee must come from the thread that seized it.
"""

from __future__ import annotations

import ctypes
import os
import signal
from typing import Final

from clew.address import Pid, RemoteAddress, Tid
from clew.process.linux import libc

__all__ = [
    "EVENT_CLONE",
    "EVENT_EXEC",
    "EVENT_STOP",
    "GROUP_STOP_SIGNALS",
    "OPTION_EXITKILL",
    "OPTION_TRACECLONE",
    "OPTION_TRACEEXEC",
    "OPTION_TRACESYSGOOD",
    "SYSCALL_STOP_SIGNAL",
    "TaskId",
    "cont",
    "detach",
    "get_event_message",
    "get_register_set",
    "get_rseq",
    "get_signal_info",
    "get_signal_mask",
    "interrupt",
    "is_forced",
    "listen",
    "request",
    "resume_to_syscall",
    "seize",
    "set_options",
    "set_register_set",
    "set_signal_mask",
    "step",
    "try_wait",
]

OPTION_TRACESYSGOOD: Final = 0x1
OPTION_TRACECLONE: Final = 0x8
OPTION_TRACEEXEC: Final = 0x10
OPTION_EXITKILL: Final = 0x100000
EVENT_CLONE: Final = 3
EVENT_EXEC: Final = 4
EVENT_STOP: Final = 128
SYSCALL_STOP_SIGNAL: Final = signal.SIGTRAP | 0x80
GROUP_STOP_SIGNALS: Final = (signal.SIGSTOP, signal.SIGTSTP, signal.SIGTTIN, signal.SIGTTOU)
"""An EVENT_STOP with one of these is job control's (ptrace(2))."""

_FAULTS: Final = (signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP, signal.SIGSYS)
_CONT: Final = 7
_SINGLESTEP: Final = 9
_DETACH: Final = 17
_SYSCALL: Final = 24
_SETOPTIONS: Final = 0x4200
_GETEVENTMSG: Final = 0x4201
_GETSIGINFO: Final = 0x4202
_GETREGSET: Final = 0x4204
_SETREGSET: Final = 0x4205
_SEIZE: Final = 0x4206
_INTERRUPT: Final = 0x4207
_LISTEN: Final = 0x4208
_GETSIGMASK: Final = 0x420A
_SETSIGMASK: Final = 0x420B
_GET_RSEQ_CONFIGURATION: Final = 0x420F
_SIGINFO_BYTES: Final = 128
_RSEQ_CONFIGURATION_BYTES: Final = 24
_MAX_REGISTER_SET_BYTES: Final = 1 << 16
_WALL: Final = 0x40000000

TaskId = Pid | Tid
"""A thread, as ptrace means it: a process id is that of its first thread."""

libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


class _IoVector(ctypes.Structure):
    """struct iovec."""

    _fields_ = [("address", ctypes.c_void_p), ("size_bytes", ctypes.c_size_t)]
    size_bytes: int


def seize(pid: TaskId, options: int) -> None:
    """Become the tracer of `pid` without stopping it."""
    _ptrace(_SEIZE, pid, 0, options)


def set_options(pid: TaskId, options: int) -> None:
    """Have other options for a stopped tracee."""
    _ptrace(_SETOPTIONS, pid, 0, options)


def cont(pid: TaskId, signal_number: int = 0) -> None:
    """Let a stopped tracee run on, delivering `signal_number` if it is not 0."""
    _ptrace(_CONT, pid, 0, signal_number)


def resume_to_syscall(pid: TaskId, signal_number: int = 0) -> None:
    """Let a stopped tracee run until it enters or leaves a system call."""
    _ptrace(_SYSCALL, pid, 0, signal_number)


def step(pid: TaskId, signal_number: int = 0) -> None:
    """Let a stopped tracee execute one instruction, delivering `signal_number` if it is not 0."""
    _ptrace(_SINGLESTEP, pid, 0, signal_number)


def detach(pid: TaskId, signal_number: int = 0) -> None:
    """Let a stopped tracee run on without a tracer."""
    _ptrace(_DETACH, pid, 0, signal_number)


def listen(pid: TaskId) -> None:
    """Leave a tracee stopped as job control has it, and still hear what comes."""
    _ptrace(_LISTEN, pid, 0, 0)


def interrupt(task: TaskId) -> None:
    """Make a seized tracee stop soon."""
    _ptrace(_INTERRUPT, task, 0, 0)


def get_event_message(task: TaskId) -> int:
    """What the event is about that a tracee has stopped for: the new thread's id for EVENT_CLONE."""
    message = ctypes.c_ulong()
    _ptrace(_GETEVENTMSG, task, 0, ctypes.addressof(message))
    return message.value


def get_signal_info(task: TaskId) -> bytes:
    """The siginfo_t of the signal that a tracee has stopped for."""
    info = ctypes.create_string_buffer(_SIGINFO_BYTES)
    _ptrace(_GETSIGINFO, task, 0, ctypes.addressof(info))
    return info.raw


def is_forced(task: TaskId, signal_number: int) -> bool:
    """Whether the signal that a tracee has stopped for is of a fault, not sent: kept from it, it would come again.

    Who sends one can't give it such a code (kernel/signal.c, do_rt_sigqueueinfo).
    """
    return signal_number in _FAULTS and int.from_bytes(get_signal_info(task)[8:12], "little", signed=True) > 0


def get_signal_mask(task: TaskId) -> int:
    """The signal mask of a stopped tracee; inside sigsuspend and the like the one that comes back after the call."""
    mask = ctypes.c_ulonglong()
    _ptrace(_GETSIGMASK, task, ctypes.sizeof(mask), ctypes.addressof(mask))
    return mask.value


def set_signal_mask(task: TaskId, mask: int) -> None:
    """Give a stopped tracee this signal mask."""
    value = ctypes.c_ulonglong(mask)
    _ptrace(_SETSIGMASK, task, ctypes.sizeof(value), ctypes.addressof(value))


def get_rseq(task: TaskId) -> tuple[RemoteAddress, int] | None:
    """Where a stopped tracee has its area for restartable sequences, and its signature, if the kernel (5.13) tells."""
    configuration = ctypes.create_string_buffer(_RSEQ_CONFIGURATION_BYTES)
    try:
        _ptrace(_GET_RSEQ_CONFIGURATION, task, len(configuration), ctypes.addressof(configuration))
    except OSError:
        return None
    area, signature = (
        int.from_bytes(configuration.raw[:8], "little"),
        int.from_bytes(configuration.raw[12:16], "little"),
    )
    return (RemoteAddress(area), signature) if area else None


def get_register_set(task: TaskId, kind: int, room_bytes: int = _MAX_REGISTER_SET_BYTES) -> bytes:
    """One of the kernel's sets of registers of a stopped tracee: `kind` is NT_* of ELF notes."""
    state = ctypes.create_string_buffer(room_bytes)
    vector = _IoVector(ctypes.addressof(state), len(state))
    _ptrace(_GETREGSET, task, kind, ctypes.addressof(vector))
    return state.raw[: vector.size_bytes]


def set_register_set(task: TaskId, kind: int, state: bytes) -> None:
    """Give a stopped tracee the registers that `get_register_set` told."""
    buffer = ctypes.create_string_buffer(state, len(state))
    vector = _IoVector(ctypes.addressof(buffer), len(state))
    _ptrace(_SETREGSET, task, kind, ctypes.addressof(vector))


def request(number: int, task: TaskId, data: int) -> None:
    """A request that a processor has for itself; `data` is an address here, or a number."""
    _ptrace(number, task, 0, data)


def try_wait(task: TaskId) -> int | None:
    """The status of `task` if it has stopped or ended, without waiting for that. Raises ChildProcessError."""
    waited, status = os.waitpid(task, _WALL | os.WNOHANG)
    return status if waited else None


def _ptrace(number: int, pid: TaskId, address: int, data: int) -> None:
    if libc.ptrace(number, pid, address, data) == -1:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
