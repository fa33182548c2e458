"""Where a held process goes on from if its tracer dies in the middle of a system call that is made in it.

Runs in the controller. Behind the call's instruction stands code that gives back the signal mask and all registers:
nobody comes to it but a process that the kernel let go. Where it has to be mapped, for the calls that map and unmap it
there is no such help, nor for what runs of the runtime while others wait for it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Final

from clew.address import RemoteAddress
from clew.errors import RemoteCallError, TargetError
from clew.process import ptrace
from clew.process.linux import MAP_ANONYMOUS, MAP_PRIVATE, PROT_EXEC, PROT_READ
from clew.process.maps import Mapping
from clew.process.processors.processor import Registers
from clew.process.shared_layout import PAGE_BYTES
from clew.process.stopped_process import StoppedProcess
from clew.process.thread_state import ThreadState, apply_state

__all__ = ["refuge"]

_MARGIN_BYTES: Final = 16


@contextlib.contextmanager
def refuge(process: StoppedProcess, mappings: Sequence[Mapping], state: ThreadState | None = None) -> Iterator[None]:
    """System calls are made in `process`, which has `mappings`, where it survives that its tracer dies: it goes on with
    `state` then, None: as it is now. So it is left in the end.

    That is behind the end of some code, where the last page of its mapping is empty; else in memory mapped for it by
    calls that are made as before, and where that is refused all of them are.
    """
    before = process.registers
    registers, mask = before.copy(), process.signal_mask
    if state is not None:
        mask = state.mask
        apply_state(state, registers, keeps_code=True)
    code = process.processor.refuge_code(registers, mask)
    room = _find_room(process, mappings, len(code))
    address = room or _map_room(process)
    if address is None:
        yield
        return
    try:
        ptrace.set_signal_mask(process.task, mask)
        _go_on_with(process, registers)
        process.note_page(address)
        process.write(address, code)
        waiting = registers.copy()
        waiting.pc = address + len(process.processor.call_instruction)
        _go_on_with(process, waiting)
        # A call changes the registers that it takes and gives alone.
        process.registers = registers
        with process.calling_at(address):
            yield
    finally:
        process.registers = before
        with contextlib.suppress(OSError, TargetError):
            if room is None:
                process.call("munmap", address, PAGE_BYTES)
            ptrace.set_signal_mask(process.task, mask)
            _go_on_with(process, registers)
            if room is not None:
                process.write(address, bytes(len(code)))


def _find_room(process: StoppedProcess, mappings: Sequence[Mapping], size_bytes: int) -> RemoteAddress | None:
    """Nothing but zeros up to the end of a file's code."""
    for mapping in mappings:
        if not mapping.path.startswith("/") or mapping.is_shared or mapping.protection != PROT_READ | PROT_EXEC:
            continue
        with contextlib.suppress(TargetError):  # Its file may be shorter by now.
            page = process.read(RemoteAddress(mapping.end - PAGE_BYTES), PAGE_BYTES)
            used_bytes = len(page.rstrip(b"\0")) + _MARGIN_BYTES
            if PAGE_BYTES - used_bytes >= size_bytes:
                return RemoteAddress(mapping.end - PAGE_BYTES + used_bytes)
    return None


def _map_room(process: StoppedProcess) -> RemoteAddress | None:
    """A page for it, which is written from outside; None where memory that may be executed is refused."""
    protection, flags = PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS
    try:
        return RemoteAddress(process.call("mmap", 0, PAGE_BYTES, protection, flags, -1, 0))
    except RemoteCallError:
        return None


def _go_on_with(process: StoppedProcess, registers: Registers) -> None:
    """From where the process goes on if its tracer dies now."""
    registers = registers.copy()
    registers.leave_call()
    process.processor.set_registers(process.task, registers)
