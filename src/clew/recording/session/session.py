"""One run of recording: a target is entered, followed with all its descendants, and its trace written.

Runs in the controller. The start is what a user waits for: numpy and pyarrow are imported when the target runs
already. Whether the target was launched or attached to is not known here, nor what records mean; the terminal is
`clew.cli`'s.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

from clew.address import Pid
from clew.errors import OutputError
from clew.process.linux import become_subreaper
from clew.process.reaper import find_reaper
from clew.process.runtime_image import load_runtime_image
from clew.process.shared_layout import SharedLayout
from clew.process.shared_memory import HeaderSettings
from clew.protocol._constants import PATH_UNLIMITED, OnFull
from clew.recording.following.processes import Processes
from clew.recording.following.snapshot import Snapshots
from clew.recording.journal.frames import FrameKind
from clew.recording.journal.sink import JournalSink
from clew.recording.journal.writer import JournalWriter
from clew.recording.options.filters import FilterSet
from clew.recording.options.output import make_directory, remove_directory
from clew.recording.options.record_options import RecordOptions, RecordResult
from clew.recording.session.interrupts import InterruptGuard
from clew.recording.session.machine import machine_facts
from clew.recording.session.means import Means
from clew.recording.session.notices import JournalRoom
from clew.store.names import JOURNAL_NAME
from clew.version import __version__

if TYPE_CHECKING:
    from clew.recording.control.command_queue import CommandQueue
    from clew.recording.raw.process import RawProcess
    from clew.recording.session.target import Origin, Target

__all__ = ["Session", "start_session"]

MAX_DELAY_SECONDS: Final = 0.1
"""Nothing waits that long: who finds no room rings, and where nobody can ring `Processes.poll` waits less."""
MAX_DELAY_DROPPING_SECONDS: Final = 0.02
MAX_DELAY_WITH_REQUESTS_SECONDS: Final = 0.002
NAMES_INTERVAL_SECONDS: Final = 1.0


def start_session(
    origin: Origin, options: RecordOptions, guard: InterruptGuard, queue: CommandQueue | None = None
) -> Session:
    """Enter what is to be recorded: it is followed from then on. Raises ClewError, and nothing is left then.

    The directory `options.output` is made. What other threads ask of it comes by `queue`.
    """
    image = load_runtime_image()
    reaper = Pid(0)
    if origin.adopts_orphans:
        reaper = find_reaper(Pid(os.getpid()))
        become_subreaper()
    filters = FilterSet(options.include, options.exclude)
    settings = _header_settings(options, filters, reaper)
    tell = options.tell or _tell_nobody
    with contextlib.ExitStack() as undo:
        make_directory(options.output)
        undo.callback(remove_directory, options.output)
        journal = JournalWriter(options.output / JOURNAL_NAME)
        undo.callback(journal.close)
        snapshots = Snapshots(options.output)
        processes = Processes(JournalSink(journal, options.told), image, settings, filters, options.sinks)
        undo.callback(processes.leave)
        start_ns = time.time_ns()
        _write_session(journal, _describe(origin.command, options, filters, start_ns))
        means = Means(processes, image, settings, filters, guard, tell, start_ns)
        target = origin.enter(means)
        undo.pop_all()
    return Session(origin, target, options, means, journal, snapshots, queue)


class Session:
    """A recording that goes on. `wait`, then `finish`; each once."""

    def __init__(
        self,
        origin: Origin,
        target: Target,
        options: RecordOptions,
        means: Means,
        journal: JournalWriter,
        snapshots: Snapshots,
        queue: CommandQueue | None = None,
    ) -> None:
        # Late: the target runs already, and sockets are much to import.
        from clew.recording.session.commands import Commands

        self.target = target
        self.left_seconds: dict[Pid, float] = {}
        """For how long each process was stopped that was left."""
        self._origin = origin
        self._options = options
        self._guard = means.guard
        self._processes = processes = means.processes
        self._filters = filters = means.filters
        self._start_ns = means.start_ns
        self._journal = journal
        self._room = JournalRoom(journal, means.tell)
        self._snapshots = snapshots
        self._warnings: list[str] = []
        self._is_paused = origin.pause_seconds > 0
        self._commands = Commands(processes, filters, options.output, lambda: self._is_paused, self.end_pause, queue)

    @property
    def has_ended(self) -> bool:
        """Whether the target ended while it was recorded."""
        return self.target.pid in self._processes.exit_status

    def wait(self) -> None:
        """Record until the target and its descendants have ended, or are left."""
        try:
            self._follow_all()
        finally:
            self._guard.leave()
            self._commands.close()
            self._processes.leave()
            self._end_sinks()
        self._room.look()
        self._note_losses()

    def finish(self) -> RecordResult:
        """Write the trace's tables. What can't be written is told in the result."""
        from clew.recording.reading.publish import explain_absence

        with self._journal:
            failure = explain_absence(self._journal)
            if failure is None:
                failure = self._publish()
                if failure is not None:
                    # It may have gone only now.
                    failure = explain_absence(self._journal) or failure
            place = None if failure is None else self._journal.find()
        status = self._processes.exit_status.get(self.target.pid)
        is_killed = status is not None and os.WIFSIGNALED(status)
        return RecordResult(
            self._options.output,
            self.target.pid,
            None if status is None or is_killed else os.WEXITSTATUS(status),
            os.WTERMSIG(status) if status is not None and is_killed else None,
            self._processes.statistics.totals,
            list(dict.fromkeys(self._warnings)),
            failure,
            None if place is None else place.parent,
        )

    def end_pause(self) -> None:
        """Let a paused target run its first instruction."""
        self._is_paused = False
        self._processes.end_pause()

    def _follow_all(self) -> None:
        from clew.recording.session.pace import Pace

        pace = Pace(SharedLayout().ring_bytes)
        started = names_at = time.monotonic()
        while len(self._processes):
            delay_seconds = min(pace.delay_seconds, self._max_delay_seconds())
            if self._is_paused:
                delay_seconds = min(delay_seconds, max(started + self._origin.pause_seconds - time.monotonic(), 0))
            now = pace.note(self._processes.poll(delay_seconds))
            self._guard.stop_with(self.target.pid)
            self._processes.advance()
            self._commands.advance()
            if now - names_at > NAMES_INTERVAL_SECONDS:
                self._tidy()
                names_at = now
            if self._snapshots.is_due:
                self._processes.write_snapshot(self._snapshots)
            if self._is_paused and now - started >= self._origin.pause_seconds:
                self.end_pause()
            if self.target.is_over(now):
                self._leave()
                return

    def _max_delay_seconds(self) -> float:
        if self._filters.is_active or self._commands.is_busy:
            return MAX_DELAY_WITH_REQUESTS_SECONDS
        delay_seconds = MAX_DELAY_DROPPING_SECONDS if self._options.drop_on_full else MAX_DELAY_SECONDS
        return min([delay_seconds, *(sink.max_delay_seconds for sink in self._options.sinks)])

    def _tidy(self) -> None:
        """What is done now and then."""
        self._processes.refresh_names()
        self._processes.settle_ended()
        if self._origin.adopts_orphans:
            self._processes.bury_orphans()
        self._room.look()

    def _leave(self) -> None:
        """Leave all that still run, as they were; told to leave once more, clew leaves them as they are."""
        from clew.recording.following.leaving import leave_all

        if self.target.farewell:
            self._warnings.append(self.target.farewell)
        n_stop_requests = self._guard.n_stop_requests
        left = leave_all(self._processes, lambda: self._guard.n_stop_requests > n_stop_requests)
        self.left_seconds = left.seconds
        self._warnings += left.failures

    def _end_sinks(self) -> None:
        for sink in self._options.sinks:
            try:
                sink.end()
            except Exception as error:
                # Whatever goes wrong in one: the recording is whole.
                self._warnings.append(f"{type(sink).__name__} failed at the end: {type(error).__name__}: {error}")

    def _note_losses(self) -> None:
        self._warnings += self._processes.warnings
        self._warnings += self._filters.warnings
        self._warnings += [f"filter {text!r} held nothing that was loaded" for text in self._filters.unused()]
        self._warnings += self._room.warnings

    def _publish(self) -> OutputError | None:
        """Make the trace of the journal; why there is none, or None."""
        from clew.recording.reading.journal_reader import JournalReader
        from clew.recording.reading.publish import publish

        reader = JournalReader(self._journal.path, self._journal.overflow)
        failure = publish(
            self._journal,
            reader,
            lambda processes: self._assemble(processes, reader.end_ns),
            self._snapshots.remove,
        )
        if failure is None:
            self._snapshots.remove()
        self._warnings += reader.warnings
        return failure

    def _assemble(self, processes: Iterable[RawProcess], end_ns: int) -> None:
        from clew.recording.assembly.memory import reuse_memory

        reuse_memory()
        from clew.recording.assembly.trace import assemble
        from clew.recording.raw.process import SessionInfo

        described = _describe(self._origin.command, self._options, self._filters, self._start_ns)
        session = SessionInfo(
            **described | {"mode": self._options.mode},
            end_ns=end_ns,
            target_cpu_seconds=self.target.cpu_seconds,
            controller_cpu_seconds=time.process_time(),
            warnings=self._warnings,
            unfollowed_programs=self._processes.n_unfollowed_programs,
            unfollowed_children=self._processes.n_unfollowed_children,
        )
        try:
            assemble(processes, self._options.output, session)
        except OSError as error:
            raise OutputError.from_os_error(self._options.output, error) from error


def _tell_nobody(_line: str) -> None:
    """Nobody wants to be told anything."""


def _header_settings(options: RecordOptions, filters: FilterSet, reaper: Pid) -> HeaderSettings:
    return HeaderSettings(
        mode=options.mode,
        relayout_executions=options.relayout_executions,
        busy_limit=options.busy_limit,
        budget=PATH_UNLIMITED if options.budget is None else options.budget,
        on_full=OnFull.DROP if options.drop_on_full else OnFull.WAIT,
        filters_active=filters.is_active,
        default_included=filters.is_included_by_default,
        follows=options.follow,
        reaper_pid=reaper,
    )


def _describe(command: Sequence[str], options: RecordOptions, filters: FilterSet, start_ns: int) -> dict[str, Any]:
    include, exclude = filters.texts
    return {
        "command": options.told(command),
        "mode": int(options.mode),
        "include": include,
        "exclude": exclude,
        "follow": options.follow,
        "start_ns": start_ns,
        "clew_version": __version__,
        "machine": machine_facts(),
    }


def _write_session(journal: JournalWriter, described: dict[str, Any]) -> None:
    """What `clew recover` has to know of the session. Raises OutputError if there is no room even for that."""
    journal.write(FrameKind.SESSION, json.dumps(described).encode("ascii"))
    if journal.failure is not None:
        raise OutputError.from_os_error(journal.path.parent, journal.failure)
