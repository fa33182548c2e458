"""One run of recording: start a program with the runtime in it, empty its rings until it ends, write the trace.

Runs in the controller. The start is what a user waits for: numpy and pyarrow are imported when the target runs
already. What records mean is not known here; the terminal is `clew.cli`'s.
"""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from clew.address import Pid
from clew.errors import KilledAtStartError, OutputError, TargetGoneError
from clew.process.injection_plan import layout_for_limits
from clew.process.launch import launch_stopped
from clew.process.linux import become_subreaper
from clew.process.program import find_program
from clew.process.reaper import find_reaper
from clew.process.runtime_image import load_runtime_image
from clew.process.shared_memory import HeaderSettings, SharedLayout, read_relayout_executions
from clew.process.stopped_process import StoppedProcess
from clew.protocol._constants import PATH_UNLIMITED
from clew.recording.assembly.memory import reuse_memory
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
from clew.recording.session.pace import Pace
from clew.store.names import JOURNAL_NAME
from clew.version import __version__

if TYPE_CHECKING:
    from clew.recording.control.commands import Control
    from clew.recording.following.leaving import Left
    from clew.recording.raw.process import RawProcess

__all__ = ["RecordingSession"]

MAX_DELAY_SECONDS: Final = 0.1
"""Nothing waits that long: who finds no room rings, and where nobody can ring `Processes.poll` waits less."""
MAX_DELAY_DROPPING_SECONDS: Final = 0.02
MAX_DELAY_WITH_REQUESTS_SECONDS: Final = 0.002
NAMES_INTERVAL_SECONDS: Final = 1.0
TELL_AFTER_SECONDS: Final = 1.0


