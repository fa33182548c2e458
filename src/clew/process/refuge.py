"""Where a held process goes on from if its tracer dies in the middle of a system call that is made in it.

Runs in the controller. Behind the call's instruction stands code that gives back the signal mask and all registers:
nobody comes to it but a process that the kernel let go. It takes a call to map it and one to unmap it, made elsewhere:
for those two, and for what runs of the runtime while others wait for it, there is no such help.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Iterator
from typing import Final

from clew.address import RemoteAddress
from clew.errors import RemoteCallError, TargetError
from clew.process import ptrace
from clew.process.linux import MAP_ANONYMOUS, MAP_PRIVATE, PROT_EXEC, PROT_READ, PROT_WRITE
from clew.process.ptrace import UserRegisters
from clew.process.stopped_process import StoppedProcess

__all__ = ["refuge", "refuge_code"]

_PAGE_BYTES: Final = 4096
_DATA_OFFSET: Final = 256
_NUMBERS: Final = {
    name: number
    for number, name in enumerate(
        [*("rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"), *(f"r{number}" for number in range(8, 16))]
    )
}
_SLOTS: Final = (*_NUMBERS, "eflags", "rip", "mask")
_KEPT_BY_CALLS: Final = ("rbx", "rbp", "r8", "r9", "r12", "r13", "r14", "r15", "rsp")
_USED_BY_CALLS: Final = ("rdi", "rsi", "rdx", "r10", "rcx", "r11", "rax")
_SYSCALL: Final = b"\x0f\x05"


def refuge_code(registers: UserRegisters, mask: int) -> bytes:
    """A system call's instruction, and behind it what makes `registers` and the signal mask the thread's again."""
    code = bytearray(_SYSCALL)

    def add(start: bytes, slot: str) -> None:
        """An instruction with an operand relative to rip."""
        end = len(code) + len(start) + 4
        code.extend(start + struct.pack("<i", _DATA_OFFSET + 8 * _SLOTS.index(slot) - end))

    def load(name: str) -> None:
        number = _NUMBERS[name]
        add(bytes([0x4C if number > 7 else 0x48, 0x8B, 0x05 | (number & 7) << 3]), name)

    add(b"\x48\x8d\x25", "eflags")  # lea rsp
    code.extend(b"\x9d")  # popfq; nothing from here on changes flags
    for name in _KEPT_BY_CALLS:
        load(name)
    # rt_sigprocmask(SIG_SETMASK, mask, 0, 8): with its own stack the thread may take a signal.
    code.extend(b"\xb8\x0e\0\0\0\xbf\x02\0\0\0")
    add(b"\x48\x8d\x35", "mask")
    code.extend(b"\xba\0\0\0\0\x41\xba\x08\0\0\0" + _SYSCALL)
    for name in _USED_BY_CALLS:
        load(name)
    add(b"\xff\x25", "rip")  # jmp
    values = [getattr(registers, name) for name in _SLOTS[:-1]]
    return bytes(code).ljust(_DATA_OFFSET, b"\xcc") + struct.pack(f"<{len(_SLOTS)}Q", *values, mask)


@contextlib.contextmanager
def refuge(process: StoppedProcess, registers: UserRegisters, mask: int) -> Iterator[None]:
    """System calls are made in `process` where it survives that its tracer dies: it goes on with `registers` then.

    Where memory that may be written and executed is refused the calls are made as before.
    """
    protection = PROT_READ | PROT_WRITE | PROT_EXEC
    try:
        address = RemoteAddress(process.call("mmap", 0, _PAGE_BYTES, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))
    except RemoteCallError:
        yield
        return
    _go_on_with(process, registers)
    try:
        process.write(address, refuge_code(registers, mask))
        waiting = registers.copy()
        waiting.rip = address + len(_SYSCALL)
        _go_on_with(process, waiting)
        with process.calling_at(address):
            yield
    finally:
        with contextlib.suppress(OSError, TargetError):
            process.call("munmap", address, _PAGE_BYTES)
            _go_on_with(process, registers)
            ptrace.set_signal_mask(process.task, mask)


def _go_on_with(process: StoppedProcess, registers: UserRegisters) -> None:
    """From where the process goes on if its tracer dies now."""
    registers = registers.copy()
    registers.orig_rax = (1 << 64) - 1
    ptrace.set_registers(process.task, registers)
