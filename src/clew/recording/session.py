"""One run of recording: start a program with the runtime in it, empty its rings until it ends, write the trace.

Runs in the controller. The start is what a user waits for: numpy and pyarrow are imported when the target runs
already. What records mean is not known here; the terminal is `clew.cli`'s.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from clew import __version__
from clew.address import Pid
from clew.errors import OutputError, OutputExistsError, UsageError
from clew.process.inject import layout_for_limits
from clew.process.launch import launch_stopped
from clew.process.program import find_program
from clew.process.runtime_image import load_runtime_image
from clew.process.shared_memory import HeaderSettings, Relayout, SharedLayout
from clew.protocol._constants import Mode
from clew.recording.filters import FilterSet
from clew.recording.interrupts import InterruptGuard
from clew.recording.journal import JOURNAL_NAME, FrameKind, JournalWriter
from clew.recording.machine import machine_facts
from clew.recording.processes import Processes

if TYPE_CHECKING:
    from clew.recording.raw import RawProcess

__all__ = ["RecordOptions", "RecordResult", "RecordingSession", "default_output"]

MAX_DEFAULT_NAMES: Final = 10_000

MIN_DELAY_SECONDS: Final = 0.0005
MAX_DELAY_SECONDS: Final = 0.02
MAX_DELAY_WITH_REQUESTS_SECONDS: Final = 0.002
NAMES_INTERVAL_SECONDS: Final = 1.0


@dataclass(frozen=True)
class RecordOptions:
    """What to record and how. `command` is the program with its arguments, `output` the directory to make.

    `environment` holds `NAME=value` strings; None means this process's own, as Python has it. `pause_seconds` is how
    long the target waits before its first instruction. With `follow` child processes are recorded, too, and the
    programs that processes go on with. With `drop_on_full` what finds no room is counted and left out,
    otherwise the target waits.
    """

    command: Sequence[str]
    output: Path
    mode: Mode = Mode.COUNTS
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    drop_on_full: bool = False
    pause_seconds: float = 0.0
    follow: bool = True
    environment: Sequence[bytes] | None = None


@dataclass(frozen=True)
class RecordResult:
    """How it went. `exit_code` or `signal` tells how the target ended; both None: it goes on without clew.

    `statistics` are the numbers on the runtime's status page. `warnings` are lines for people.
    """

    output: Path
    pid: Pid
    exit_code: int | None
    signal: int | None
    statistics: dict[str, int]
    warnings: list[str] = field(default_factory=list)

    @property
    def exit_status(self) -> int:
        """As a shell tells it: the exit code, 128 + N when signal N ended the target, 143 if the target goes on."""
        if self.signal is not None:
            return 128 + self.signal
        return 128 + signal.SIGTERM if self.exit_code is None else self.exit_code


class RecordingSession:
    """One run. `start`, then `wait`, then `finish`; each once.

    The directory `options.output` is made by `start`; if `start` fails, nothing is left of it.
    """

    def __init__(self, options: RecordOptions, guard: InterruptGuard | None = None) -> None:
        if options.mode not in (Mode.COUNTS, Mode.COVERAGE):
            raise UsageError(f"mode {options.mode.name.lower()}: not there yet; choose counts or coverage")
        self.options = options
        self.pid = Pid(0)
        self._guard = guard or InterruptGuard()
        self._filters = FilterSet(options.include, options.exclude)
        self._warnings: list[str] = []
        self._start_ns = 0

    def start(self) -> Pid:
        """Start the target under the runtime; its process id. Raises ClewError."""
        options = self.options
        program = find_program(options.command[0])
        image = load_runtime_image()
        layout, heap_bytes = layout_for_limits(SharedLayout())
        settings = HeaderSettings(
            mode=options.mode,
            relayout=Relayout.from_environment(),
            drop_on_full=options.drop_on_full,
            filters_active=self._filters.is_active,
            default_included=self._filters.is_included_by_default,
            follows=options.follow,
        )
        environment = options.environment
        if environment is None:
            environment = [name + b"=" + value for name, value in os.environb.items()]
        with contextlib.ExitStack() as undo:
            _make_directory(options.output)
            undo.callback(_remove_directory, options.output)
            self._journal = JournalWriter(options.output / JOURNAL_NAME)
            undo.callback(self._journal.close)
            self._processes = Processes(self._journal, image, settings, self._filters)
            self._start_ns = time.time_ns()
            self._write_session()
            arguments = [os.fsencode(word) for word in options.command]
            guard = self._guard
            with launch_stopped(program, arguments, environment, guard.set_aside, guard.commit) as process:
                self.pid = process.pid
                pidfd = self._processes.add(process, layout, heap_bytes, is_paused=options.pause_seconds > 0)
                process.detach()
                self._guard.follow(pidfd)
            undo.pop_all()
        return self.pid

    def wait(self) -> None:
        """Record until the target and its children have ended, or the guard wants to leave."""
        try:
            self._follow_all()
        finally:
            self._guard.target_pidfd = None
            self._processes.leave()
        self._note_losses()
        self._journal.close()

    def finish(self) -> RecordResult:
        """Write the trace's tables. Raises OutputError if there is no room for them."""
        from clew.recording.journal_reader import read_journal

        processes = read_journal(self._journal.path, self._journal.overflow)
        try:
            self._assemble(processes)
        except OutputError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            # All of it is in memory: the journal's room is worth more to the tables.
            self._journal.path.unlink(missing_ok=True)
            try:
                self._assemble(processes)
            except OutputError:
                # Neither tables nor journal find room: half a trace would only be taken for one.
                _remove_directory(self.options.output)
                raise
        self._journal.path.unlink(missing_ok=True)
        status = self._processes.exit_status.get(self.pid)
        is_killed = status is not None and os.WIFSIGNALED(status)
        return RecordResult(
            self.options.output,
            self.pid,
            None if status is None or is_killed else os.WEXITSTATUS(status),
            os.WTERMSIG(status) if status is not None and is_killed else None,
            self._processes.statistics,
            list(dict.fromkeys([*self._warnings, *(line for process in processes for line in process.warnings)])),
        )

    def _follow_all(self) -> None:
        ring_bytes = SharedLayout().ring_bytes
        max_delay = MAX_DELAY_WITH_REQUESTS_SECONDS if self._filters.is_active else MAX_DELAY_SECONDS
        delay = MIN_DELAY_SECONDS
        started = last = names_at = time.monotonic()
        is_paused = self.options.pause_seconds > 0
        while len(self._processes):
            moved_bytes = self._processes.poll(delay)
            now = time.monotonic()
            if moved_bytes:
                # Come again when the ring is about a quarter full, if it goes on like this.
                delay = min(max((now - last) * ring_bytes / 4 / moved_bytes, MIN_DELAY_SECONDS), 2 * delay, max_delay)
            else:
                delay = min(2 * delay, max_delay)
            last = now
            if now - names_at > NAMES_INTERVAL_SECONDS:
                self._processes.refresh_names()
                names_at = now
            if is_paused and now - started >= self.options.pause_seconds:
                self._processes.end_pause()
                is_paused = False
            if self._guard.wants_to_leave:
                self._warnings.append("clew was told to leave; the target goes on without it")
                return

    def end_pause(self) -> None:
        """Let a paused target run its first instruction."""
        self._processes.end_pause()

    def _write_session(self) -> None:
        """What `clew recover` has to know of the session, should this process not live to write it."""
        self._journal.write(FrameKind.SESSION, json.dumps(self._describe()).encode("ascii"))

    def _describe(self) -> dict[str, Any]:
        options = self.options
        return {
            "command": list(options.command),
            "mode": int(options.mode),
            "include": list(options.include),
            "exclude": list(options.exclude),
            "start_ns": self._start_ns,
            "clew_version": __version__,
            "machine": machine_facts(),
        }

    def _note_losses(self) -> None:
        self._warnings += self._processes.warnings
        self._warnings += self._filters.warnings
        self._warnings += [f"filter {text!r} held nothing that was loaded" for text in self._filters.unused()]
        failure = self._journal.failure
        if failure is not None:
            self._warnings.append(
                f"{self._journal.path}: {failure.strerror}; what came later was kept in memory as far as it fitted"
            )

    def _assemble(self, processes: list[RawProcess]) -> None:
        from clew.recording.assemble import assemble
        from clew.recording.raw import SessionInfo

        described = self._describe()
        session = SessionInfo(
            **described | {"mode": self.options.mode},
            end_ns=max(process.end_ns for process in processes),
            target_cpu_seconds=self._processes.cpu_seconds,
            controller_cpu_seconds=time.process_time(),
            warnings=self._warnings,
        )
        try:
            assemble(processes, self.options.output, session)
        except OSError as error:
            raise OutputError.from_os_error(self.options.output, error) from error


def default_output(program: str) -> Path:
    """`PROGRAM.clew` in the working directory, with a number if there is one already."""
    name = os.path.basename(program) or "trace"
    for number in range(1, MAX_DEFAULT_NAMES):
        path = Path(f"{name}.clew" if number == 1 else f"{name}-{number}.clew")
        if not os.path.lexists(path):
            return path
    raise UsageError(f"{name}.clew and {MAX_DEFAULT_NAMES} more names are taken; choose one")


def _make_directory(path: Path) -> None:
    try:
        path.mkdir()
    except FileExistsError as error:
        raise OutputExistsError(path) from error
    except FileNotFoundError as error:
        raise OutputError(
            path, f"the directory {path.parent} does not exist; make it, or choose another with -o"
        ) from error
    except OSError as error:
        raise OutputError.from_os_error(path, error) from error


def _remove_directory(path: Path) -> None:
    # Late: it brings three libraries for compression along, and is needed where something failed only.
    import shutil

    shutil.rmtree(path, ignore_errors=True)
