"""A process held by ptrace: its registers, its memory, and system calls made in it.

Runs in the controller. The process is stopped between instructions, outside any system call, before it runs its own
code; what is done with it there is not known here. Signals that come meanwhile are blocked, and stay what they are:
who sent them, with which value, to the thread or to the process.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import signal
import time
from collections.abc import Iterator
from types import TracebackType
from typing import Final

from clew.address import Pid, RemoteAddress, Tid
from clew.errors import RemoteCallError, StuckError, TargetError, TargetGoneError
from clew.process import ptrace
from clew.process.linux import PROT_EXEC, number_of_call
from clew.process.maps import read_maps
from clew.process.processors.chosen import processor_of
from clew.process.processors.processor import Registers
from clew.process.waiting import MAX_PAUSE_SECONDS, abandon, wait_stop

__all__ = ["StoppedProcess"]

ALL_SIGNALS: Final = (1 << 64) - 1
ALL_BITS: Final = (1 << 64) - 1
KILL_SECONDS: Final = 1.0
AGAIN_SECONDS: Final = 0.5

_MAX_ERRNO: Final = 4095


class StoppedProcess:
    """A traced process, stopped. Leave it by `detach` or `kill`; as a context manager it is killed on errors.

    System calls run at an instruction for them that the process has already (the vDSO's), so that nothing of its code
    is written to; where there is none, the bytes at its pc are replaced and put back.
    """

    def __init__(self, pid: Pid, signal_mask: int | None = None, tid: Tid | None = None) -> None:
        """`signal_mask` is the application's, None: what is set now. `tid`: the thread that is made use of, if that is
        not the first.
        """
        self.pid = pid
        self.task: ptrace.TaskId = pid if tid is None else tid
        self.processor = processor_of(self.task)
        self.registers = self.processor.get_registers(self.task)
        """The application's registers; set in the process when it is left."""
        self._memory_fd = os.open(f"/proc/{self.task}/mem", os.O_RDWR | os.O_CLOEXEC)
        self.held_signals: list[int] = []
        """Those that can't be blocked and came; they reach it when it is left by `detach`."""
        self.written_pages: dict[int, int] = {}
        """By their addresses hashes of the pages of its code that were written to for a while."""
        self._signal_mask = signal_mask
        self._is_blocked = False
        self._is_stuck = False
        self._syscall_address: RemoteAddress | None = None

    def __enter__(self) -> StoppedProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None and self._memory_fd >= 0:
            self.kill()

    def check_width(self) -> None:
        """Raises TargetError if it is in 32-bit code."""
        if not self.registers.is_in_own_code:
            raise TargetError(self.pid, f"process {self.pid}: a 32-bit program; clew follows 64-bit programs")

    def read(self, address: RemoteAddress, size_bytes: int) -> bytes:
        """Memory of the process. Raises TargetError if not all of it can be read."""
        try:
            data = os.pread(self._memory_fd, size_bytes, address)
        except (OSError, OverflowError) as error:
            raise TargetError(self.pid, f"process {self.pid}: can't read memory at {address:#x}") from error
        if len(data) != size_bytes:
            raise TargetError(self.pid, f"process {self.pid}: can't read {size_bytes} bytes at {address:#x}")
        return data

    def write(self, address: RemoteAddress, data: bytes | bytearray | memoryview) -> None:
        """Write memory of the process, whatever its protection. Raises TargetError if not all of it can be written."""
        view = memoryview(data)
        while view:
            try:
                written = os.pwrite(self._memory_fd, view, address)
            except (OSError, OverflowError) as error:
                raise TargetError(self.pid, f"process {self.pid}: can't write memory at {address:#x}") from error
            if not written:
                # Its memory is gone: it was killed (mem_rw in the kernel's fs/proc/base.c).
                raise TargetError(self.pid, f"process {self.pid}: can't write memory at {address:#x}")
            view = view[written:]
            address = RemoteAddress(address + written)

    def call_at(self, address: RemoteAddress) -> None:
        """Make system calls at this instruction for them from now on."""
        self._syscall_address = address

    def note_page(self, address: RemoteAddress) -> None:
        """Keep what a page of code holds that is about to be written to, and will hold again."""
        page = RemoteAddress(address & -mmap.PAGESIZE)
        if page not in self.written_pages:
            self.written_pages[page] = hash(self.read(page, mmap.PAGESIZE))

    @contextlib.contextmanager
    def calling_at(self, address: RemoteAddress) -> Iterator[None]:
        """Make system calls at the instruction for them at `address` meanwhile."""
        before, self._syscall_address = self._syscall_address, address
        try:
            yield
        finally:
            self._syscall_address = before

    @property
    def signal_mask(self) -> int:
        """The application's signal mask."""
        return ptrace.get_signal_mask(self.task) if self._signal_mask is None else self._signal_mask

    def call(self, name: str, *arguments: int) -> int:
        """Make system call `name` in the process. Raises RemoteCallError with its errno if it fails."""
        registers = self.registers.copy()
        registers.set_call(number_of_call(name, self.processor.architecture), arguments)
        registers.choose_own_code()
        address = self._find_syscall_instruction()
        replaced, instruction = b"", self.processor.call_instruction
        if address is None:
            address = RemoteAddress(self.registers.pc)
            replaced = self.read(address, len(instruction))
            self.note_page(address)
            self.write(address, instruction)
        registers.pc = address
        self.processor.set_registers(self.task, registers)
        self.run_to_syscall_stop()
        self.run_to_syscall_stop()
        result = self.processor.get_registers(self.task).result
        if replaced:
            self.write(address, replaced)
        if -_MAX_ERRNO <= result < 0:
            raise RemoteCallError(self.pid, name, -result)
        return result & ALL_BITS

    def run_to_syscall_stop(self) -> None:
        """Let it run until it enters or leaves a system call. Signals that arrive are kept until `detach`.

        Raises StuckError if it does not come there, and at once if it did not before. It is left as ever then.
        """
        if self._is_stuck:
            raise StuckError(self.pid, f"process {self.pid}: does not go on")
        self._block_signals()
        while True:
            ptrace.resume_to_syscall(self.task)
            try:
                status = wait_stop(self.task)
            except StuckError:
                self._is_stuck = True
                self._stop_again()
                raise
            if not os.WIFSTOPPED(status):
                raise TargetGoneError(self.pid, f"process {self.pid}: ended before its first instruction", status)
            stop_signal = os.WSTOPSIG(status)
            if stop_signal == ptrace.SYSCALL_STOP_SIGNAL:
                return
            if status >> 16 == 0 and ptrace.is_forced(self.task, stop_signal):
                self.held_signals.append(stop_signal)
                raise TargetError(self.pid, f"process {self.pid}: gets signal {stop_signal} where it was stopped")
            if status >> 16 == 0 or (status >> 16 == ptrace.EVENT_STOP and stop_signal != signal.SIGTRAP):
                self.held_signals.append(stop_signal)

    def detach(self) -> None:
        """Let the process run on, with `registers`, without a tracer; signals held back reach it now."""
        registers = self.registers.copy()
        registers.leave_call()
        self.close()
        try:
            self._give_back(registers)
            ptrace.detach(self.task)
        except ProcessLookupError:
            if self._is_stuck:
                abandon(self.task, lambda: self._give_back(registers))

    def _stop_again(self) -> None:
        """Have it stop once more, so that it can be left: a frozen one stops where it is."""
        with contextlib.suppress(ProcessLookupError, ChildProcessError, StuckError):
            ptrace.interrupt(self.task)
            wait_stop(self.task, limit_seconds=AGAIN_SECONDS)

    def _give_back(self, registers: Registers) -> None:
        self.processor.set_registers(self.task, registers)
        if self._signal_mask is not None:
            ptrace.set_signal_mask(self.task, self._signal_mask)
        for held in dict.fromkeys(self.held_signals):
            # Sent before it runs on, so that it arrives; pending, not delivered: ptrace would show it to us.
            os.kill(self.pid, held)

    def kill(self) -> None:
        """Kill the process and collect it, unless the kernel keeps it."""
        self.close()
        with contextlib.suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            deadline = time.monotonic() + KILL_SECONDS
            while time.monotonic() < deadline:
                status = ptrace.try_wait(self.task)
                if status is None:
                    time.sleep(MAX_PAUSE_SECONDS / 10)
                elif os.WIFSTOPPED(status):
                    ptrace.cont(self.task)
                else:
                    return

    def close(self) -> None:
        """Let go of its memory; it stays stopped."""
        if self._memory_fd >= 0:
            os.close(self._memory_fd)
            self._memory_fd = -1

    def _block_signals(self) -> None:
        if not self._is_blocked:
            if self._signal_mask is None:
                self._signal_mask = ptrace.get_signal_mask(self.task)
            ptrace.set_signal_mask(self.task, ALL_SIGNALS)
            self._is_blocked = True

    def _find_syscall_instruction(self) -> RemoteAddress | None:
        if self._syscall_address is None:
            self._syscall_address = RemoteAddress(0)
            for mapping in read_maps(Pid(self.task)):
                if mapping.path == "[vdso]" and mapping.protection & PROT_EXEC:
                    code = self.read(mapping.start, min(mapping.end - mapping.start, 1 << 16))
                    offset = code.find(self.processor.call_instruction)
                    if offset >= 0:
                        self._syscall_address = RemoteAddress(mapping.start + offset)
        return self._syscall_address or None
