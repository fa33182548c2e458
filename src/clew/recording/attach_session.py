"""One run of recording of a process that runs already: attach, empty its rings, detach, write the trace.

Runs in the controller. What is the same for a program started by clew is in `recording.session`.
"""

from __future__ import annotations

import contextlib
import os
import select
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew.address import Pid
from clew.errors import AttachError
from clew.process.attach import attach
from clew.process.attachable import check_attachable, find_living_task
from clew.process.detach import detach
from clew.process.maps import Mapping
from clew.process.runtime_image import load_runtime_image
from clew.process.shared_memory import Relayout, SharedLayout, SharedMemory
from clew.recording.interrupts import InterruptGuard
from clew.recording.journal import JOURNAL_NAME, FrameKind, JournalWriter
from clew.recording.session import (
    MAX_DELAY_SECONDS,
    MAX_DELAY_WITH_FILTERS_SECONDS,
    MIN_DELAY_SECONDS,
    NAMES_INTERVAL_SECONDS,
    RecordingSession,
    RecordOptions,
    make_directory,
    remove_directory,
)

if TYPE_CHECKING:
    from clew.recording.drain import Drain

__all__ = ["AttachSession", "LeaveGuard", "command_of", "name_of"]

MAX_DETACH_ATTEMPTS: Final = 3


class LeaveGuard(InterruptGuard):
    """While `held`: any signal that would end clew means that it is to detach, and write the trace."""

    @property
    def n_wishes(self) -> int:
        """How often clew was told to leave."""
        return self.interrupts + self.terminations

    @property
    def wants_to_leave(self) -> bool:
        return self.n_wishes > 0

    def follow(self, target_pidfd: int) -> None:
        """The target has no part in signals to clew."""


class AttachSession(RecordingSession):
    """One run. `start`, then `wait`, then `finish`; each once.

    `options.command` is for the trace; `duration_seconds` is how long to record, None until told to leave or the
    process ends. The directory `options.output` is made by `start`; if `start` fails, nothing is left of it.
    """

    def __init__(
        self, pid: Pid, options: RecordOptions, guard: LeaveGuard | None = None, duration_seconds: float | None = None
    ) -> None:
        self._guard: LeaveGuard
        super().__init__(options, guard or LeaveGuard())
        self.pid = pid
        self.attach_seconds = 0.0
        self.detach_seconds: float | None = None
        """How long the process stood still for attaching and detaching; None if it ended before."""
        self._duration_seconds = duration_seconds
        self._cpu_seconds_before = 0.0

    def start(self) -> Pid:
        """Attach; the process id. Raises ClewError, with the process as it was."""
        options = self.options
        # Before anything is made: most of what can be wrong is told here.
        check_attachable(self.pid)
        # What takes long to import is imported before the process depends on being drained.
        import clew.recording.drain  # noqa: F401

        image = load_runtime_image()
        with contextlib.ExitStack() as undo:
            make_directory(options.output)
            undo.callback(remove_directory, options.output)
            self._journal = JournalWriter(options.output / JOURNAL_NAME)
            undo.callback(self._journal.close)
            try:
                self._pidfd = os.pidfd_open(self.pid)
            except ProcessLookupError as error:
                raise AttachError(self.pid, f"process {self.pid}: no such process") from error
            undo.callback(os.close, self._pidfd)
            executable = os.readlink(f"/proc/{find_living_task(self.pid)}/exe")
            self._process_name = name_of(self.pid)
            self._start_ns = time.time_ns()
            self._cpu_seconds_before = _cpu_seconds(self.pid)
            self._guard.commit()
            self._attachment = attach(
                self.pid, image, self._make_shared, is_given_up=lambda: self._guard.wants_to_leave
            )
            undo.pop_all()
        self.attach_seconds = self._attachment.stopped_seconds
        self._shared = self._attachment.shared
        self._journal.write_json(FrameKind.PROCESS, self._process_row(executable, self._mappings))
        return self.pid

    def _make_shared(self, fd: int, layout: SharedLayout, mappings: list[Mapping]) -> SharedMemory:
        self._mappings = mappings
        self._shared = SharedMemory(
            layout,
            mode=self.options.mode,
            relayout=Relayout.from_environment(),
            drop_on_full=self.options.drop_on_full,
            filters_active=self._filters.is_active,
            default_included=self._filters.is_included_by_default,
            fd=fd,
        )
        self._append_filters(
            self._filters.address_rows() + [row for mapping in mappings for row in self._rows_for(mapping)]
        )
        return self._shared

    def _drain_until_end(self, drain: Drain) -> None:
        quarter_ring = self._shared.layout.ring_bytes // 4
        max_delay = MAX_DELAY_WITH_FILTERS_SECONDS if self._filters.is_active else MAX_DELAY_SECONDS
        delay = MIN_DELAY_SECONDS
        started = last = names_at = time.monotonic()
        n_attempts = 0
        while not select.select([self._pidfd], [], [], delay)[0]:
            now = time.monotonic()
            moved_bytes = drain.poll()
            if moved_bytes:
                # Come again when the ring is about a quarter full, if it goes on like this.
                delay = min(max((now - last) * quarter_ring / moved_bytes, MIN_DELAY_SECONDS), 2 * delay, max_delay)
            else:
                delay = min(2 * delay, max_delay)
            last = now
            if now - names_at > NAMES_INTERVAL_SECONDS:
                drain.refresh_names()
                names_at = now
            is_over = self._duration_seconds is not None and now - started >= self._duration_seconds
            if is_over or self._guard.wants_to_leave:
                drain.refresh_names()
                n_attempts += 1
                if self._detach(drain, is_last=n_attempts == MAX_DETACH_ATTEMPTS):
                    break
        self._target_cpu_seconds = max(_cpu_seconds(self.pid) - self._cpu_seconds_before, 0.0)

    def _detach(self, drain: Drain, *, is_last: bool) -> bool:
        """Detach; whether this session is over: at the last, or when told to leave once more, it is in any case."""
        n_wishes = self._guard.n_wishes

        def is_given_up() -> bool:
            return self._guard.n_wishes > n_wishes

        try:
            self.detach_seconds = detach(self._attachment, on_wait=drain.poll, is_given_up=is_given_up)
        except AttachError as error:
            is_last = is_last or is_given_up()
            if is_last:
                self._warnings.append(f"{error.message}; the process goes on with clew's runtime in it")
            return is_last
        return True

    def _process_row(self, executable: str, mappings: list[Mapping]) -> dict[str, object]:
        return {**super()._process_row(executable, mappings), "parent_pid": _parent_of(self.pid)}


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


def _stat_fields(pid: Pid) -> list[bytes]:
    """The fields of /proc/PID/stat from the state on; empty if the process is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2].split()
    except OSError:
        return []


def _parent_of(pid: Pid) -> int:
    fields = _stat_fields(pid)
    return int(fields[1]) if fields else 0


def _cpu_seconds(pid: Pid) -> float:
    fields = _stat_fields(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if fields else 0.0
