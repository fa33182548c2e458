"""Calls during which only one thread of a held process is of interest: one that it steps over, and one that it makes
because the controller wants it to.

Runs in the controller. What a thread shows of itself is its word.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from clew.address import Pid, RemoteAddress, Tid
from clew.dataclass import dataclass

if TYPE_CHECKING:
    from clew.binary.architectures.architecture import Architecture
    from clew.recording.following.stopped_thread import StoppedThread

__all__ = ["N_VECTORS", "Over", "OwnCall", "find_return_of_call"]

N_VECTORS: Final = 8
"""Vector registers that take arguments."""


@dataclass
class Over:
    """A call that a thread is stepping over: it is to stop at `return_pc` once its stack is as it was."""

    tid: Tid
    return_pc: RemoteAddress
    stack_pointer: int

    def ends_with(self, thread: StoppedThread) -> bool:
        """Whether that is how a thread has come."""
        is_there = thread.tid == self.tid and thread.pc == self.return_pc
        return is_there and thread.stack_pointer >= self.stack_pointer


@dataclass
class OwnCall:
    """A call of the function at `function` with these registers by name, and vector registers (low 64 bits).

    It is left for `return_pc`, the program's code that returns from handlers; `is_own` tells by the stack pointer there
    that it is not a handler that returns.
    """

    tid: Tid
    function: RemoteAddress
    return_pc: RemoteAddress
    registers: dict[str, int]
    vectors: Sequence[int]
    is_own: Callable[[int], bool]

    def ends_with(self, thread: StoppedThread) -> bool:
        """Whether that is how a thread has come."""
        is_there = thread.tid == self.tid and thread.pc == self.return_pc
        return is_there and self.is_own(thread.stack_pointer)

    def registers_of(self, thread: StoppedThread) -> tuple[int, ...]:
        """What the thread begins the call with, in the architecture's order."""
        changed = self.registers | {thread.definition.program_counter: self.function}
        return tuple(changed.get(name, value) & (1 << 64) - 1 for name, value in thread.by_name.items())


def find_return_of_call(pid: Pid, pc: RemoteAddress, architecture: Architecture) -> RemoteAddress | None:
    """Where the call at `pc` of a process returns to; None if it is no call."""
    # Late: capstone is needed by nobody else here.
    from clew.binary.disassembly import call_size

    try:
        with open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
            code = os.pread(memory.fileno(), architecture.max_instruction_bytes, pc)
    except (OSError, OverflowError):
        return None
    size_bytes = call_size(code, architecture)
    return None if size_bytes is None else RemoteAddress(pc + size_bytes)
