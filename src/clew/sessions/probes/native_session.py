"""A program that runs its own code with probes in it, from Python: `clew.probe_session` makes one.

Runs in the controller, in whatever threads the caller has.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import IO, TYPE_CHECKING, Final, Literal

from clew.errors import ControlError, OutputExistsError, UsageError
from clew.export.probes.event_types import EventBatch
from clew.recording.options.arguments import Text, parse_mode, parse_output
from clew.sessions.aggregate_table import AggregateWish
from clew.sessions.probes.native_events import EventCallback, NativeEvents
from clew.sessions.probes.native_probes import NativeProbes
from clew.sessions.probes.native_worker import Begun, NativeWorker
from clew.sessions.probes.probe import WAIT_SECONDS, Probe, read_spec
from clew.sessions.probes.probe_sum import ProbeSum
from clew.sessions.probes.specs import ProbeSpec, RecordWish, Trigger, TriggerAction
from clew.sessions.streams import Streams

if TYPE_CHECKING:
    from clew.sessions.probes.backends import BackendChoice
    from clew.sessions.probes.following import Follower
    from clew.sessions.probes.probe_session import ProbeSession
    from clew.trace import Trace

__all__ = ["NativeSession"]

END_SECONDS: Final = 60.0


class NativeSession:
    """A program with probes in it. It is not followed: it runs its own code, at its own speed but for the probes.

    Leaving its `with` block ends it: a program that it started is killed if it runs still, a process that it attached
    to goes on as it was before, as after `detach`. Methods raise ControlError once the session has ended.
    """

    stdin: IO[bytes] | None = None
    """The other end of the program's, where that is a pipe; so the others."""
    stdout: IO[bytes] | None = None
    stderr: IO[bytes] | None = None

    def __init__(
        self,
        begin: Callable[[ProbeSession], Begun],
        choice: BackendChoice,
        follower: Follower,
        streams: Streams | None = None,
    ) -> None:
        """Meant for `clew.probe_session`. Raises ClewError."""
        self._streams = streams or Streams(None, None, None)
        for name, pipe in self._streams.pipes.items():
            setattr(self, name, pipe)
        self._events, self._follower = NativeEvents(), follower
        self._is_closed = False
        try:
            self._worker = NativeWorker(begin, choice, self._events.take, self._events.flush)
        except BaseException:
            self._streams.close()
            raise
        self._streams.let_go()
        self._probes = NativeProbes(self._worker, self._events)
        self.pid = self._worker.begun.pid

    # ---------------------------------------------------------------------------------------------------------- probes

    def probe(
        self,
        where: str | int,
        *,
        capture: str | Iterable[str] = (),
        filter: str | None = None,
        function: bool = False,
        returned: str | Iterable[str] | None = None,
        inline: bool = False,
        name: str | None = None,
        callback: EventCallback | None = None,
    ) -> Probe:
        """Have an event whenever a thread comes to a place: in front of the instruction there.

        `where` is an address, `main+0x10`, `parse.c:42`, `libc.so.6!malloc`, a pattern, `usdt:libc:*`
        (docs/probe-locations.md); what is not loaded yet gets its probe when it is. `capture` are expressions, or what
        `clew trace -t` takes: `regs`, `reg:NAME`, `backtrace:8`, `TYPE:NAME:ADDRESS`, `NAME=EXPRESSION`. Where `filter`
        is 0 or can't be had there is no event. With `function` there are events where the function is entered and
        where it returns, with `returned` there, `retval` unless given; `filter` chooses calls as they begin. With
        `inline` it is also where a function was inlined. Events are called `name`, or as the place.

        With `callback` events are not kept: it is called with each, a `ProbeEvent`, soon after that happened; no thread
        waits for it. It is called in a thread of clew's own, in the order of time: of one thread always, of several as
        far as their events were there to read. What it raises `wait`, `events` and leaving the `with` block raise; from
        then on no callback is called. Raises CaptureError, UsageError, ControlError.
        """
        spec = read_spec(
            where, capture, filter, is_function=function, returned=returned, with_inlined=inline, name=name
        )
        return Probe(self._probes, self._probes.add(spec, callback), spec.where)

    def aggregate(
        self,
        where: str | int,
        *,
        at: Literal["call", "return"] = "call",
        by: str | Iterable[str] = (),
        value: str | None = None,
        condition: str | None = None,
        histogram: bool = False,
        max_keys: int = 1024,
        inline: bool = False,
    ) -> ProbeSum:
        """Count how often threads come to a place, by the values of expressions, and add up `value`: the program does
        so itself, and no event is written.

        `where` is as for `probe`. `at` its return, of a function, there are `retval` and `duration`, how long the call
        took in nanoseconds; `condition` chooses calls as they begin. The rest is as for `Session.aggregate`. Children
        and programs that are executed are added to the same. Raises CaptureError, UsageError, ControlError.
        """
        if at not in ("call", "return"):
            raise UsageError(f"at {at!r}: a call, or a return")
        text = f"{where:#x}" if isinstance(where, int) else where
        keys = [by] if isinstance(by, str) else list(by)
        is_function = at == "return"
        wish = AggregateWish(keys, value, condition, max_keys, histogram)
        spec = ProbeSpec(text, text, is_function, condition=condition, with_inlined=inline, wish=wish)
        return ProbeSum(self._probes, self._probes.add(spec), text)

    def record_on(
        self,
        where: str | int,
        output: Text,
        *,
        condition: str | None = None,
        at: Literal["call", "return"] = "call",
        mode: str = "full",
    ) -> None:
        """Have the engine follow the process from where a thread comes to a place first, in front of the instruction
        there, and record it into the trace `output`, which is whole when the session has ended (`recorded`).

        `where` is as for `probe`. `at` its return, of a function; where `condition` does not hold nothing happens. The
        threads are held for some tens of milliseconds; the probes go on with the same names, and no event is missed or
        told twice. Sums do not go on. Where the process can't be followed the probes stay; `notes` tells which, and
        which thread came where. It may be asked for once. `mode` is as for `record`. Raises CaptureError, UsageError,
        ControlError, OutputExistsError.
        """
        if at not in ("call", "return"):
            raise UsageError(f"at {at!r}: a call, or a return")
        path = parse_output(output)
        if path.exists():
            raise OutputExistsError(path)
        parse_mode(mode)
        text = f"{where:#x}" if isinstance(where, int) else where
        is_return = at == "return"
        trigger = Trigger(TriggerAction.RECORD)
        spec = ProbeSpec(text, text, is_return, condition=condition, consequence=trigger, at_return=is_return)
        self._worker.do(lambda session: session.record_at(spec, RecordWish(self._follower, path, mode)))

    @property
    def notes(self) -> list[str]:
        """What happened to processes as wholes, for people: that one is followed from then on, or why it is not."""
        return self._worker.ask(lambda session: list(session.notes))

    @property
    def recorded(self) -> Trace | None:
        """What was recorded, once the session has ended; None: nothing was, or it goes on."""
        from clew.trace import Trace

        path = self._worker.ask(lambda session: session.recorded)
        return None if path is None else Trace(path)

    def events(self) -> Iterator[EventBatch]:
        """The events of all probes that were not read yet, and then those that come, until the process has ended.

        A batch has a table of each type of events (`EventType.schema`), and what was lost since the last one; none is
        empty. What is read here `Probe.read` does not give any more. Raises what a callback raised, and ClewError.
        """
        has_ended = False
        while not has_ended:
            has_ended = self._probes.wait_for_end(WAIT_SECONDS)
            self._worker.read()
            tables, losses = self._events.store.take_all(), self._events.take_losses()
            if tables or losses:
                yield EventBatch(tables, losses)

    # ------------------------------------------------------------------------------------------------ how it stands

    @property
    def state(self) -> str:
        """`stopped`, in front of its first instruction; `running`, `ended` or `detached`."""
        if self._worker.ended.done():
            return "ended"
        if self._worker.over.done():
            return "detached"
        return "stopped" if self._worker.is_stopped else "running"

    @property
    def exit_code(self) -> int | None:
        """How the process ended, as `subprocess` has it: -N where signal N ended it; None as long as it has not, and of
        a process that was attached to."""
        return self._worker.ended.result() if self._worker.ended.done() else None

    @property
    def n_lost(self) -> int:
        """How many events were lost: they came faster than they could be read."""
        self._worker.read()
        return self._events.n_lost

    @property
    def warnings(self) -> list[str]:
        """What is doubtful about places, and where no probe can be, for people."""
        return self._probes.remarks()

    # ------------------------------------------------------------------------------------------------ going on, ending

    def resume(self) -> None:
        """Let a program go that was started: it waits in front of its first instruction."""
        self._worker.do(self._worker.resume)

    def wait(self, timeout: float | None = None) -> int | None:
        """Wait until the process has ended, and callbacks were called with all its events; its `exit_code`.

        Raises TimeoutError after `timeout` seconds, what a callback raised, and ControlError if the process is left and
        goes on.
        """
        if self._events.delivery.is_here:
            raise UsageError("a callback can't wait for the end of what it is told of")
        deadline = None if timeout is None else time.monotonic() + timeout
        while not self._probes.wait_for_end(WAIT_SECONDS):
            if deadline is not None and time.monotonic() >= deadline:
                raise TimeoutError(f"process {self.pid} has not ended within {timeout} seconds")
        if not self._worker.ended.done():
            raise ControlError("the session has ended; the process goes on without it")
        return self.exit_code

    def kill(self) -> None:
        """End the process by SIGKILL, unless it has ended."""
        self._worker.kill()

    def detach(self) -> None:
        """Take all probes out; the process goes on, and nothing is left in it. What has come can still be read."""
        self._worker.leave()

    def close(self) -> None:
        """End the session, as leaving its `with` block does."""
        if self._is_closed:
            return
        self._is_closed = True
        try:
            if self._worker.begun.stopped is not None and self.state in ("stopped", "running"):
                self._worker.kill()
                with contextlib.suppress(TimeoutError):
                    self._worker.ended.result(END_SECONDS)
            self.detach()
        finally:
            self._events.delivery.close()
            self._streams.close()

    def __enter__(self) -> NativeSession:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self.close()
        if error is None:
            self._events.delivery.raise_failure()

    def __repr__(self) -> str:
        return (
            f"<session of process {self.pid}, which runs its own code, {'closed' if self._is_closed else self.state}>"
        )
