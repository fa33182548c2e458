"""Brings the threads of a held process to the runtime's dispatcher, by the shortest way from where each is.

Runs in the controller. A thread in the code cache is sent a signal that makes the runtime leave the cache at the
block's end; one on its way through the gates finds a mark in its context.
"""

from __future__ import annotations

import errno
import signal
import struct
from typing import Final

from clew.address import RemoteAddress, Tid
from clew.errors import AttachError, TargetError
from clew.process import ptrace
from clew.process.attach import read_labels
from clew.process.attachable import has_own_namespace, tid_inside
from clew.process.held_process import HeldProcess
from clew.process.injection_plan import InjectionPlan
from clew.process.linux import queue_signal
from clew.process.processors.processor import Registers
from clew.process.stopped_process import StoppedProcess
from clew.process.thread_state import ERESTART_RESTARTBLOCK
from clew.protocol._constants import DETACH_CODE, THREAD_STRIDE_BYTES
from clew.protocol.layout import field_offset

__all__ = ["Fetcher"]

_PENDING_LEAVE: Final = 2
_SIGINFO_BYTES: Final = 128
_UNBLOCKED: Final = (
    *(signal.SIGSEGV, signal.SIGBUS, signal.SIGFPE, signal.SIGILL, signal.SIGTRAP, signal.SIGSYS),
    *(signal.SIGKILL, signal.SIGSTOP),
)
_LENT_MASK: Final = (1 << 64) - 1 - sum(1 << number - 1 for number in _UNBLOCKED)
"""What is blocked while the processor executes an instruction where it stands in the program."""

_SIGTRAP_BIT: Final = 1 << signal.SIGTRAP - 1


class Fetcher:
    """For the process `held`, all threads of which are stopped, and which has the runtime as `plan` says.

    `labels` are the fields of the runtime's ControlBlock; `memory` is the process's. To be closed.
    """

    def __init__(self, held: HeldProcess, plan: InjectionPlan) -> None:
        self._held = held
        self._plan = plan
        self._pid = held.pid
        self._has_own_namespace = has_own_namespace(self._pid)
        self.memory = StoppedProcess(self._pid, tid=next(iter(held.threads)))
        self.labels = read_labels(self.memory, plan)
        self.fetched: set[Tid] = set()
        """Threads whose signal has not arrived yet."""
        self._known_contexts: dict[int, int] = {}

    def get_registers(self, tid: Tid) -> Registers:
        """Those of a stopped thread of the process."""
        return self.memory.processor.get_registers(tid)

    def close(self) -> None:
        """Let go of the process's memory."""
        self.memory.close()

    def read_labels(self) -> None:
        """Read the labels again if the runtime was at its very beginning before, where it has told nothing."""
        if not self.labels["parked_pc"]:
            self.labels = read_labels(self.memory, self._plan)

    def tid_inside(self, tid: Tid) -> Tid:
        """The number that the thread knows itself by."""
        return tid_inside(tid) if self._has_own_namespace else tid

    def is_in_runtime(self, registers: Registers) -> bool:
        """Whether a stopped thread is under the runtime, as far as its registers tell."""
        return self._plan.is_private(registers.context) or self._plan.is_in_image(registers.pc)

    def is_lent(self, tid: Tid, registers: Registers) -> bool:
        """Whether a thread stopped outside of the runtime executes one instruction there (`step_native`).

        The trap behind it brings the thread back. Nobody else traps with exactly these signals blocked.
        """
        return registers.is_stepping and ptrace.get_signal_mask(tid) == _LENT_MASK

    def find_native(self, tid: Tid) -> int | None:
        """The context of a thread that runs the program's own code because it is not followed; None: it is no such
        thread. Its registers do not tell."""
        number = self.tid_inside(tid)
        for contexts in (self._contexts, self._read_contexts):
            context = contexts().get(number)
            if context is not None and self._peek_u32(context + self.labels["tid_offset"]) == number:
                return context if self._peek_u32(context + self.labels["native_offset"]) else None
        return None

    def _read_contexts(self) -> dict[int, int]:
        """The contexts of all slots that were ever used, by the number of their threads."""
        status = self._peek_u32(self._plan.shared_base + field_offset("SessionHeader", "status_offset"))
        n_told = self._peek_u32(self._plan.shared_base + status + field_offset("StatusPage", "slots_used"))
        n_slots = min(n_told, self._plan.private_bytes // THREAD_STRIDE_BYTES)
        places = [self._plan.private_base + slot * THREAD_STRIDE_BYTES for slot in range(n_slots)]
        numbers = [self._peek_u32(place + self.labels["tid_offset"]) for place in places]
        self._known_contexts = dict(zip(numbers, places, strict=True))
        return self._known_contexts

    def _contexts(self) -> dict[int, int]:
        return self._known_contexts

    def _peek_u32(self, address: int) -> int:
        """A number in memory that may not be there: who was to bring the runtime in may have been killed; 0 then."""
        try:
            return self._read_u32(address)
        except TargetError:
            return 0

    def owns_context(self, tid: Tid, registers: Registers) -> bool:
        """Whether the registers lead to its own context: one that is just starting has its parent's still."""
        if not self._plan.is_private(registers.context):
            return False
        return self._read_u32(registers.context + self.labels["tid_offset"]) == self.tid_inside(tid)

    def mark(self, context: int) -> None:
        """Have the thread with this context leave the gates for the dispatcher."""
        address = context + self.labels["pending_offset"]
        self.write_u32(address, self._read_u32(address) | _PENDING_LEAVE)

    def must_be_fetched(self, registers: Registers) -> bool:
        """Whether a thread may stay for long where it is: in the code cache, or about to make a system call.

        One that is to go on in a call that the kernel made a note for comes to that by itself; the return from a
        signal's handler would make it fail (restore_sigcontext, in the kernel's signal code for the processor).
        """
        is_in_gates = self.labels["gates_start"] <= registers.pc < self.labels["gates_end"]
        if self._plan.is_in_image(registers.pc) and not is_in_gates:
            return False
        return self._read_u32(registers.context + self.labels["call_code_offset"]) != ERESTART_RESTARTBLOCK

    def fetch(self, tid: Tid) -> None:
        """Send the signal that makes the runtime leave the code cache at the block's end."""
        if tid in self.fetched:
            return
        mask = ptrace.get_signal_mask(tid)
        # Behind si_pid and si_uid, which the kernel may write itself.
        info = struct.pack("<iii12xQQ", signal.SIGTRAP, 0, -DETACH_CODE, DETACH_CODE, mask).ljust(_SIGINFO_BYTES, b"\0")
        # First: a signal that stayed blocked would come, should this process be killed, where the mask is another one.
        ptrace.set_signal_mask(tid, mask & ~_SIGTRAP_BIT)
        try:
            queue_signal(self._pid, tid, signal.SIGTRAP, info)
        except OSError as error:
            if error.errno == errno.ESRCH:
                return
            raise AttachError(self._pid, f"process {self._pid}: can't be sent a signal ({error.strerror})") from error
        self.fetched.add(tid)

    def write_u32(self, address: int, value: int) -> None:
        """Write into the process's memory."""
        self.memory.write(RemoteAddress(address), value.to_bytes(4, "little"))

    def _read_u32(self, address: int) -> int:
        return int.from_bytes(self.memory.read(RemoteAddress(address), 4), "little")
