"""A program that clew starts, with the runtime in it.

Runs in the controller. The start is what a user waits for: nothing heavy is imported here.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from clew.address import Pid
from clew.errors import KilledAtStartError, TargetGoneError
from clew.process.injection_plan import layout_for_limits
from clew.process.launch import launch_stopped
from clew.process.program import find_program
from clew.process.shared_layout import SharedLayout
from clew.process.stopped_process import StoppedProcess
from clew.recording.following.processes import Processes
from clew.recording.session.interrupts import InterruptGuard
from clew.recording.session.means import Means
from clew.recording.session.notices import Descendants

__all__ = ["Launch", "LaunchedTarget"]


class Launch:
    """The program `command`, with its arguments, is to be started. Raises ClewError if there is no such program.

    `environment` holds `NAME=value` strings; None means this process's own, as Python has it. `streams` are descriptors
    that it has by other numbers, `directory` is where it begins: None, here. It waits `pause_seconds` before its first
    instruction. With `adopts_orphans` descendants whose parents end become children of this process, which has none of
    its own then: so they may be traced where only descendants may.
    """

    def __init__(
        self,
        command: Sequence[str],
        *,
        environment: Sequence[bytes] | None = None,
        streams: Mapping[int, int] | None = None,
        directory: str | None = None,
        pause_seconds: float = 0.0,
        adopts_orphans: bool = False,
    ) -> None:
        self.command = command
        self.pause_seconds = pause_seconds
        self.adopts_orphans = adopts_orphans
        self._environment, self._streams, self._directory = environment, streams, directory
        # As it is called from here, wherever it begins.
        self._program = find_program(os.path.abspath(command[0]) if directory and "/" in command[0] else command[0])

    def enter(self, means: Means) -> LaunchedTarget:
        layout, heap_bytes = layout_for_limits(SharedLayout())
        guard = means.guard
        environment = self._environment
        if environment is None:
            environment = [name + b"=" + value for name, value in os.environb.items()]
        with launch_stopped(
            self._program,
            [os.fsencode(word) for word in self.command],
            environment,
            ignored_signals=guard.set_aside,
            default_signals=guard.muted,
            streams=self._streams,
            directory=self._directory,
            before_fork=guard.commit,
            is_given_up=lambda: guard.n_stop_requests > 0,
        ) as process:
            pidfd = self._add(means.processes, process, layout, heap_bytes)
            process.detach()
            guard.follow(pidfd)
            return LaunchedTarget(
                process.pid, means.processes, guard, Descendants(means.processes, process.pid, guard, means.tell)
            )

    def _add(self, processes: Processes, process: StoppedProcess, layout: SharedLayout, heap_bytes: int) -> int:
        try:
            return processes.add(process, layout, heap_bytes, is_paused=self.pause_seconds > 0)
        except TargetGoneError as error:
            if error.wait_status is not None and os.WIFSIGNALED(error.wait_status):
                raise KilledAtStartError(error.pid, error.message, os.WTERMSIG(error.wait_status)) from error
            raise


class LaunchedTarget:
    """It runs. While it does, signals to clew are its business; afterwards they have clew leave its descendants."""

    def __init__(self, pid: Pid, processes: Processes, guard: InterruptGuard, descendants: Descendants) -> None:
        self.pid = pid
        self.stopped_seconds = 0.0
        self.farewell = "clew was told to leave; the target goes on without it"
        self._processes = processes
        self._guard = guard
        self._descendants = descendants

    def is_over(self, now: float) -> bool:
        if self._guard.wants_to_leave:
            return True
        self._descendants.look(now)
        return self._descendants.are_interrupted

    @property
    def cpu_seconds(self) -> float:
        return self._processes.cpu_seconds
