"""One run of recording: start a program with the runtime in it, empty its rings until it ends, write the trace.

Runs in the controller. The start is what a user waits for: numpy and pyarrow are imported when the target runs
already. What records mean is not known here; the terminal is `clew.cli`'s.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Final

from clew import __version__
from clew.address import FileOffset, Pid, RemoteAddress
from clew.errors import OutputError, OutputExistsError, UsageError
from clew.process.inject import inject, layout_for_limits
from clew.process.launch import launch_stopped
from clew.process.linux import PROT_EXEC, futex_wake
from clew.process.maps import Mapping, read_maps
from clew.process.program import find_program
from clew.process.runtime_image import load_runtime_image
from clew.process.shared_memory import FilterRow, Relayout, SharedLayout, SharedMemory
from clew.protocol._constants import ErrorCode, Mode, RequestKind, RuntimeState
from clew.recording.filters import CodeMapping, FilterSet
from clew.recording.interrupts import InterruptGuard
from clew.recording.journal import JOURNAL_NAME, FrameKind, JournalWriter
from clew.recording.machine import machine_facts

if TYPE_CHECKING:
    import numpy as np

    from clew.recording.drain import Drain, Request
    from clew.recording.raw import RawProcess, SessionInfo

__all__ = [
    "RecordOptions",
    "RecordResult",
    "RecordingSession",
    "default_output",
    "make_directory",
    "remove_directory",
]

MAX_DEFAULT_NAMES: Final = 10_000

MIN_DELAY_SECONDS: Final = 0.0005
MAX_DELAY_SECONDS: Final = 0.02
MAX_DELAY_WITH_FILTERS_SECONDS: Final = 0.002
NAMES_INTERVAL_SECONDS: Final = 1.0


@dataclass(frozen=True)
class RecordOptions:
    """What to record and how. `command` is the program with its arguments, `output` the directory to make.

    `environment` holds `NAME=value` strings; None means this process's own, as Python has it. `pause_seconds` is how
    long the target waits before its first instruction. With `drop_on_full` what finds no room is counted and left out,
    otherwise the target waits.
    """

    command: Sequence[str]
    output: Path
    mode: Mode = Mode.COUNTS
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    drop_on_full: bool = False
    pause_seconds: float = 0.0
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
        self._process_name = ""
        self._guard = guard or InterruptGuard()
        self._filters = FilterSet(options.include, options.exclude)
        self._warnings: list[str] = []
        self._start_ns = 0
        self._exit_code: int | None = None
        self._signal: int | None = None
        self._target_cpu_seconds = 0.0

    def start(self) -> Pid:
        """Start the target under the runtime; its process id. Raises ClewError."""
        options = self.options
        program = find_program(options.command[0])
        image = load_runtime_image()
        layout, heap_bytes = layout_for_limits(SharedLayout())
        relayout = Relayout.from_environment()
        environment = options.environment
        if environment is None:
            environment = [name + b"=" + value for name, value in os.environb.items()]
        with contextlib.ExitStack() as undo:
            make_directory(options.output)
            undo.callback(remove_directory, options.output)
            self._journal = JournalWriter(options.output / JOURNAL_NAME)
            undo.callback(self._journal.close)
            self._shared = SharedMemory(
                layout,
                mode=options.mode,
                relayout=relayout,
                drop_on_full=options.drop_on_full,
                filters_active=self._filters.is_active,
                default_included=self._filters.is_included_by_default,
                is_paused=options.pause_seconds > 0,
            )
            undo.callback(self._shared.close)
            self._start_ns = time.time_ns()
            arguments = [os.fsencode(word) for word in options.command]
            guard = self._guard
            with launch_stopped(program, arguments, environment, guard.set_aside, guard.commit) as process:
                self.pid = process.pid
                mappings = read_maps(process.pid)
                executable = os.readlink(f"/proc/{process.pid}/exe")
                self._process_name = Path(f"/proc/{process.pid}/comm").read_text(errors="replace").rstrip("\n")
                inject(process, image, self._shared, heap_bytes)
                self._append_filters(
                    self._filters.address_rows() + [row for mapping in mappings for row in self._rows_for(mapping)]
                )
                self._pidfd = os.pidfd_open(process.pid)
                process.detach()
                self._guard.follow(self._pidfd)
            undo.pop_all()
        self._journal.write_json(FrameKind.PROCESS, self._process_row(executable, mappings))
        return self.pid

    def wait(self) -> None:
        """Record until the target has ended, or the guard wants to leave."""
        # Late: the target runs already while these are imported.
        from clew.recording.drain import Drain

        answer = self._answer if self._filters.is_active else None
        drain = Drain(self._shared, self._journal, self.pid, process_name=self._process_name, answer=answer)
        try:
            self._drain_until_end(drain)
            drain.finish()
            self._warnings += drain.warnings
            self._note_runtime_state(drain.status())
        finally:
            drain.close()
            self._guard.target_pidfd = None
            os.close(self._pidfd)
            self._shared.close()
        self._note_losses()
        self._journal.write_json(
            FrameKind.PROCESS_END,
            {
                "end_ns": time.time_ns(),
                "exit_code": self._exit_code,
                "signal": self._signal,
                "warnings": self._warnings,
            },
        )
        self._journal.close()

    def finish(self) -> RecordResult:
        """Write the trace's tables. Raises OutputError if there is no room for them."""
        from clew.recording.journal_reader import read_journal

        process = read_journal(self._journal.path, self._journal.overflow)
        try:
            self._assemble(process)
        except OutputError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT):
                raise
            # All of it is in memory: the journal's room is worth more to the tables.
            self._journal.path.unlink(missing_ok=True)
            try:
                self._assemble(process)
            except OutputError:
                # Neither tables nor journal find room: half a trace would only be taken for one.
                remove_directory(self.options.output)
                raise
        self._journal.path.unlink(missing_ok=True)
        statistics = {
            name: int(process.status[name])
            for name in process.status.dtype.names or ()
            if process.status.dtype[name].shape == ()
        }
        return RecordResult(
            self.options.output,
            self.pid,
            self._exit_code,
            self._signal,
            statistics,
            list(dict.fromkeys(process.warnings)),
        )

    def _drain_until_end(self, drain: Drain) -> None:
        quarter_ring = self._shared.layout.ring_bytes // 4
        max_delay = MAX_DELAY_WITH_FILTERS_SECONDS if self._filters.is_active else MAX_DELAY_SECONDS
        delay = MIN_DELAY_SECONDS
        started = last = names_at = time.monotonic()
        is_paused = self.options.pause_seconds > 0
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
            if is_paused and now - started >= self.options.pause_seconds:
                self.end_pause()
                is_paused = False
            if self._guard.wants_to_leave:
                self._warnings.append("clew was told to leave; the target goes on without it")
                return
        try:
            _, status, usage = os.wait4(self.pid, 0)
        except ChildProcessError:
            self._warnings.append("how the target ended is not known: somebody else waited for it")
            return
        self._target_cpu_seconds = usage.ru_utime + usage.ru_stime
        if os.WIFSIGNALED(status):
            self._signal = os.WTERMSIG(status)
        else:
            self._exit_code = os.WEXITSTATUS(status)

    def end_pause(self) -> None:
        """Let a paused target run its first instruction."""
        import ctypes

        offset = self._shared.set_status_ticket("pause_ticket", 0)
        futex_wake(ctypes.addressof(ctypes.c_char.from_buffer(self._shared.map, offset)))

    def _answer(self, request: Request) -> int:
        if request.kind != RequestKind.IMAGE_FILTERS:
            return 0
        start, end = request.arguments[:2]
        with contextlib.suppress(OSError):
            rows = [
                row
                for mapping in read_maps(self.pid)
                if mapping.start < end and start < mapping.end
                for row in self._rows_for(mapping)
            ]
            self._append_filters(rows)
        return 0

    def _rows_for(self, mapping: Mapping) -> list[FilterRow]:
        if not mapping.protection & PROT_EXEC or not self._filters.is_active:
            return []
        return self._filters.rows_for(CodeMapping(mapping.path, mapping.start, mapping.end, mapping.file_offset))

    def _append_filters(self, rows: list[FilterRow]) -> None:
        if self._shared.append_filters(rows) < len(rows):
            self._warnings.append(
                "more ranges to include or exclude than the runtime's table holds; some were left out"
            )

    def _process_row(self, executable: str, mappings: list[Mapping]) -> dict[str, object]:
        return {
            "pid": self.pid,
            "parent_pid": os.getpid(),
            "executable": executable,
            "command": list(self.options.command),
            "start_ns": self._start_ns,
            "mode": int(self.options.mode),
            "initial_images": [
                {
                    "path": mapping.path,
                    "start": RemoteAddress(mapping.start),
                    "end": RemoteAddress(mapping.end),
                    "file_offset": FileOffset(mapping.file_offset),
                    "protection": mapping.protection,
                    "device": mapping.device,
                    "inode": mapping.inode,
                }
                for mapping in mappings
                if mapping.protection & PROT_EXEC
            ],
        }

    def _note_runtime_state(self, status: np.void) -> None:
        state, error, lost_threads = (int(status[name]) for name in ("state", "error", "lost_threads"))
        if error != ErrorCode.NONE or state == RuntimeState.FAILED:
            name = ErrorCode(error).name.lower() if error in set(ErrorCode) else str(error)
            detail = ", ".join(f"{int(value):#x}" for value in status["error_detail"])
            self._warnings.append(f"the runtime reported an error: {name} ({detail}); the trace may be incomplete")
        elif state == RuntimeState.INJECTED:
            self._warnings.append("the target ended before the runtime began; nothing was recorded")
        if lost_threads:
            self._warnings.append(f"{lost_threads} threads could not be created (EAGAIN): no slot was free")

    def _note_losses(self) -> None:
        self._warnings += self._filters.warnings
        self._warnings += [f"filter {text!r} held nothing that was loaded" for text in self._filters.unused()]
        failure = self._journal.failure
        if failure is not None:
            self._warnings.append(
                f"{self._journal.path}: {failure.strerror}; what came later was kept in memory as far as it fitted"
            )

    def _assemble(self, process: RawProcess) -> None:
        from clew.recording.assemble import assemble

        try:
            assemble([process], self.options.output, self._session_info(process))
        except OSError as error:
            raise OutputError.from_os_error(self.options.output, error) from error

    def _session_info(self, process: RawProcess) -> SessionInfo:
        from clew.recording.raw import SessionInfo

        return SessionInfo(
            command=list(self.options.command),
            mode=self.options.mode,
            include=list(self.options.include),
            exclude=list(self.options.exclude),
            start_ns=self._start_ns,
            end_ns=process.end_ns,
            clew_version=__version__,
            machine=machine_facts(),
            target_cpu_seconds=self._target_cpu_seconds,
            controller_cpu_seconds=time.process_time(),
        )


def default_output(program: str) -> Path:
    """`PROGRAM.clew` in the working directory, with a number if there is one already."""
    name = os.path.basename(program) or "trace"
    for number in range(1, MAX_DEFAULT_NAMES):
        path = Path(f"{name}.clew" if number == 1 else f"{name}-{number}.clew")
        if not os.path.lexists(path):
            return path
    raise UsageError(f"{name}.clew and {MAX_DEFAULT_NAMES} more names are taken; choose one")


def make_directory(path: Path) -> None:
    """Make the directory of a trace. Raises OutputExistsError, or OutputError with the reason."""
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


def remove_directory(path: Path) -> None:
    """Remove a directory with all that is in it, as far as that is possible."""
    # Late: it brings three libraries for compression along, and is needed where something failed only.
    import shutil

    shutil.rmtree(path, ignore_errors=True)
