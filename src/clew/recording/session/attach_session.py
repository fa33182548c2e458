"""One run of recording of a process that runs already: attach, empty its rings, detach, write the trace.

Runs in the controller. What is the same for a program started by clew is in `recording.session`.
"""

from __future__ import annotations

import contextlib
import os
import time
from pathlib import Path

from clew.address import Pid
from clew.errors import AttachError
from clew.process.attach import attach
from clew.process.attachable import check_attachable, find_living_task
from clew.process.identity import read_cpu_seconds, read_parent
from clew.process.leftover import take_out_leftover
from clew.process.maps import Mapping
from clew.process.runtime_image import load_runtime_image
from clew.process.shared_memory import SharedFile, SharedLayout, SharedMemory
from clew.recording.following.filters_live import LiveFilters
from clew.recording.following.followed import read_identity
from clew.recording.following.leaving import Left
from clew.recording.following.processes import Processes
from clew.recording.following.snapshot import Snapshots
from clew.recording.journal.sink import JournalSink
from clew.recording.journal.writer import JournalWriter
from clew.recording.options.output import make_directory, remove_directory
from clew.recording.options.record_options import RecordOptions
from clew.recording.session.interrupts import JOB_CONTROL, InterruptGuard
from clew.recording.session.session import RecordingSession
from clew.recording.sinks.sink import Identity
from clew.store.names import JOURNAL_NAME

__all__ = ["AttachSession", "LeaveGuard", "command_of", "name_of"]


class LeaveGuard(InterruptGuard):
    """While `held`: any signal that would end clew means that it is to detach, and write the trace."""

    @property
    def wants_to_leave(self) -> bool:
        return self.n_wishes > 0

    def follow(self, target_pidfd: int) -> None:
        """The target has no part in signals to clew."""

    def _to_mute(self) -> list[int]:
        """Who stops clew means clew: it has a job of its own."""
        return [number for number in super()._to_mute() if number not in JOB_CONTROL]


class AttachSession(RecordingSession):
    """One run. `start`, then `wait`, then `finish`; each once.

    `options.command` is for the trace; `duration_seconds` is how long to record, None until told to leave or the
    process ends. The directory `options.output` is made by `start`; if `start` fails, nothing is left of it.
    """

    def __init__(
        self, pid: Pid, options: RecordOptions, guard: LeaveGuard | None = None, duration_seconds: float | None = None
    ) -> None:
        super().__init__(options, guard or LeaveGuard())
        self.pid = pid
        self.attach_seconds = 0.0
        self.left = Left()
        """What became of the process and its children when they were left."""
        self._duration_seconds = duration_seconds
        self._cpu_seconds_before = 0.0
        self._started = 0.0

    def start(self) -> Pid:
        """Attach; the process id. Raises ClewError, with the process as it was."""
        options = self.options
        # Before anything is made: most of what can be wrong is told here.
        check_attachable(self.pid)
        # What takes long to import is imported before the process depends on being drained.
        import clew.recording.drain.drain  # noqa: F401

        image = load_runtime_image()
        settings = self._header_settings()
        with contextlib.ExitStack() as undo:
            make_directory(options.output)
            undo.callback(remove_directory, options.output)
            self._journal = JournalWriter(options.output / JOURNAL_NAME)
            undo.callback(self._journal.close)
            try:
                pidfd = os.pidfd_open(self.pid)
            except ProcessLookupError as error:
                raise AttachError(self.pid, f"process {self.pid}: no such process") from error
            undo.callback(os.close, pidfd)
            self._snapshots = Snapshots(options.output)
            self._processes = Processes(JournalSink(self._journal), image, settings, self._filters, options.sinks)
            undo.callback(self._processes.leave)
            self._start_ns = time.time_ns()
            self._write_session()
            self._cpu_seconds_before = read_cpu_seconds(self.pid) or 0.0
            self._guard.commit()
            mapped: list[Mapping] = []
            met: list[Identity] = []

            def make_shared(fd: int, layout: SharedLayout, mappings: list[Mapping]) -> SharedMemory:
                mapped.extend(mappings)
                # While it is held: let go it may end at once.
                met.append(read_identity(self.pid, read_parent(self.pid)))
                shared = SharedMemory(SharedFile(layout, fd), settings)
                LiveFilters(self._filters).tell_all(shared, mappings)
                return shared

            if take_out_leftover(self.pid, is_given_up=lambda: self._guard.wants_to_leave):
                self._tell_people(f"process {self.pid}: took out the runtime of a clew that was killed")
            attachment = attach(self.pid, image, make_shared, is_given_up=lambda: self._guard.wants_to_leave)
            undo.pop_all()
        self.attach_seconds = attachment.stopped_seconds
        self._started = time.monotonic()
        self._processes.add_attached(attachment, met[-1], mapped, pidfd, self._start_ns)
        self._listen()
        return self.pid

    @property
    def has_ended(self) -> bool:
        """Whether the process ended while it was recorded."""
        return self.pid in self._processes.exit_status

    @property
    def detach_seconds(self) -> float | None:
        """How long the process stood still for detaching; None if it was not left: it ended before, or stays."""
        return self.left.seconds.get(self.pid)

    def _has_left(self, now: float) -> bool:
        is_over = self._duration_seconds is not None and now - self._started >= self._duration_seconds
        if not is_over and not self._guard.wants_to_leave:
            self._tell_once_alone(now)
            return False
        self._processes.refresh_names()
        self.left = self._leave()
        return True

    def _target_cpu_seconds(self) -> float | None:
        # Of a process that has ended only its parent is told.
        return None if self.has_ended else max(self._processes.cpu_seconds - self._cpu_seconds_before, 0.0)


def name_of(pid: Pid) -> str:
    """What the kernel calls process `pid`. Raises AttachError if there is none."""
    try:
        return Path(f"/proc/{pid}/comm").read_text(errors="replace").rstrip("\n")
    except OSError as error:
        raise AttachError(pid, f"process {pid}: no such process") from error


def command_of(pid: Pid) -> list[str]:
    """The command line of process `pid`, as it shows it; its name if it shows none."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{find_living_task(pid)}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
        if words != [b""]:
            return [os.fsdecode(word) for word in words]
    return [name_of(pid)]
