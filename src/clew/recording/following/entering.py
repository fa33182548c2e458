"""The runtime is put into programs: the first one, and those that followed processes execute.

Runs in the controller, in one thread, while the program is stopped. Which threads ask to execute one, and which file
that is, is the business of `executions`; what became of the others that are followed is not known here.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable
from typing import Final

from clew.address import Pid
from clew.dataclass import replace
from clew.errors import ClewError, StuckError, TargetGoneError
from clew.process import ptrace
from clew.process.execution import stopped_at_start
from clew.process.identity import is_ending
from clew.process.inject import inject
from clew.process.injection_plan import layout_for_limits
from clew.process.linux import PROT_EXEC
from clew.process.maps import read_maps
from clew.process.runtime_image import RuntimeImage
from clew.process.shared_layout import SharedLayout
from clew.process.shared_memory import HeaderSettings
from clew.process.stopped_process import StoppedProcess
from clew.process.waiting import wait_stop
from clew.recording.following.executions import Executions
from clew.recording.following.filters_live import LiveFilters
from clew.recording.following.followed import FollowedProcess, read_identity
from clew.recording.following.roster import Roster
from clew.recording.sinks.sink import Identity

__all__ = ["Entering"]

END_SECONDS: Final = 1.0
"""How long a process that was killed takes to end, at most."""


class Entering:
    """Puts `image` into programs and has `roster` follow them, by the `settings` of then. `lose` is told, in
    lines for people, of programs that can't be followed."""

    def __init__(
        self,
        image: RuntimeImage,
        settings: HeaderSettings,
        filters: LiveFilters,
        roster: Roster,
        executions: Executions,
        lose: Callable[[str], None],
    ) -> None:
        self.settings = settings
        self._image = image
        self._filters = filters
        self._roster = roster
        self._exits = roster.exits
        self._executions = executions
        self._lose = lose

    def inject(
        self,
        process: StoppedProcess,
        layout: SharedLayout,
        heap_bytes: int,
        parent_pid: Pid,
        pidfd: int,
        *,
        is_paused: bool = False,
    ) -> int:
        """Put the runtime into a stopped process and follow it; `pidfd`. Raises ClewError, OSError if it is gone."""
        start_ns = time.time_ns()
        all_mappings = read_maps(process.pid)
        mappings = [mapping for mapping in all_mappings if mapping.protection & PROT_EXEC]
        settings = replace(self.settings, is_own_child=parent_pid == os.getpid())
        shared, plan = inject(process, self._image, layout, heap_bytes, settings, all_mappings, is_paused=is_paused)
        try:
            region = self._roster.meet(shared, plan)
            who = read_identity(process.pid, parent_pid)
            followed = FollowedProcess(region, who, pidfd, process.written_pages)
            self._filters.tell_all(shared, mappings)
        except BaseException:
            self._roster.forget(shared)
            shared.close()
            raise
        self._roster.start(followed, start_ns, mappings, None)
        return pidfd

    def follow(self, *, is_leaving: bool) -> None:
        """Enter the programs that came; with `is_leaving` they run natively instead."""
        for execution, followed, end in self._executions.poll():
            if end is None and is_leaving:
                self._let_go(execution.pid, followed)
            elif end is None:
                self._enter(execution.pid, followed)
            elif end.is_process and end.status is not None:
                if self._roster.is_live(execution.pid):
                    self._exits.note_told(execution.pid, end.status)
                elif execution.pid != followed.pid:
                    # A task with the memory of its maker, which has no row: whether it came to execute is not known.
                    maker = followed.who
                    who = replace(maker, pid=execution.pid, parent_pid=maker.pid, name="", has_own_namespace=False)
                    self._roster.tell_ended(who, time.time_ns(), end.status)

    def _let_go(self, pid: Pid, before: FollowedProcess) -> None:
        """What `pid` executes runs natively: clew is leaving."""
        if before.pid == pid and before in self._roster.live:
            before.note_end(None, None)
            self._roster.settle(before)
        with contextlib.suppress(OSError):
            ptrace.detach(pid)

    def _enter(self, pid: Pid, before: FollowedProcess) -> None:
        """Put the runtime into the program that `pid` executes, stopped inside execve, and let it go."""
        if before.pid == pid and before not in self._roster.live:
            # It was lost after it had asked, and is awaited.
            with contextlib.suppress(OSError):
                ptrace.detach(pid)
            return
        is_same = before.pid == pid
        parent_pid = before.who.parent_pid if is_same else before.pid
        pidfd = -1
        status = None
        start_ns = time.time_ns()
        executable = _read_executable(pid)
        try:
            if is_same:
                # One of its own could be one descriptor too many, and its exit status be lost.
                pidfd = self._roster.take_pidfd(before)
                before.note_end(None, None)
            else:
                pidfd = os.pidfd_open(pid)
            if before.has_ended and before in self._roster.live:
                self._roster.settle(before)
            with stopped_at_start(pid) as process:
                layout, heap_bytes = layout_for_limits(SharedLayout(), pid)
                self.inject(process, layout, heap_bytes, parent_pid, pidfd)
                pidfd = -1
        except TargetGoneError as error:
            self._exits.status[pid] = status = error.wait_status
        except (ClewError, OSError) as error:
            # A stopped thread that is not there for its tracer was killed.
            if is_ending(pid) or isinstance(error, ProcessLookupError):
                status = _find_status(pid)
            if status is None and not is_ending(pid):
                self._lose(f"process {pid} goes on unfollowed: {error}")
        finally:
            with contextlib.suppress(OSError):
                # Where it was not let go already.
                ptrace.detach(pid)
            if status is not None:
                self._exits.status[pid] = status
                who = Identity(pid, parent_pid, executable, [], "", has_own_namespace=False)
                self._roster.tell_ended(who, start_ns, status)
            if pidfd >= 0:
                self._exits.wait_for(pid, pidfd)


def _read_executable(pid: Pid) -> str:
    """What a process executes; empty if it is gone."""
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


def _find_status(pid: Pid) -> int | None:
    """The wait status of a process that is traced here and is ending; None if it is another's, or does not come."""
    with contextlib.suppress(OSError, StuckError):
        while os.WIFSTOPPED(status := wait_stop(pid, limit_seconds=END_SECONDS)):
            ptrace.cont(pid)
        return status
    return None