class RecordingSession:
    """One run. `start`, then `wait`, then `finish`; each once.

    The directory `options.output` is made by `start`; if `start` fails, nothing is left of it.
    """

    def __init__(self, options: RecordOptions, guard: InterruptGuard | None = None) -> None:
        self.options = options
        self.pid = Pid(0)
        self._guard = guard or InterruptGuard()
        self._filters = FilterSet(options.include, options.exclude)
        self._warnings: list[str] = []
        self._start_ns = 0
        self._alone_since: float | None = None
        self._n_wishes = 0
        self._is_alone_told = self._is_full_told = False
        self._reaper = Pid(0)
        self._is_paused = options.pause_seconds > 0
        self._control: Control | None = None

    def start(self) -> Pid:
        """Start the target under the runtime; its process id. Raises ClewError."""
        options = self.options
        program = find_program(options.command[0])
        image = load_runtime_image()
        layout, heap_bytes = layout_for_limits(SharedLayout())
        if options.adopts_orphans:
            self._reaper = find_reaper(Pid(os.getpid()))
            become_subreaper()
        settings = self._header_settings()
        environment = options.environment
        if environment is None:
            environment = [name + b"=" + value for name, value in os.environb.items()]
        with contextlib.ExitStack() as undo:
            make_directory(options.output)
            undo.callback(remove_directory, options.output)
            self._journal = JournalWriter(options.output / JOURNAL_NAME)
            undo.callback(self._journal.close)
            self._snapshots = Snapshots(options.output)
            self._processes = Processes(JournalSink(self._journal), image, settings, self._filters, options.sinks)
            self._start_ns = time.time_ns()
            self._write_session()
            arguments = [os.fsencode(word) for word in options.command]
            guard = self._guard
            undo.callback(self._processes.leave)
            with launch_stopped(
                program,
                arguments,
                environment,
                ignored_signals=guard.set_aside,
                default_signals=guard.muted,
                before_fork=guard.commit,
                is_given_up=lambda: guard.n_wishes > 0,
            ) as process:
                self.pid = process.pid
                pidfd = self._add_first(process, layout, heap_bytes)
                process.detach()
                self._guard.follow(pidfd)
            undo.pop_all()
        self._listen()
        return self.pid

    def _add_first(self, process: StoppedProcess, layout: SharedLayout, heap_bytes: int) -> int:
        try:
            return self._processes.add(process, layout, heap_bytes, is_paused=self.options.pause_seconds > 0)
        except TargetGoneError as error:
            if error.wait_status is not None and os.WIFSIGNALED(error.wait_status):
                raise KilledAtStartError(error.pid, error.message, os.WTERMSIG(error.wait_status)) from error
            raise

    def wait(self) -> None:
        """Record until the target and its children have ended, or the guard wants to leave."""
        try:
            self._follow_all()
        finally:
            self._guard.leave()
            self._server.close()
            self._processes.leave()
            for sink in self.options.sinks:
                sink.end()
        self._look_after_journal()
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
        status = self._processes.exit_status.get(self.pid)
        is_killed = status is not None and os.WIFSIGNALED(status)
        return RecordResult(
            self.options.output,
            self.pid,
            None if status is None or is_killed else os.WEXITSTATUS(status),
            os.WTERMSIG(status) if status is not None and is_killed else None,
            self._processes.statistics.totals,
            list(dict.fromkeys(self._warnings)),
            failure,
            None if place is None else place.parent,
        )

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

    def _follow_all(self) -> None:
        pace = Pace(SharedLayout().ring_bytes)
        started = names_at = time.monotonic()
        while len(self._processes):
            delay_seconds = min(pace.delay_seconds, self._max_delay_seconds())
            if self._is_paused:
                delay_seconds = min(delay_seconds, max(started + self.options.pause_seconds - time.monotonic(), 0))
            now = pace.note(self._processes.poll(delay_seconds))
            self._guard.stop_with(self.pid)
            self._processes.tend()
            self._server.tend()
            if now - names_at > NAMES_INTERVAL_SECONDS:
                self._processes.refresh_names()
                self._processes.settle_ended()
                if self.options.adopts_orphans:
                    self._processes.bury_orphans()
                self._look_after_journal()
                names_at = now
            if self._snapshots.is_due:
                self._processes.write_snapshot(self._snapshots)
            if self._is_paused and now - started >= self.options.pause_seconds:
                self.end_pause()
            if self._has_left(now):
                return

    def _max_delay_seconds(self) -> float:
        if self._filters.is_active or self._server.is_busy:
            return MAX_DELAY_WITH_REQUESTS_SECONDS
        delay_seconds = MAX_DELAY_DROPPING_SECONDS if self.options.drop_on_full else MAX_DELAY_SECONDS
        return min([delay_seconds, *(sink.max_delay_seconds for sink in self.options.sinks)])

    def _look_after_journal(self) -> None:
        """Try again to write what found no room, and tell people while they can still help it."""
        if self._journal.failure is None:
            return
        if not self._is_full_told:
            self._tell_people(f"{self._full_line()}; what comes is kept in memory meanwhile: free some space")
            self._is_full_told = True
        if self._journal.retry():
            self._tell_people(f"{self._journal.path}: there is room again")
            self._is_full_told = False

    def _tell_people(self, line: str) -> None:
        if self.options.tell is not None:
            self.options.tell(line)

    def _has_left(self, now: float) -> bool:
        """Whether clew is to leave the processes, and has; `now` is the monotonic time."""
        if self._guard.wants_to_leave or self._is_interrupted_alone(now):
            self._warnings.append("clew was told to leave; the target goes on without it")
            self._leave()
            return True
        return False

    def _leave(self) -> Left:
        """Leave all that still run, as they were; told to leave once more, clew leaves them as they are."""
        from clew.recording.following.leaving import leave_all

        n_wishes = self._guard.n_wishes
        left = leave_all(self._processes, lambda: self._guard.n_wishes > n_wishes)
        self._warnings += left.failures
        return left

    def _is_interrupted_alone(self, now: float) -> bool:
        """Whether a signal came when the program itself had ended, and only descendants still ran."""
        self._tell_once_alone(now)
        return self._alone_since is not None and self._guard.n_wishes > self._n_wishes

    def _tell_once_alone(self, now: float) -> None:
        """Tell people, some time after the program itself ended, that its descendants are recorded still."""
        is_kept = self._processes.is_kept(self.pid)
        if (not is_kept and self._processes.is_running(self.pid)) or not len(self._processes):
            return
        if self._alone_since is None:
            self._alone_since, self._n_wishes = now, self._guard.n_wishes
        elif now - self._alone_since > TELL_AFTER_SECONDS and not self._is_alone_told:
            ways = self._guard.ways_out
            until = f", until {' or '.join(ways)}" if ways else ""
            beside = "; Ctrl-C reaches those of the terminal, too" if "Ctrl-C" in ways else ""
            if is_kept:
                self._tell_people(
                    f"the program has ended; whoever traces it has not let it go, and is waited for{until}"
                )
            else:
                self._tell_people(f"the program has ended; descendants of it still run and are recorded{until}{beside}")
            self._is_alone_told = True

    def end_pause(self) -> None:
        """Let a paused target run its first instruction."""
        self._is_paused = False
        self._processes.end_pause()

    def _listen(self) -> None:
        """From now on the recording can be controlled."""
        # Late: the target runs already, and sockets are much to import.
        from clew.recording.control.server import ControlServer

        is_recorded = self._processes.is_running
        self._server = ControlServer(self._do, is_recorded, self._processes.watch, self._processes.forget)

    def _do(self, command: dict[str, Any]) -> Iterator[dict[str, Any] | None]:
        """Do what somebody asks who controls the recording: most are controlled by nobody."""
        if self._control is None:
            from clew.recording.control.commands import Control

            self._control = Control(self._processes, self._tell, self.end_pause)
        return self._control.do(command)

    def _tell(self) -> dict[str, Any]:
        """What people who control it are told of the recording."""
        include, exclude = self._filters.texts
        return {
            "controller_pid": os.getpid(),
            "output": str(self.options.output),
            "mode": self._processes.mode.name.lower(),
            "budget": self._processes.budget,
            "is_paused": self._is_paused,
            "include": include,
            "exclude": exclude,
        }

    def _write_session(self) -> None:
        """What `clew recover` has to know of the session. Raises OutputError if there is no room even for that."""
        self._journal.write(FrameKind.SESSION, json.dumps(self._describe()).encode("ascii"))
        if self._journal.failure is not None:
            raise OutputError.from_os_error(self.options.output, self._journal.failure)

    def _describe(self) -> dict[str, Any]:
        options = self.options
        include, exclude = self._filters.texts
        return {
            "command": list(options.command),
            "mode": int(options.mode),
            "include": include,
            "exclude": exclude,
            "follow": options.follow,
            "start_ns": self._start_ns,
            "clew_version": __version__,
            "machine": machine_facts(),
        }

    def _target_cpu_seconds(self) -> float | None:
        return self._processes.cpu_seconds

    def _header_settings(self) -> HeaderSettings:
        options = self.options
        return HeaderSettings(
            mode=options.mode,
            relayout_executions=read_relayout_executions(),
            busy_limit=options.busy_limit,
            budget=PATH_UNLIMITED if options.budget is None else options.budget,
            drop_on_full=options.drop_on_full,
            filters_active=self._filters.is_active,
            default_included=self._filters.is_included_by_default,
            follows=options.follow,
            reaper_pid=self._reaper,
        )

    def _note_losses(self) -> None:
        self._warnings += self._processes.warnings
        self._warnings += self._filters.warnings
        self._warnings += [f"filter {text!r} held nothing that was loaded" for text in self._filters.unused()]
        if self._journal.failure is not None:
            self._warnings.append(f"{self._full_line()}; what came later was kept in memory as far as it fitted")

    def _full_line(self) -> str:
        assert self._journal.failure is not None
        return f"{self._journal.path}: {self._journal.failure.strerror}"

    def _assemble(self, processes: Iterable[RawProcess], end_ns: int) -> None:
        reuse_memory()
        from clew.recording.assembly.trace import assemble
        from clew.recording.raw.process import SessionInfo

        described = self._describe()
        session = SessionInfo(
            **described | {"mode": self.options.mode},
            end_ns=end_ns,
            target_cpu_seconds=self._target_cpu_seconds(),
            controller_cpu_seconds=time.process_time(),
            warnings=self._warnings,
            unfollowed_programs=self._processes.n_unfollowed_programs,
            unfollowed_children=self._processes.n_unfollowed_children,
        )
        try:
            assemble(processes, self.options.output, session)
        except OSError as error:
            raise OutputError.from_os_error(self.options.output, error) from error
