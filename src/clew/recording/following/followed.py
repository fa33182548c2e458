"""One program that a process runs, while it is followed: its shared memory, who takes what it brings, its end.

Runs in the controller. A process that executes another program is followed by another of these from then on.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import time
from collections.abc import Callable
from pathlib import Path
from signal import SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP
from typing import TYPE_CHECKING, Any, Final

from clew.address import Pid, Tid
from clew.process.attachable import find_living_task, has_own_namespace, tid_inside
from clew.process.identity import maps_region, read_group, read_stat
from clew.process.maps import Mapping, read_maps
from clew.process.processors.chosen import native_processor
from clew.process.tasks import find_process
from clew.protocol._constants import ErrorCode, RuntimeState
from clew.recording.following.region import FollowedRegion
from clew.recording.sinks.sink import Fork, Identity, ProcessEnd, ProcessStart

if TYPE_CHECKING:
    from clew.recording.drain.drain import Drain

__all__ = ["FollowedProcess", "read_identity", "read_status_of_ended"]

_PIDFD_GET_INFO: Final = 0xC040FF0B
_PIDFD_INFO_EXIT: Final = 8
_PIDFD_INFO_BYTES: Final = 64
_EXIT_STATUS_OFFSET: Final = 60

_OWN_ENDS: Final = (None, SIGILL, SIGTRAP, SIGBUS, SIGFPE, SIGSEGV, SIGSYS)
"""Signals, None: an exit, that the runtime could have ended a process by. Others would have ended it natively, too."""


def read_identity(pid: Pid, parent_pid: Pid) -> Identity:
    """Who process `pid` is. Raises OSError if it is gone."""
    task = find_living_task(pid)
    command = Path(f"/proc/{task}/cmdline").read_bytes()
    return Identity(
        pid,
        parent_pid,
        executable=os.readlink(f"/proc/{task}/exe"),
        command=[os.fsdecode(word) for word in command.split(b"\0")[:-1]],
        name=Path(f"/proc/{pid}/comm").read_text(errors="replace").rstrip("\n"),
        has_own_namespace=has_own_namespace(pid),
    )


class FollowedProcess:
    """A process that speaks through `region`, and who that is: `who`, whose pidfd is -1 if it could not be had."""

    def __init__(
        self,
        region: FollowedRegion,
        who: Identity,
        pidfd: int,
        written_pages: dict[int, int],
        n_inherited_counters: int = 0,
    ) -> None:
        self.region = region
        self.journal, self.sink = region.journal, region.sink
        self.shared, self.plan = region.shared, region.plan
        self.who = who
        self.pidfd = pidfd
        self.warnings: list[str] = []
        self.has_ended = False
        """The process has ended, or runs another program; tasks that share its memory may go on."""
        self.is_released = False
        """The runtime was taken out of it before its time; all that is still to come is its end."""
        self.memory_pid = who.pid
        """A process that has the memory: it, or one that outlives it there."""
        self.written_pages = written_pages
        """As StoppedProcess has them, since the runtime was put into it."""
        self.n_inherited_counters = n_inherited_counters
        """Counters that a fork's child found in use."""
        self._exit_code: int | None = None
        self._signal: int | None = None
        self._end_ns = 0
        region.process = self

    @property
    def number(self) -> int:
        """The one in the recording."""
        return self.journal.number

    @property
    def pid(self) -> Pid:
        """Its process id here."""
        return self.who.pid

    @property
    def has_own_namespace(self) -> bool:
        """Whether it knows processes by other numbers than the controller."""
        return self.who.has_own_namespace

    @property
    def drain(self) -> Drain | None:
        """Its region's; None until what is in that was asked for first."""
        return self.region.drain

    @property
    def failure(self) -> Exception | None:
        """What made its drain unusable."""
        return self.region.failure

    def attempt(self, action: Callable[[Drain], int | None]) -> int:
        """As `FollowedRegion.attempt`."""
        return self.region.attempt(action)

    def number_of(self, tid: Tid) -> Tid:
        """What a thread of the process knows itself by."""
        return tid_inside(tid) if self.has_own_namespace else tid

    def tell_start(
        self, start_ns: int, mappings: list[Mapping] | None, fork: Fork | None = None, *, has_ended: bool = False
    ) -> None:
        """Tell who it is, and where it comes from: from a fork, or with the executable `mappings`."""
        shared = None if has_ended else self.shared
        architecture = native_processor().architecture.name
        self.sink.begin(ProcessStart(self.who, architecture, self.region.mode, start_ns, mappings or [], fork, shared))

    def tell_mapping(self, slot: int, address: int) -> int:
        """Answer the thread of a slot what is mapped at `address`, or is the first above; 0: nothing, or not known."""
        try:
            mappings = read_maps(self.memory_pid)
        except OSError:
            return 0
        found = next((one for one in mappings if one.end > address), None)
        if found is None or self.drain is None:
            return 0
        self.drain.answer_more(slot, (found.start, found.end, found.protection, int(found.is_shared)))
        return 1

    def note_end(self, exit_code: int | None, signal: int | None) -> None:
        """Keep how it ended, if that is not known yet; both None: by another program, or it goes on unfollowed."""
        if not self.has_ended:
            self.has_ended, self._exit_code, self._signal = True, exit_code, signal
            self._end_ns = time.time_ns()

    def find_survivor(self) -> Pid | None:
        """Another process that shares the memory, and goes on: a task that was cloned so, or a vfork's child."""
        numbers = set(() if self.drain is None else self.drain.find_running()) - {self.pid}
        # One that has not begun yet has no number there: whoever has the memory is asked for.
        if numbers and (self.has_own_namespace or 0 in numbers):
            return find_process(self.shared)
        with contextlib.suppress(OSError):
            for number in numbers:
                if maps_region(Tid(number), self.shared):
                    return read_group(Tid(number))
        return None

    def finish(self, *, goes_on: bool) -> Any:
        """Take the rest, and tell how it ended; the last status page, a scalar of dtype STATUS_PAGE, if there is one.
        `goes_on`: its region may be used, and is nobody else's."""
        self.note_end(None, None)
        self.attempt(lambda drain: drain.finish())
        status = None
        if self.drain is not None:
            if self.failure is not None:
                self.drain.give_up()
                reason = f"{type(self.failure).__name__}: {self.failure}"
                self.warnings.append(f"process {self.pid} can't be followed any further, the rest is lost ({reason})")
            self.warnings += self.drain.warnings
            status = self.drain.status()
            self._note_runtime_state(status, goes_on=goes_on)
            self.region.close_drain()
        self.shared.close(is_unused=not goes_on)
        is_lost = self.failure is not None
        self.sink.end(ProcessEnd(self._end_ns, self._exit_code, self._signal, is_lost, self.warnings))
        return status

    def _note_runtime_state(self, status: Any, *, goes_on: bool) -> None:
        names = ("state", "error", "lost_threads", "unanswered")
        state, error, lost_threads, unanswered = (int(status[name]) for name in names)
        if error != ErrorCode.NONE or state == RuntimeState.FAILED:
            name = ErrorCode(error).name.lower() if error in set(ErrorCode) else str(error)
            detail = ", ".join(f"{int(value):#x}" for value in status["error_detail"])
            self.warnings.append(f"the runtime reported an error: {name} ({detail}); the trace may be incomplete")
        elif state == RuntimeState.INJECTED and not goes_on and self._signal in _OWN_ENDS:
            self.warnings.append(f"process {self.pid} ended before the runtime began; nothing of it was recorded")
        if lost_threads:
            why = f"a process that is recorded has at most {self.shared.layout.max_threads} at a time"
            if error == ErrorCode.MAPPING_FAILED:
                why = (
                    "the kernel refused the memory that clew keeps for each; sysctl vm.max_map_count says how many "
                    "mappings a process may have, ulimit -v how many addresses"
                )
            self.warnings.append(f"{lost_threads} thread{'s' * (lost_threads != 1)} could not be made (EAGAIN): {why}")
        if unanswered:
            self.warnings.append(
                f"process {self.pid} went on without an answer {unanswered} time{'s' * (unanswered != 1)}, because "
                "clew had no time for it: what it started then may be missing"
            )


