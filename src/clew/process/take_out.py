"""The last of leaving a process, all threads of which are stopped: what is the runtime's goes, and all that is the
program's is as it was.

Runs in the controller. The signal actions and mappings are restored, by calls made with one of the threads, and each
thread gets its own registers. Once that is begun the threads would do it by themselves, should this process be killed.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from clew.address import Pid, RemoteAddress, Tid
from clew.dataclass import dataclass
from clew.errors import AttachError, RemoteCallError, TargetError
from clew.process import ptrace
from clew.process.attach import ALL_BUT_TRAP, restore_trap, run_until_parked, send_again, set_stage
from clew.process.attachable import has_own_filter
from clew.process.held_process import HeldProcess
from clew.process.identity import read_status
from clew.process.injection_plan import InjectionPlan
from clew.process.maps import read_maps
from clew.process.refuge import refuge
from clew.process.stopped_process import StoppedProcess
from clew.process.thread_state import ThreadState, give_back, read_state
from clew.protocol._constants import THREAD_STRIDE_BYTES, Stage

__all__ = ["ParkedProcess"]

LEAVE_SECONDS: Final = 20.0

_STACK: Final = struct.Struct("<QIIQ")
_RSEQ_CS_OFFSET: Final = 8
_RSEQ_DESCRIPTOR_BYTES: Final = 32
_SS_DISABLE, _SS_AUTODISARM = 2, 1 << 31


@dataclass(frozen=True)
class ParkedProcess:
    """A process whose threads have `parked` in the runtime, each with its own state, or run outside of it (`native`).

    `labels` are the fields of the runtime's ControlBlock.
    """

    held: HeldProcess
    plan: InjectionPlan
    labels: Mapping[str, int]
    parked: Mapping[Tid, ThreadState]
    native: Collection[Tid]

    @property
    def _pid(self) -> Pid:
        return self.held.pid

    def take_out(self, held_signals: Sequence[int]) -> None:
        """Give back what belongs to the whole process, with one of its threads, and each thread its own state. Signals
        that were held come to the process in the end.
        """
        tids = list(self.held.threads)
        # A process that is killed has its first thread waited for last.
        worker = min(tids, key=lambda tid: (tid in self.native, tid == Tid(self._pid)))
        process = StoppedProcess(self._pid, tid=worker)
        original = process.registers.copy()
        state = self.parked.get(worker) or read_state(process, worker)
        # Until the others are given back the worker goes on in the runtime, whatever is raised: they wait for it there.
        is_last = False
        try:
            announced = [self._find_announced(process, tid) for tid in self.native if tid in self.held.threads]
            # Otherwise this was begun by another clew, which was killed: all that is left to do is below.
            if self.labels["stage"] == Stage.ENTERED:
                self._give_back_process(process)
                process.registers = original
            for tid in self.native:
                if tid in self.held.threads:
                    self._restore_signal_stack(process, tid)
            for other in self.parked.values():
                if other.tid in self.held.threads and other.tid != worker:
                    give_back(other)
            is_last = True
            with self._calling(process, state):
                restore_trap(process, self.plan)
                for address, size_bytes in self.plan.regions:
                    process.call("munmap", address, size_bytes)
            for place, descriptor in announced:
                # The kernel would kill the thread for a descriptor that it can't read.
                if descriptor and not _is_readable(process, descriptor):
                    process.write(place, bytes(8))
        finally:
            process.close()
            if is_last or worker in self.native:
                give_back(state)
        send_again(self._pid, [*held_signals, *process.held_signals])

    def _give_back_process(self, process: StoppedProcess) -> None:
        """Let a thread do what the runtime does in the end for the process as a whole; its registers stay there."""
        worker = Tid(process.task)
        extended_state = process.processor.get_extended_state(worker)
        set_stage(process, self.plan, Stage.LEAVING)
        if worker in self.native:
            ptrace.set_signal_mask(worker, ALL_BUT_TRAP)
            process.registers = process.registers.copy()
            process.registers.begin(self.labels["leave_pc"])
            process.registers.stack_pointer = self.plan.stack_end
            process.registers.choose_own_code()
        run_until_parked(process, LEAVE_SECONDS)
        # What is left is the action for SIGTRAP: into that call and out of it.
        for _ in range(2):
            process.run_to_syscall_stop()
        process.processor.set_extended_state(worker, extended_state)

    @contextlib.contextmanager
    def _calling(self, thread: StoppedProcess, state: ThreadState) -> Iterator[None]:
        """Calls are made with `thread`, which goes on with `state` should this process be killed.

        Under a filter of the program's they are made where it has no say, and the thread is not safe there.
        """
        if has_own_filter(read_status(f"{self._pid}/task/{thread.task}") or {}):
            with thread.calling_at(RemoteAddress(self.labels["call_pc"])):
                yield
        else:
            with refuge(thread, read_maps(Pid(thread.task)), state):
                yield

    def _find_announced(self, memory: StoppedProcess, tid: Tid) -> tuple[RemoteAddress, RemoteAddress]:
        """Where a thread announces restartable sequences (rseq(2)), and the descriptor there, if it can be read.

        A thread that was released may have one of the runtime's there still.
        """
        registration = ptrace.get_rseq(tid)
        if registration is None:
            return RemoteAddress(0), RemoteAddress(0)
        place = RemoteAddress(registration[0] + _RSEQ_CS_OFFSET)
        with contextlib.suppress(TargetError):
            descriptor = RemoteAddress(int.from_bytes(memory.read(place, 8), "little"))
            if descriptor and _is_readable(memory, descriptor):
                return place, descriptor
        return place, RemoteAddress(0)

    def _restore_signal_stack(self, memory: StoppedProcess, tid: Tid) -> None:
        """A thread that was released has the runtime's alternate stack still."""
        thread = StoppedProcess(self._pid, tid=tid)
        state = read_state(thread, tid)
        room = self.plan.scratch
        try:
            with self._calling(thread, state):
                thread.call("sigaltstack", 0, room)
                address, _, _, _ = _STACK.unpack(memory.read(room, _STACK.size))
                if self.plan.is_private(address):
                    base = self.plan.private_base
                    context = address - (address - base) % THREAD_STRIDE_BYTES
                    place = RemoteAddress(context + self.labels["signal_stack_offset"])
                    start, flags, _, size_bytes = _STACK.unpack(memory.read(place, _STACK.size))
                    flags = flags & _SS_AUTODISARM | (0 if size_bytes else _SS_DISABLE)
                    memory.write(room, _STACK.pack(start, flags, 0, size_bytes))
                    thread.call("sigaltstack", room, 0)
        except RemoteCallError as error:
            raise AttachError(self._pid, error.message) from error
        finally:
            give_back(state)
            thread.close()


def _is_readable(memory: StoppedProcess, descriptor: RemoteAddress) -> bool:
    try:
        memory.read(descriptor, _RSEQ_DESCRIPTOR_BYTES)
    except TargetError:
        return False
    return True
