"""Makes all threads of a process that has the runtime come to its dispatcher soon, where they find what they are to do.

Runs in the controller. Threads that wait in a system call stay there: they come to the dispatcher when that returns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from clew.address import Pid
from clew.errors import AttachError, TargetGoneError
from clew.process.detach import is_inside
from clew.process.fetcher import Fetcher
from clew.process.held_process import HeldProcess
from clew.process.injection_plan import InjectionPlan
from clew.process.processors.chosen import processor_of

__all__ = ["bring_in", "is_outside"]

PATIENCE_SECONDS: Final = 2.0


def bring_in(
    pid: Pid,
    plan: InjectionPlan,
    *,
    patience_seconds: float = PATIENCE_SECONDS,
    on_wait: Callable[[], object] = lambda: None,
) -> int | None:
    """Send the threads of process `pid` to the dispatcher. They are stopped for some milliseconds for it.

    `on_wait` is called meanwhile: rings have to be emptied. The wait status of the process if it ended meanwhile and
    this process was told. Raises TargetError if they can't be stopped in time.
    """
    held = HeldProcess(pid)
    try:
        held.stop_all(patience_seconds, on_wait=on_wait)
        if held.has_executed or not is_inside(held, plan):
            return None
        fetcher = Fetcher(held, plan)
        try:
            if not fetcher.labels["parked_pc"]:
                # It has not begun: its first thread comes to the dispatcher by itself.
                return None
            for tid in list(held.threads):
                registers = fetcher.get_registers(tid)
                if not fetcher.owns_context(tid, registers):
                    context = fetcher.find_native(tid)
                    if context is not None:
                        fetcher.mark(context)
                        fetcher.fetch(tid)
                    continue
                fetcher.mark(registers.context)
                if registers.pc != fetcher.labels["syscall_return_pc"] and fetcher.must_be_fetched(registers):
                    fetcher.fetch(tid)
        finally:
            fetcher.close()
    except TargetGoneError as error:
        return error.wait_status if held.wait_status is None else held.wait_status
    except OSError as error:
        raise AttachError(pid, f"process {pid}: can't be stopped now: {error.strerror or error}") from error
    finally:
        held.let_go()
    return held.wait_status


def is_outside(pid: Pid, plan: InjectionPlan) -> bool:
    """Whether no thread of process `pid`, in whose memory the runtime is, is under it. They are stopped for a moment.

    Raises TargetError if they can't be stopped.
    """
    held = HeldProcess(pid)
    try:
        held.stop_all(PATIENCE_SECONDS)
        registers = [processor_of(tid).get_registers(tid) for tid in held.threads]
        return not any(plan.is_private(one.context) or plan.is_in_image(one.pc) for one in registers)
    except OSError as error:
        raise AttachError(pid, f"process {pid}: can't be stopped now: {error.strerror or error}") from error
    finally:
        held.let_go()
