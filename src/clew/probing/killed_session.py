"""What a session of probes has left in a process when it was killed: its runtime has written the code back, and ended.

Runs in the controller. What it had mapped stays, and threads have its blocks still: another session's handlers would
take these for their own. So threads have none any more, once they are out of its handlers.
"""

from __future__ import annotations

import contextlib
import time
from pathlib import Path
from typing import Final

from clew.address import Pid
from clew.errors import AttachError, RemoteCallError
from clew.probing.spans import Spans, find_frames, is_in
from clew.probing.worker import reap_worker
from clew.process.attachable import find_living_task, has_own_namespace
from clew.process.held_process import HeldProcess
from clew.process.identity import AREA_BYTES, is_inside, is_shared_memory, read_stat
from clew.process.linux import PROT_EXEC, PROT_READ
from clew.process.maps import Mapping, read_maps
from clew.process.processors.chosen import native_processor, processor_of
from clew.process.thread_state import calling_thread

__all__ = ["forget_killed_session"]

_HOLD_SECONDS: Final = 2.0
_PATIENCE_SECONDS: Final = 5.0
_PAUSE_SECONDS: Final = 0.001
_TASK_NAME: Final = b"clew-probes"


def forget_killed_session(pid: Pid) -> None:
    """Have threads know nothing of a session that was killed, if there was one. Raises AttachError, TargetGoneError."""
    mappings = read_maps(find_living_task(pid))
    if not any(is_shared_memory(one) and is_inside(one) for one in mappings):
        return
    area = [(base, base + AREA_BYTES) for base in native_processor().bases]
    # Its copies and handlers are anonymous code, as other things may be.
    spans = [*area, *((one.start, one.end) for one in mappings if _is_anonymous_code(one))]
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while not _forget(pid, area, spans):
        if time.monotonic() > deadline:
            raise AttachError(
                pid, f"process {pid}: threads are in what another clew left there, which was killed; restart it"
            )
        time.sleep(_PAUSE_SECONDS)


def _forget(pid: Pid, area: Spans, spans: Spans) -> bool:
    """Whether no thread has a block any more."""
    held = HeldProcess(pid)
    try:
        held.stop_all(_HOLD_SECONDS)
        is_done = True
        for tid in held.threads:
            processor = processor_of(tid)
            registers = processor.get_registers(tid)
            if not is_in(registers.context, area):
                continue
            if is_in(registers.pc, spans) or find_frames(tid, registers, spans):
                is_done = False
                continue
            registers.context = 0
            processor.set_registers(tid, registers)
        if is_done:
            _reap_tasks(held)
        return is_done
    finally:
        held.let_go()


def _reap_tasks(held: HeldProcess) -> None:
    """The program waits for no task that it does not know."""
    if has_own_namespace(held.pid):
        return
    ended = [one for tid in held.threads for one in _children_of(held.pid, tid) if _is_ended_task(one)]
    if not ended:
        return
    with calling_thread(held.pid, next(iter(held.threads))) as thread, contextlib.suppress(RemoteCallError):
        for one in ended:
            reap_worker(thread, one)


def _children_of(pid: Pid, tid: int) -> list[int]:
    with contextlib.suppress(OSError):
        return [int(one) for one in Path(f"/proc/{pid}/task/{tid}/children").read_text().split()]
    return []


def _is_ended_task(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return read_stat(Pid(pid))[:1] == [b"Z"] and Path(f"/proc/{pid}/comm").read_bytes().strip() == _TASK_NAME
    return False


def _is_anonymous_code(mapping: Mapping) -> bool:
    return not mapping.path and mapping.protection == PROT_READ | PROT_EXEC