def read_status_of_ended(pid: Pid, pidfd: int) -> int | None:
    """The wait status of a process that has ended and is another's child, if the kernel says it; else None.
    `pidfd` is -1 if there is none.

    While nobody has waited for it, /proc has it; after that, the pidfd (since Linux 6.15, PIDFD_INFO_EXIT).
    """
    # To those that may not look at the process the kernel says 0 (fs/proc/array.c, do_task_stat). Asked first: whoever
    # is waited for meanwhile has no status to be read afterwards.
    is_known = _may_be_looked_at(pid)
    fields = read_stat(pid)
    if fields[:1] == [b"Z"] and (int(fields[-1]) or is_known):
        return int(fields[-1])
    if pidfd < 0:
        return None
    info = bytearray(_PIDFD_INFO_BYTES)
    struct.pack_into("<Q", info, 0, _PIDFD_INFO_EXIT)
    try:
        fcntl.ioctl(pidfd, _PIDFD_GET_INFO, info)
    except OSError:
        return None
    if struct.unpack_from("<Q", info, 0)[0] & _PIDFD_INFO_EXIT:
        return int(struct.unpack_from("<i", info, _EXIT_STATUS_OFFSET)[0])
    return None


def _may_be_looked_at(pid: Pid) -> bool:
    try:
        os.readlink(f"/proc/{pid}/ns/pid")
    except PermissionError:
        return False
    except OSError:
        # It is allowed, but a process that has ended is in no namespace any more; or it is gone.
        return True
    return True
