"""What of a session is about events: what followed threads do, as it happens.

Runs in the controller, in whatever threads the caller has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

if TYPE_CHECKING:
    from clew.sessions.choice import Threads
    from clew.sessions.events.event_stream import EventStream
    from clew.sessions.events.events import Events
    from clew.sessions.events.gates import Places

__all__ = ["FollowingFacet"]

Array = npt.NDArray[Any]


class FollowingFacet:
    """Events."""

    _events: Events

    def follow(
        self,
        threads: Threads = None,
        *,
        events: Iterable[str] = ("call", "ret"),
        activate: Places | None = None,
        deactivate: Places | None = None,
        queue_batches: int = 64,
        on_full: str = "wait",
        time: bool = False,
        others: str = "native",
    ) -> EventStream:
        """Have events told from now on, in arrays of dtype `EventStream.dtype`.

        There are `call`, `ret`, `block`, `exec`, `compile`, `syscall`, `signal`, `exception`, `thread`, `image` and
        `memory`.

        `threads` are all; or one, or some, by their numbers (tid); or those for which a function says yes, which is
        given a `FollowedThread` (pid, tid, name). New threads and children are among them. The complete order of
        execution is recorded for it, as in mode `full`.

        With `activate` a thread's events are told from when it executes the instruction at that address on, or at one
        of several: each given as a number or as `find` takes it, in the program that runs now and its forks; names with
        an image (`libz.so.1!deflate`) are looked for in what will be loaded, too. With
        `deactivate` they are no longer told from that one on, until it comes to the other again. `thread`, `compile`
        and `image` are told anyway.

        At most `queue_batches` batches wait to be taken; if more come
        the program waits (`on_full="wait"`), or they are dropped and counted (`"drop"`). Events have their `time` only
        if asked. Told again it changes whom and what.

        Where threads are chosen the others run *natively*, the program's own code at its own speed: they are not
        recorded, and call probes and breakpoints do not meet them. With `others="recorded"` they are recorded as all
        are without `follow`. Who chooses by a function has new threads followed until clew has looked at them, some
        tenths of a second later. Raises UsageError, ControlError.
        """
        return self._events.follow(
            threads,
            events,
            activate=activate,
            deactivate=deactivate,
            queue_batches=queue_batches,
            on_full=on_full,
            has_time=time,
            others=others,
        )

    def unfollow(self, threads: Threads = None) -> None:
        """Have no events told any more; those that were can still be taken. A second later it runs as it did before.

        With `threads`, as for `follow`, only those are followed no more: they run natively, the others as they did.
        Raises ControlError.
        """
        self._events.unfollow(threads)

    def events(self) -> EventStream:
        """What `follow` asked for, to iterate over. Raises UsageError if nothing was."""
        return self._events.stream

    def on_receive(self, callback: Callable[[Array], None]) -> None:
        """Call `callback` with each batch of events, in a thread of clew's own; what it raises `wait` raises."""
        self._events.on_receive(callback)

    def flush(self) -> None:
        """Have all events told that threads have made by now, as far as there is room for them."""
        self._events.flush()
