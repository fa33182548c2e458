"""Takes the probes, and the runtime's task, out of a process: it is as if they had never been there.

Runs in the controller. Threads are held for it. One that is in a copy of displaced instructions is moved to where it
would be without; one that is in a handler is let run on until it is out of there. Where something of a thread's stack
leads to a copy, as what a signal's handler will return to, the copies stay.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import time
from collections.abc import Collection
from typing import Final

from clew.address import Pid, RemoteAddress
from clew.errors import RemoteCallError, TargetError, TargetGoneError
from clew.probing.code_writer import has_trap_pending
from clew.probing.placing import Placing
from clew.probing.probed_process import ProbedProcess
from clew.probing.spans import Spans, find_frames, is_in
from clew.probing.worker import reap_worker
from clew.process.attachable import has_own_filter
from clew.process.held_process import HeldProcess
from clew.process.identity import read_status
from clew.process.maps import read_maps
from clew.process.processors.chosen import processor_of
from clew.process.thread_state import calling_thread

__all__ = ["find_children", "has_probes_of", "leave", "take_out", "wait_for_end"]

_HOLD_SECONDS: Final = 2.0
_PATIENCE_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 0.001
_END_SECONDS: Final = 5.0
_MADV_DONTNEED: Final = 4


def leave(process: ProbedProcess, placing: Placing) -> tuple[list[str], list[Pid]]:
    """Take everything out, of forks' children as well, which may be all that is left; what stays, for people, and those
    children. It may be tried again. Raises TargetError, AttachError."""
    left: list[str] = []
    children: list[Pid] = []
    placing.begin_leaving()
    if process.is_served():
        with contextlib.suppress(TargetGoneError):
            left += _leave_one(process.pid, process, placing)
    # Nothing inherits probes from what has none; children make children until they are left themselves.
    while new := [pid for pid in find_children([process])[process.pid] if pid not in children]:
        children += new
        for pid in new:
            with contextlib.suppress(TargetGoneError):
                left += _leave_one(pid, process, placing)
    return left, children


def find_children(processes: Collection[ProbedProcess]) -> dict[Pid, list[Pid]]:
    """Of each of these the forks' children, and theirs, that have its probes: by the memory that they share."""
    own = {_identity_of(one): one.pid for one in processes}
    # The controller has the memory, too.
    others = {os.getpid(), *(one.pid for one in processes), *(one.task for one in processes)}
    children: dict[Pid, list[Pid]] = {pid: [] for pid in own.values()}
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in others:
            for identity in _shared_by(Pid(int(name))) & own.keys():
                children[own[identity]].append(Pid(int(name)))
    return children


def has_probes_of(process: ProbedProcess, pid: Pid) -> bool:
    """Whether a process has the probes of another one."""
    return _identity_of(process) in _shared_by(pid)


def _identity_of(process: ProbedProcess) -> tuple[int, int]:
    shared = os.fstat(process.shared.fd)
    return shared.st_ino, shared.st_dev


def _shared_by(pid: Pid) -> set[tuple[int, int]]:
    """The files that a process has mapped."""
    try:
        return {(one.inode, one.device) for one in read_maps(pid)}
    except OSError:
        return set()


def _leave_one(pid: Pid, process: ProbedProcess, placing: Placing) -> list[str]:
    plan = process.plan
    spans = [(plan.image_base, plan.image_base + plan.image_bytes), *placing.chunk_spans()]
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while True:
        held = HeldProcess(pid)
        try:
            held.stop_all(_HOLD_SECONDS)
            if held.has_executed:
                raise TargetGoneError(pid, f"process {pid}: it has executed another program")
            is_own = placing.restore(pid)
            is_clear = _move_out(held, placing, spans)
            if is_clear or time.monotonic() > deadline:
                return take_out(held, process, placing, is_clear=is_clear and is_own)
        except (ProcessLookupError, FileNotFoundError) as error:
            raise TargetGoneError(pid, f"process {pid}: ended meanwhile") from error
        finally:
            held.let_go()
        time.sleep(_PAUSE_SECONDS)


def _move_out(held: HeldProcess, placing: Placing, spans: Spans) -> bool:
    """Have threads in copies be in the code; whether none is left anywhere else, nor will come back there."""
    is_clear = True
    for tid in held.threads:
        processor = processor_of(tid)
        registers = processor.get_registers(tid)
        if has_trap_pending(held.pid, tid):
            # It has come to a place that trapped, and will be led to a copy.
            is_clear = False
            continue
        if is_in(registers.pc, spans):
            origin = placing.find_origin(registers.pc)
            if origin is None:
                is_clear = False
                continue
            registers.pc = origin.address
            registers.stack_pointer += origin.stack_bytes
            processor.set_registers(tid, registers)
        is_clear = is_clear and not find_frames(tid, registers, spans)
    return is_clear


def take_out(held: HeldProcess, process: ProbedProcess, placing: Placing, *, is_clear: bool) -> list[str]:
    """Have the runtime's task and what was mapped be no more, where code is as it was; what stays, for people.
    `is_clear`: nothing leads to copies any more. Raises TargetError, OSError."""
    is_first = held.pid == process.pid
    if is_first:
        process.sites.leave()
        wait_for_end(process)
    for tid in held.threads:
        processor = processor_of(tid)
        registers = processor.get_registers(tid)
        if process.plan.is_private(registers.context):
            registers.context = 0
            processor.set_registers(tid, registers)
    callers = [one for one in held.threads if not has_own_filter(read_status(one) or {})]
    if not callers:
        return [f"process {held.pid}: may be killed by its seccomp filter for a system call: what was mapped stays"]
    with calling_thread(held.pid, callers[0]) as thread:
        if is_first:
            with contextlib.suppress(RemoteCallError):
                reap_worker(thread, process.task_inside)
        if placing.traps.is_installed:
            is_clear = placing.traps.take_out(thread) and is_clear
        for page in placing.pages_of_file(thread):
            thread.call("madvise", RemoteAddress(page), mmap.PAGESIZE, _MADV_DONTNEED)
        if not is_clear:
            return [f"process {held.pid}: some of what threads come back to stays mapped"]
        mapped = {(one.start, one.end) for one in read_maps(held.pid)}
        for start, end in placing.chunk_spans():
            # A child may be older than it, and have something of its own there.
            if is_first or any(low <= start and end <= high for low, high in mapped):
                thread.call("munmap", RemoteAddress(start), end - start)
        for address, size_bytes in process.plan.regions:
            thread.call("munmap", address, size_bytes)
    return []


def wait_for_end(process: ProbedProcess) -> None:
    """Wait until the runtime's task is no more: a zombie, for its parent waits for nobody that it does not know."""
    deadline = time.monotonic() + _END_SECONDS
    while process.is_served():
        if time.monotonic() > deadline:
            raise TargetError(process.pid, f"process {process.pid}: what serves the probes does not end")
        time.sleep(_PAUSE_SECONDS)
