"""A program that is followed from Python: `clew.spawn` and `clew.attach_session` make one.

Runs in the controller, in whatever threads the caller has.
"""

from __future__ import annotations

import contextlib
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Final, TypeVar

from clew.address import Tid
from clew.dataclass import replace
from clew.errors import ClewError, ControlError, UsageError
from clew.recording.control.commands import Control
from clew.recording.following.statistics import Statistics
from clew.recording.options.arguments import Text, parse_output
from clew.recording.options.record_options import RecordOptions, RecordResult
from clew.recording.session.target import Origin
from clew.sessions.aggregate_table import AggregateRoom
from clew.sessions.call_probes import CallProbes
from clew.sessions.capture_sink import CaptureSink
from clew.sessions.ends import FirstEnd
from clew.sessions.events.event_sink import EventSink
from clew.sessions.events.events import Events
from clew.sessions.facets.breakpoints import BreakpointsFacet
from clew.sessions.facets.calling import CallingFacet
from clew.sessions.facets.following import FollowingFacet
from clew.sessions.facets.memory import MemoryFacet
from clew.sessions.facets.places import PlacesFacet
from clew.sessions.facets.probes import ProbesFacet
from clew.sessions.facets.transforms import TransformsFacet
from clew.sessions.facets.translation import TranslationFacet
from clew.sessions.streams import Streams
from clew.sessions.target import SessionTarget
from clew.sessions.threads import SessionThread, read_threads
from clew.sessions.worker import Worker

if TYPE_CHECKING:
    from clew.recording.session.interrupts import InterruptGuard
    from clew.sessions.call_summaries import CallSummaries
    from clew.sessions.memory import Images
    from clew.trace import Trace

__all__ = ["Session"]

END_SECONDS: Final = 60.0
T = TypeVar("T")


