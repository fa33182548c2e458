"""What of a session is about probes at any place of the code.

Runs in the controller, in whatever threads the caller has.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, overload

from clew.errors import UsageError

if TYPE_CHECKING:
    from clew.sessions.aggregate_table import AggregateRoom
    from clew.sessions.call_probes import Callback, CallProbe, CallProbes
    from clew.sessions.capture_sink import CaptureSink
    from clew.sessions.probes.event_reader import EventReader
    from clew.sessions.probes.followed_probes import FollowedProbes
    from clew.sessions.probes.probe import Probe
    from clew.sessions.target import SessionTarget

__all__ = ["PlacesFacet"]


class PlacesFacet:
    """Probes."""

    _probes: CallProbes
    _captures: CaptureSink
    _aggregate_room: AggregateRoom
    _target: SessionTarget
    _placed: FollowedProbes | None = None

    @overload
    def probe(
        self,
        where: str | int,
        *,
        capture: str | Iterable[str] = ...,
        filter: str | None = ...,
        function: bool = ...,
        returned: str | Iterable[str] | None = ...,
        inline: bool = ...,
        name: str | None = ...,
        callback: None = ...,
    ) -> Probe: ...

    @overload
    def probe(
        self,
        where: str | int,
        *,
        capture: str | Iterable[str] = ...,
        filter: str | None = ...,
        inline: bool = ...,
        callback: Callback,
    ) -> CallProbe: ...

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
        callback: Callback | None = None,
    ) -> Probe | CallProbe:
        """Have an event whenever a followed thread comes to a place: in front of the instruction there.

        `where` is an address, `main+0x10`, `parse.c:42`, `libc.so.6!malloc`, a pattern, `usdt:libc:*`
        (docs/probe-locations.md); what is not loaded yet is looked for in what will be. `capture` are expressions, or
        what `clew trace -t` takes: `regs`, `reg:NAME`, `backtrace:8`, `TYPE:NAME:ADDRESS`, `NAME=EXPRESSION`. Where
        `filter` is 0 or can't be had there is no event. With `function` there are events where the function is entered
        and where it has returned, with `returned` instead, `retval` unless given. With `inline` it is also where a
        function was inlined. Events are called `name`, or as the place. No thread stops, and nothing is lost.

        With `callback` there are no events: the thread waits for it, two seconds at most, as for `on_call`. It is given
        a `Call`, of which `call[text]` is what an expression of `capture` came to. Raises CaptureError, UsageError.
        """
        from clew.sessions.probes.probe import Probe, read_spec

        spec = read_spec(
            where, capture, filter, is_function=function, returned=returned, with_inlined=inline, name=name
        )
        probes = self.placed
        if callback is None:
            return Probe(probes, probes.add([spec])[0], spec.where)
        if function or name is not None:
            raise UsageError(f"{spec.where}: a callback has no events; on_return tells one of returns")
        texts = [capture] if isinstance(capture, str) else list(capture)
        return probes.call_at(spec.where, callback, texts, filter, with_inlined=inline)

    @property
    def warnings(self) -> list[str]:
        """What is doubtful about the places of probes, and where none can be, for people."""
        return [] if self._placed is None else self._placed.remarks()

    @property
    def placed(self) -> FollowedProbes:
        """All probes of the session, for who has many: they come and are read together."""
        return self.placed_with(None)

    def placed_with(self, reader: EventReader | None) -> FollowedProbes:
        """The same; asked for first, `reader` makes their events, which made others of the same threads before."""
        if self._placed is None:
            from clew.sessions.probes.followed_probes import FollowedProbes

            self._placed = FollowedProbes(
                self._target, self._probes, self._captures, self._aggregate_room, self.wait_for_all, reader
            )
        return self._placed

    def wait_for_all(self, timeout: float | None = None) -> bool:
        raise NotImplementedError
