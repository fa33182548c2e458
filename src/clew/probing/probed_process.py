"""A process whose own code leads to probes: the runtime's task in it, its handlers, and the places that lead there.

Runs in the controller, all of it in one thread (ptrace). The process is not followed: it executes its own code.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import Final

from clew.address import Pid, RemoteAddress
from clew.dataclass import replace
from clew.errors import InjectionError, RemoteCallError, TargetError
from clew.probing.killed_session import forget_killed_session
from clew.probing.site_table import SiteTable
from clew.probing.worker import clone_worker, stopped_worker
from clew.process import ptrace
from clew.process.attachable import check_attachable
from clew.process.held_process import HeldProcess
from clew.process.identity import has_exited
from clew.process.inject import map_runtime, start_block
from clew.process.injection_plan import InjectionPlan, layout_for_limits, plan_injection
from clew.process.maps import read_maps
from clew.process.runtime_image import RuntimeImage
from clew.process.shared_layout import SharedLayout
from clew.process.shared_memory import HeaderSettings, SharedFile, SharedMemory
from clew.process.stopped_process import StoppedProcess
from clew.process.thread_state import calling_thread
from clew.protocol._constants import UNWIND_BYTES, Mode, OnFull, Role, RuntimeState
from clew.protocol.layout import field_offset

__all__ = ["ProbedProcess"]

_MAX_THREADS: Final = 512
_ROOM_FOR_NEWEST: Final = 4
"""A ring of which the newest bytes can be had has so many times as many: half of it may be written to meanwhile."""
_HOLD_SECONDS: Final = 2.0
_START_SECONDS: Final = 20.0


_PR_GET_TSC, _TSC_SIGSEGV = 25, 2
_RED_ZONE_BYTES: Final = 128


def _has_clock(process: StoppedProcess) -> bool:
    """Whether a stopped thread may have time stamps: where it may not it dies of one (prctl(2), PR_SET_TSC). Threads
    and programs have it from the one that makes them."""
    at = RemoteAddress((process.registers.stack_pointer - _RED_ZONE_BYTES & -8) - 8)
    try:
        before = process.read(at, 8)
    except TargetError:
        # Its stack ends there.
        return True
    try:
        process.call("prctl", _PR_GET_TSC, at)
        return int.from_bytes(process.read(at, 4), "little") != _TSC_SIGSEGV
    except RemoteCallError:
        # This processor's kernel has no such thing.
        return True
    finally:
        process.write(at, before)


def _power_of_two(number: int) -> int:
    """The next one that is no less."""
    return 1 << max(number - 1, 1).bit_length()


class ProbedProcess:
    """Process `pid`, with the runtime's task in it. Leave it by `close`."""

    def __init__(self, pid: Pid, task: Pid, shared: SharedMemory, plan: InjectionPlan) -> None:
        self.pid, self.task, self.shared, self.plan = pid, task, shared, plan
        self.sites = SiteTable(shared)
        self.has_clock = True
        """Its threads may have time stamps, as far as one of them tells."""
        self._memory_fd = os.open(f"/proc/{task}/mem", os.O_RDWR | os.O_CLOEXEC)

    @classmethod
    def attach(cls, pid: Pid, image: RuntimeImage, newest_bytes: int = 0) -> ProbedProcess:
        """Begin in a running process. With `newest_bytes` each thread writes over its oldest records, and so many bytes
        of the newest can be had at any time. Raises AttachError, InjectionError, TargetGoneError."""
        check_attachable(pid)
        forget_killed_session(pid)
        held = HeldProcess(pid)
        try:
            held.stop_all(_HOLD_SECONDS)
            with calling_thread(pid, next(iter(held.threads))) as process:
                worker = clone_worker(process)
                has_clock = _has_clock(process)
        finally:
            held.let_go()
        return cls._begin(pid, worker, image, newest_bytes, has_clock=has_clock)

    @classmethod
    def enter(cls, process: StoppedProcess, image: RuntimeImage, newest_bytes: int = 0) -> ProbedProcess:
        """Begin in a process that is stopped before its first instruction; it stays so."""
        ptrace.set_options(process.task, ptrace.OPTION_TRACESYSGOOD | ptrace.OPTION_TRACECLONE | ptrace.OPTION_EXITKILL)
        worker = clone_worker(process)
        ptrace.set_options(process.task, ptrace.OPTION_TRACESYSGOOD | ptrace.OPTION_EXITKILL)
        return cls._begin(process.pid, worker, image, newest_bytes, has_clock=_has_clock(process))

    @classmethod
    def _begin(
        cls, pid: Pid, worker: StoppedProcess, image: RuntimeImage, newest_bytes: int, *, has_clock: bool
    ) -> ProbedProcess:
        """Map the runtime in the task, which is stopped, and let it run."""
        task = Pid(worker.task)
        with worker:
            mappings = read_maps(task)
            wanted = SharedLayout(max_threads=_MAX_THREADS, counter_bytes=1 << 20, has_probes=True)
            if newest_bytes:
                # Others may come who are told everything, out of the same rings.
                ring_bytes = max(_ROOM_FOR_NEWEST * _power_of_two(newest_bytes), wanted.ring_bytes)
                wanted = replace(wanted, ring_bytes=ring_bytes)
            layout, heap_bytes = layout_for_limits(wanted, pid)
            plan = plan_injection(image.memory_bytes, layout, heap_bytes, mappings, pid, bases=worker.processor.bases)
            settings = HeaderSettings(Mode.COUNTS, on_full=OnFull.OVERWRITE if newest_bytes else OnFull.DROP)
            block = start_block(worker, worker.registers, plan, [], Role.PROBES)
            shared = map_runtime(
                worker, image, plan, layout, block, lambda fd: SharedMemory(SharedFile(layout, fd), settings)
            )
            worker.registers.begin(plan.image_base + image.entry_offset)
            worker.registers.argument = plan.start_block
            worker.detach()
        deadline = time.monotonic() + _START_SECONDS
        while (state := shared.status_u32("state")) != RuntimeState.RUNNING:
            if state == RuntimeState.FAILED or time.monotonic() > deadline or not os.path.exists(f"/proc/{task}"):
                raise InjectionError(pid, f"process {pid}: what serves the probes could not start")
            time.sleep(0.0005)
        process = cls(pid, task, shared, plan)
        process.has_clock = has_clock
        return process

    def stopped_worker(self) -> AbstractContextManager[StoppedProcess]:
        """The runtime's task, stopped meanwhile, to make system calls in it. Raises TargetGoneError if it is gone."""
        at = self.shared.layout.status_offset + field_offset("StatusPage", "task_call")
        return stopped_worker(self.task, RemoteAddress(int.from_bytes(self.shared.map[at : at + 8], "little")))

    @property
    def task_inside(self) -> int:
        """What the runtime's task is called in the process' own pid namespace."""
        return self.shared.status_u32("probe_task")

    def protect_unwinding(self) -> None:
        """From now on the process can only read the tables by which it unwinds. Raises TargetGoneError."""
        start = RemoteAddress(self.plan.shared_base + self.shared.layout.unwind_offset)
        # Where that is refused they can be written to, as all that is shared.
        with contextlib.suppress(RemoteCallError), self.stopped_worker() as worker:
            worker.call("mprotect", start, UNWIND_BYTES, mmap.PROT_READ)

    def is_served(self) -> bool:
        """Whether the runtime's task runs still."""
        return not has_exited(self.task)

    def close(self) -> None:
        """Let go of it: of the process nothing is changed by that."""
        self.sites.close()
        os.close(self._memory_fd)
        self.shared.close()

    def read(self, address: int, size_bytes: int) -> bytes:
        """Memory of the process. Raises TargetError."""
        try:
            return os.pread(self._memory_fd, size_bytes, address)
        except OSError as error:
            raise TargetError(self.pid, f"process {self.pid}: can't read memory at {address:#x}") from error

    def write_all(self, writes: Iterable[tuple[int, bytes]]) -> None:
        """Write memory at many addresses, one after the other, whatever protects it. Raises TargetError."""
        fd, write = self._memory_fd, os.pwrite
        for address, data in writes:
            try:
                n = write(fd, data, address)
            except OSError as error:
                raise TargetError(self.pid, f"process {self.pid}: can't write memory at {address:#x}") from error
            if n != len(data):
                raise TargetError(self.pid, f"process {self.pid}: can't write memory at {address:#x}")

    def write(self, address: int, data: bytes) -> None:
        """Write memory of the process. Raises the same."""
        self.write_all(((address, data),))
