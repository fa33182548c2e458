"""How processes ended of which the kernel did not tell it, or told how a later program did.

Runs in the controller, after the target ended. Where a process goes on as another program that is followed, the session
itself ends the process there. Where it is not, nobody tells: a thread says that it is about to execute a program, and
is not heard of again. And of a process that only privileged ones may look at the kernel tells its parent alone how it
ended: what it gave exit_group is known.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from clew.dataclass import replace
from clew.protocol._generated import EndKind, EventKind
from clew.recording.assembly.clock import Clock
from clew.recording.raw.process import RawProcess

__all__ = ["settle_end"]

Array = npt.NDArray[Any]


def settle_end(process: RawProcess, events: Array) -> RawProcess:
    """`process` as it is; if it went on as a program that was not followed, ended then, nobody knows how; or with the
    exit code that it gave itself, if nobody told another.

    `events` are its event records.
    """
    # A child that vfork made is told of here, too, until it executes a program of its own.
    children = set(events["a"][events["event_kind"] == EventKind.FORK].tolist())
    for thread in process.threads:
        if thread.end_kind != EndKind.EXECVE or thread.end_tsc or thread.tid in children:
            continue
        calls = events[(events["event_kind"] == EventKind.EXECVE) & (events["tid"] == thread.tid)]
        if not len(calls):
            # What it said was lost.
            return replace(process, exit_code=None, signal=None, went_on_unfollowed=True)
        last = calls[np.argmax(calls["tsc"])]
        if not last["a"]:
            end_ns = Clock(process).one_to_ns(int(last["tsc"]))
            return replace(process, exit_code=None, signal=None, end_ns=end_ns, went_on_unfollowed=True)
    if process.exit_code is None and process.signal is None:
        ends = events[(events["event_kind"] == EventKind.EXIT_GROUP) & ~np.isin(events["tid"], list(children))]
        if len(ends):
            # What a later thread gave is of no account.
            return replace(process, exit_code=int(ends[np.argmin(ends["tsc"])]["a"]) & 0xFF)
    return process
