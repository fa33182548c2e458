"""Lets a program that was started load its libraries, up to its own first instruction.

Runs in the controller, in the thread that traces it.
"""

from __future__ import annotations

import os
import signal
from typing import TYPE_CHECKING, Final

from clew.address import RemoteAddress
from clew.errors import TargetGoneError
from clew.probing.native import TRAP_BYTE
from clew.process import ptrace
from clew.process.maps import read_auxiliary_vector
from clew.process.waiting import wait_stop

if TYPE_CHECKING:
    from clew.process.stopped_process import StoppedProcess

__all__ = ["run_to_entry"]

_AT_ENTRY: Final = 9
_START_SECONDS: Final = 60.0


def run_to_entry(process: StoppedProcess) -> None:
    """Have a process that is stopped in front of its first instruction, which is the dynamic linker's if it has one, be
    stopped in front of the program's own: what it needs is loaded then, and its constructors were called. Raises
    TargetGoneError, TargetError, StuckError."""
    entry = RemoteAddress(read_auxiliary_vector(process.pid)[_AT_ENTRY])
    if process.registers.pc == entry:
        return
    before = process.read(entry, 1)
    process.write(entry, bytes((TRAP_BYTE,)))
    number = 0
    while True:
        ptrace.cont(process.task, number)
        status = wait_stop(process.task, limit_seconds=_START_SECONDS)
        if not os.WIFSTOPPED(status):
            raise TargetGoneError(process.pid, f"process {process.pid}: ended before its first instruction", status)
        number = os.WSTOPSIG(status) if status >> 16 == 0 else 0
        if number == signal.SIGTRAP:
            registers = process.processor.get_registers(process.task)
            if registers.pc == entry + 1:
                break
    process.write(entry, before)
    registers.pc = entry
    process.registers = registers
