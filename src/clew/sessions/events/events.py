"""The events of a session: who is followed, and what is told of it.

Runs in the controller, in any thread.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy.typing as npt

from clew.errors import ControlError, UsageError
from clew.protocol._constants import Mode
from clew.protocol.codec import FlowKind
from clew.protocol.codec_layouts import VALUE_EVENT
from clew.sessions.choice import EVERYBODY, Choice, Some, Threads, choose
from clew.sessions.events.event_sink import ENOUGH_ROUNDS, EventSink, ToldQueue
from clew.sessions.events.event_stream import EventStream, Wanted, parse_kinds
from clew.sessions.events.gates import NO_GATES, Gates, Places, parse_gates
from clew.sessions.native_threads import NativeThreads
from clew.sessions.where import Where, parse_where

if TYPE_CHECKING:
    from clew.process.maps import Mapping
    from clew.recording.control.commands import Control
    from clew.recording.following.followed import FollowedProcess
    from clew.sessions.events.decoder import Decoder
    from clew.sessions.target import SessionTarget

__all__ = ["Events"]

Array = npt.NDArray[Any]

IDLE_SECONDS: Final = 1.0
"""The order is recorded for so long after nobody asks for events any more."""


class Events:
    """Of the session of `target`; `sink` is told of it. `fail` takes what a callback raised."""

    def __init__(self, target: SessionTarget, sink: EventSink, fail: Callable[[BaseException], None]) -> None:
        self._native = NativeThreads(target, fail)
        self._target, self._sink, self._fail = target, sink, fail
        self._wanted = Wanted()
        self._choice = EVERYBODY
        self._decoder: Decoder | None = None
        self._stream: EventStream | None = None
        self._receiver: threading.Thread | None = None
        self._later: list[tuple[Where, bool]] = []
        """Gates of what is not loaded yet, and whether they open."""
        self._hears_of_code = False
        self._has_changed_mode = False
        self._changing_back: threading.Timer | None = None

    @property
    def stream(self) -> EventStream:
        """What comes. Raises UsageError if nothing was ever followed."""
        if self._stream is None:
            raise UsageError("no events are asked for: `follow(events=...)` does")
        return self._stream

    def follow(
        self,
        threads: Threads,
        events: Iterable[str],
        *,
        activate: Places | None,
        deactivate: Places | None,
        queue_batches: int,
        on_full: str,
        has_time: bool,
        others: str,
    ) -> EventStream:
        """Have events of threads told from now on. Raises UsageError, ControlError."""
        kinds, choice = parse_kinds(events), choose(threads)
        if others not in ("native", "recorded"):
            raise UsageError(f"others {others!r}: there are native and recorded")
        asked = parse_gates(activate, deactivate, self._find_gate)
        if on_full not in ("wait", "drop"):
            raise UsageError(f"on_full {on_full!r}: there are wait and drop")
        if queue_batches < 1:
            raise UsageError(f"queue_batches {queue_batches}: there must be room for one")
        self._keep_mode()
        if self._stream is None:
            # Late: most sessions have no events.
            from clew.sessions.events.decoder import Decoder

            told = ToldQueue()
            self._stream = EventStream(self._wanted, queue_batches, drops=on_full == "drop")
            self._decoder = Decoder(told, self._stream, has_time=has_time)
            self._target.run(lambda control: self._ask(control, told))
        self._change_mode(tells_accesses=bool(kinds >> FlowKind.MEMORY & 1))
        self._want(kinds, choice, asked.gates)
        self._native.choose(choice if others == "native" else EVERYBODY)
        self._later = [(parse_where(name), True) for name in asked.opens_later]
        self._later += [(parse_where(name), False) for name in asked.closes_later]
        if self._later:
            self._target.run(self._await_code)
        return self._stream

    def _find_gate(self, name: str) -> int | None:
        """The address that is meant; None: of an image that is not loaded. Raises ControlError."""
        image = parse_where(name).image
        if image and all(image not in (one.name, one.path) for one in self._target.loaded()):
            return None
        return self._target.find(name)

    def _await_code(self, control: Control) -> Iterator[bool]:
        """Look for gates in what is loaded from now on."""
        if not self._hears_of_code:
            control.processes.tell_code_to(self._meet_code)
            self._hears_of_code = True
        yield True

    def _meet_code(self, followed: FollowedProcess, mappings: list[Mapping]) -> None:
        """In the thread that owns the target: code is mapped, and nobody has executed it."""
        if followed.pid != self._wanted.pid or not self._later or self._decoder is None:
            return
        found = [(where.find_in(self._target.images, mappings), is_opening) for where, is_opening in self._later]
        opens, closes = (
            {address for addresses, is_opening in found if is_opening == which for address in addresses}
            for which in (True, False)
        )
        if opens or closes:
            decoder, stream = self._decoder, self.stream
            decoder.then(lambda: decoder.add_gates(stream.wanted.gates.add(opens, closes)))

    def unfollow(self, threads: Threads) -> None:
        """Have nothing told any more of these threads, which run natively; of None: of any, and the choice of `follow`
        ends. What was told can still be taken. Raises ControlError."""
        self.flush()
        if threads is not None:
            self._leave_out(threads)
            return
        self._later = []
        self._native.choose(EVERYBODY)
        # All was read just now: what came since is not asked for any more.
        self._want(0, EVERYBODY, NO_GATES, reads_all=False)
        if self._has_changed_mode and self._changing_back is None:
            # All code is translated anew for it: who follows again soon pays nothing.
            self._changing_back = threading.Timer(IDLE_SECONDS, self._change_back)
            self._changing_back.name, self._changing_back.daemon = "clew-unfollow", True
            self._changing_back.start()

    def _leave_out(self, threads: Some) -> None:
        self._native.choose(self._native.choice.without(threads))
        choice = self._choice.without(threads)
        self._want(self._wanted.kinds, choice, self._wanted.gates, reads_all=False)

    def flush(self) -> None:
        """Have all told that threads have done by now, as far as there is room for it."""
        for n_looks in range(1, ENOUGH_ROUNDS + 2):
            self._read_all(None)
            if self._decoder is None or self.stream.is_full:
                return
            # What a thread needs that is read may be in a ring that was looked at before, as code that is new is.
            if n_looks > 1 and not self._decoder.awaits_code:
                return

    def _want(
        self,
        kinds: int,
        choice: Choice,
        gates: Gates,
        *,
        reads_all: bool = True,
    ) -> None:
        """Other events are wanted of what threads do from now on; `reads_all`: or did before, and have not told yet."""

        self._choice = choice

        def change() -> None:
            if self._stream is not None and kinds >> FlowKind.MEMORY & 1:
                self._stream.dtype = VALUE_EVENT
            self._wanted.kinds = kinds
            self._wanted.is_followed = None if choice is EVERYBODY else choice.includes
            self._wanted.gates, self._wanted.pid = gates, self._target.pid

        self._read_all(change, samples=reads_all)

    def _read_all(self, change: Callable[[], None] | None, *, samples: bool = True) -> None:
        """Have read what there is, and then a change made; come back before if nobody takes what was read."""
        if self._decoder is None or self._stream is None:
            return
        if samples:
            with contextlib.suppress(ControlError):
                self._target.run(self._sample)
        done = self._decoder.flush(change)
        while not done.wait(0.02) and not self._stream.is_full and self._decoder.is_alive:
            pass

    def on_receive(self, callback: Callable[[Array], None]) -> None:
        """Call `callback` with each batch, in a thread of clew's own."""
        stream = self.stream
        if self._receiver is not None:
            raise UsageError("batches are received already")

        def receive() -> None:
            try:
                for batch in stream:
                    callback(batch)
            except BaseException as error:
                stream.close()
                self._fail(error)

        self._receiver = threading.Thread(target=receive, name="clew-receive", daemon=True)
        self._receiver.start()

    def wait(self) -> None:
        """Wait until what was told has been received, if a callback does that: nothing is followed any more."""
        if self._receiver is not None and threading.current_thread() is not self._receiver:
            self._receiver.join()

    def let_go(self) -> None:
        """Nobody takes events any more."""
        if self._stream is not None and self._receiver is None:
            self._stream.close()

    def close(self) -> None:
        """Nothing more is told."""
        self._native.close()
        self._keep_mode()
        self.wait()
        if self._stream is not None:
            self._stream.close()
        if self._decoder is not None:
            self._decoder.join()

    def _ask(self, control: Control, told: ToldQueue) -> Iterator[bool]:
        self._sink.ask(told)
        yield True

    def _sample(self, control: Control) -> Iterator[bool | None]:
        for followed in control.processes.live:
            if followed.drain is not None:
                followed.drain.sample_soon()
        # A look at the rings may be under way; behind the next one everything is there.
        yield None
        yield True

    def _keep_mode(self) -> None:
        """The order goes on being recorded."""
        timer, self._changing_back = self._changing_back, None
        if timer is not None:
            timer.cancel()
            timer.join()

    def _change_back(self) -> None:
        """Have no order recorded any more."""
        with contextlib.suppress(ControlError):
            self._target.ask({"command": "mode", "mode": "counts"})
            self._has_changed_mode = False

    def _change_mode(self, *, tells_accesses: bool) -> None:
        """Have the order of execution recorded, and accesses to memory or not."""

        def read(control: Control) -> Iterator[tuple[Mode, bool]]:
            yield control.processes.mode, control.processes.tells_accesses

        mode, has_accesses = self._target.run(read)
        if mode != Mode.FULL or has_accesses != tells_accesses:
            self._has_changed_mode |= mode != Mode.FULL
            self._target.ask({"command": "mode", "mode": "full", "accesses": tells_accesses})