class Session(
    FollowingFacet,
    ProbesFacet,
    PlacesFacet,
    TransformsFacet,
    TranslationFacet,
    BreakpointsFacet,
    CallingFacet,
    MemoryFacet,
):
    """A program that clew follows. Leaving its `with` block ends it: a program that it spawned is killed if it runs
    still, a process that it attached to goes on natively, as after `detach`.

    All methods raise ControlError once the session has ended, and TargetError where the process is gone.
    """

    stdin: IO[bytes] | None = None
    """The other end of the program's, where that is a pipe; so the others."""
    stdout: IO[bytes] | None = None
    stderr: IO[bytes] | None = None

    def __init__(
        self,
        make_origin: Callable[[], Origin],
        options: RecordOptions,
        *,
        is_spawned: bool,
        streams: Streams | None = None,
        guard: InterruptGuard | None = None,
        images: Images | None = None,
    ) -> None:
        """Meant for `spawn` and `attach_session`. Raises ClewError."""
        self._streams = streams or Streams(None, None, None)
        for name, pipe in self._streams.pipes.items():
            setattr(self, name, pipe)
        self._folder = None if options.output.name else Path(tempfile.mkdtemp(prefix="clew-session-"))
        self._first_end = FirstEnd()
        output = options.output if self._folder is None else self._folder / "session.clew"
        self._captures, event_sink = CaptureSink(), EventSink()
        self._aggregate_room = AggregateRoom()
        sinks = [*options.sinks, self._first_end, self._captures, event_sink]
        self._options = replace(options, output=output, sinks=sinks)
        self._is_spawned = is_spawned
        self._is_closed = False
        try:
            self._worker = Worker(make_origin, self._options, guard)
        except BaseException:
            self._streams.close()
            self._remove_folder()
            raise
        event_sink.must_take = self._captures.must_take = lambda: self._worker.is_asked
        self._streams.let_go()
        self.pid = int(self._worker.pid)
        self._target = SessionTarget(self._worker, images)
        self._probes = CallProbes(self._target)
        self._events = Events(self._target, event_sink, self._probes.delivery.fail)
        self._summaries: CallSummaries | None = None
        if is_spawned:
            self.pause()

    # ------------------------------------------------------------------------------------------------ how it stands

    @property
    def state(self) -> str:
        """`stopped`, `running`, `ended` or `detached`."""
        if self._first_end.exit_code.done():
            return "ended"
        if self._worker.has_ended:
            return "detached"
        try:
            return "stopped" if self._target.run(self._is_held) else "running"
        except ControlError:
            return "ended" if self._first_end.exit_code.done() else "detached"

    @property
    def exit_code(self) -> int | None:
        """How the process ended, as `subprocess` has it: -N where signal N ended it; None as long as it has not."""
        return self._first_end.exit_code.result() if self._first_end.exit_code.done() else None

    @property
    def threads(self) -> list[SessionThread]:
        """The threads, as they are now."""
        return self._target.run(lambda control: read_threads(control, self._target.pid, self._target.unwind))

    @property
    def statistics(self) -> dict[str, int]:
        """What clew's runtime counted of itself so far in this process; docs/statistics.md has the names."""
        try:
            return self._target.run(self._read_statistics)
        except ControlError:
            return dict(self._worker.result().statistics)

    @property
    def n_overdue(self) -> int:
        """How many threads went on by themselves, since a callback took longer than two seconds."""
        return self._probes.ask(lambda places: places.n_overdue)

    @property
    def n_missed(self) -> int:
        """How many returns `on_return` was not told of: there was no room for the places that calls return to."""
        return self._probes.ask(lambda places: places.n_missed)

    # ------------------------------------------------------------------------------------------------ going on, ending

    def resume(self) -> None:
        """Let all threads go on."""
        self._target.ask({"command": "continue"})

    def pause(self) -> None:
        """Stop all threads, each in front of an instruction; one that waits in a system call stops behind it."""
        self._target.ask({"command": "pause"})

    def step(self, tid: int = 0, *, over: bool = False) -> SessionThread:
        """Have a stopped thread execute one instruction, by default the one that moved last; that thread.

        With `over` what a call calls runs to its end, and the other threads run meanwhile.
        """
        question: dict[str, Any] = {"command": "step-over" if over else "step"}
        self._target.ask(question | ({"tid": tid} if tid else {}))
        stopped = [thread for thread in self.threads if thread.state == "stopped"]
        moved = [thread for thread in stopped if thread.tid == tid] or stopped
        if not moved:
            raise ControlError("no thread is stopped after the step")
        return moved[0]

    def set_registers(self, tid: int, registers: Mapping[str, int]) -> None:
        """Have a stopped thread go on with other registers, by their names; where it is can't be changed."""
        changes = dict(registers)

        def steps(control: Control) -> Iterator[bool]:
            holding = control.processes.holdings.of(control.find({"pid": self.pid}))
            holding.set_registers(Tid(tid), changes)
            yield True

        self._target.run(steps)

    def wait(self, timeout: float | None = None) -> int:
        """Wait until the process has ended; its `exit_code`.

        Raises TimeoutError after `timeout` seconds, what a callback raised, and ControlError if the process is left and
        goes on.
        """
        if self._probes.is_here:
            raise UsageError("a callback can't wait for the end of what waits for it")
        deadline = None if timeout is None else time.monotonic() + timeout
        while (exit_code := self.poll()) is None:
            left = 0.05 if deadline is None else min(deadline - time.monotonic(), 0.05)
            if left <= 0:
                raise TimeoutError(f"process {self.pid} has not ended within {timeout} seconds")
            with contextlib.suppress(TimeoutError):
                self._first_end.exit_code.result(left)
        return exit_code

    def wait_for_all(self, timeout: float | None = None) -> bool:
        """Wait until nothing is followed any more: the process has ended and all that descend from it, or were left.
        Whether that is so after `timeout` seconds. Raises what a callback raised, and ClewError."""
        with contextlib.suppress(TimeoutError):
            self._worker.result(timeout)
        self._probes.delivery.raise_failure()
        return self._worker.has_ended

    @property
    def is_following(self) -> bool:
        """Whether the process is followed, or anybody that descends from it."""
        return self._worker.is_following and not self._worker.has_ended

    def poll(self) -> int | None:
        """The `exit_code`, or None as long as the process has not ended; never waits. Raises what `wait` raises."""
        self._probes.delivery.raise_failure()
        if self._worker.has_ended and not self._first_end.exit_code.done():
            self._worker.result()
            raise ControlError("the session has ended; the process goes on without it")
        return self.exit_code

    def kill(self) -> None:
        """End the process by SIGKILL, unless it has ended. Raises ControlError once the session has left it."""
        try:
            self._target.ask({"command": "kill"})
        except ControlError:
            if self.state != "ended":
                raise

    def detach(self, *, wait: bool = True) -> None:
        """Leave everything that is followed; it goes on natively. Comes back when that is so.

        Without `wait` it comes back at once: iterating over `events` ends when that is so, with all that was done.
        """
        if not wait:
            self._worker.leave()
        elif not self._worker.has_ended:
            self._events.let_go()
            self._worker.leave()
            self._worker.result(END_SECONDS)

    def close(self) -> None:
        """End the session, as leaving its `with` block does."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if not self._worker.has_ended and self._is_spawned and self.exit_code is None:
                with contextlib.suppress(ControlError):
                    self.kill()
                with contextlib.suppress(TimeoutError):
                    self._first_end.exit_code.result(END_SECONDS)
            self.detach()
        finally:
            if self._summaries is not None:
                self._summaries.close()
            self._events.close()
            if self._translated is not None:
                self._translated.close()
            self._warn_of_blocks()
            self._probes.close()
            if self._placed is not None:
                self._placed.close()
            self._target.close()
            self._streams.close()
            self._remove_folder()

    @property
    def trace(self) -> Trace:
        """What was recorded, once nothing is followed any more: waits for that. It stays only if `output` was given."""
        from clew.trace import Trace

        result = self._worker.result()
        if result.failure is not None:
            raise result.failure
        return Trace(result.output)

    def snapshot(self, output: Text | None = None) -> Trace:
        """A trace of what was recorded so far, while the session goes on; counts are exact where threads are stopped.

        It stays only if it has an `output` of its own. Raises ClewError.
        """
        from clew.sessions.snapshots import take_snapshot
        from clew.trace import Trace

        path = Path(tempfile.mkdtemp(dir=self._scratch())) / "snapshot.clew" if output is None else parse_output(output)
        take_snapshot(self._target, self._options.output, path)
        return Trace(path)

    def call_summary(self) -> dict[str, int]:
        """How often functions were called since this was asked for last, or since the beginning: by `IMAGE!FUNCTION`.

        All that were called are there, with the most frequent first, but what `exclude` leaves out. Counts are exact
        where threads are stopped. Raises ClewError.
        """
        return self._summarise().take()

    def on_call_summary(self, callback: Callable[[dict[str, int]], None], *, interval: float = 0.25) -> None:
        """Call `callback` with what `call_summary` gives, every `interval` seconds and once more when the session ends.

        That is done in a thread of clew's own; what it raises `wait` raises. The program counts calls anyway. Where
        there is so much code that adding up takes long it is rarer.
        """
        self._summarise().tell(callback, interval)

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()
        if error is None:
            self._probes.delivery.raise_failure()

    def __repr__(self) -> str:
        return f"<session of process {self.pid}, {'closed' if self._is_closed else self.state}>"

    # ------------------------------------------------------------------------------------------------ for clew itself

    def run_steps(self, steps: Callable[[Control], Iterator[T | None]]) -> T:
        """Have something done by the owner of the target, and wait for it. Raises ClewError."""
        return self._target.run(steps)

    def result(self) -> RecordResult:
        """How the recording went: waits until nothing is followed any more. Raises ClewError."""
        return self._worker.result()

    # ------------------------------------------------------------------------------------------------ inside

    def _is_held(self, control: Control) -> Iterator[bool | None]:
        yield control.processes.holdings.is_held(control.find({"pid": self.pid}))

    def _read_statistics(self, control: Control) -> Iterator[dict[str, int]]:
        drain = control.find({"pid": self.pid}).drain
        numbers = Statistics()
        if drain is not None:
            numbers.add(drain.status())
        yield numbers.totals

    @contextlib.contextmanager
    def _recorded(self) -> Iterator[Trace]:
        """What was recorded so far, or all of it."""
        trace = None
        if not self._worker.has_ended:
            with contextlib.suppress(ControlError):
                trace = self.snapshot()
        yield trace or self.trace
        if trace is not None:
            shutil.rmtree(trace.directory.parent, ignore_errors=True)

    def _summarise(self) -> CallSummaries:
        if self._summaries is None:
            from clew.sessions.call_summaries import CallSummaries

            self._summaries = CallSummaries(
                self._target, self._options.output, self._recorded, self._probes.delivery.fail
            )
        return self._summaries

    def _warn_of_blocks(self) -> None:
        if self._transformers is None:
            return
        n_refused = 0
        # A recording that failed has no numbers.
        with contextlib.suppress(ClewError, TimeoutError):
            n_refused = dict(self._worker.result(END_SECONDS).statistics).get("blocks_refused", 0)
        for message in self._transformers.warn(n_refused):
            warnings.warn(message, stacklevel=3)

    def _scratch(self) -> Path:
        """A folder that goes with the session."""
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="clew-session-"))
        return self._folder

    def _remove_folder(self) -> None:
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
