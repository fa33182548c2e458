"""What of a session is about calls of functions: probes that call back, and logs.

Runs in the controller, in whatever threads the caller has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Literal, overload

from clew.errors import UsageError
from clew.sessions.aggregate_table import AggregateRoom, AggregateWish
from clew.sessions.call_probes import Callback, CallProbe, CallProbes

if TYPE_CHECKING:
    from clew.api.descriptions import Descriptions
    from clew.binary.debug_file import DebugFile
    from clew.binary.elf import ElfFile
    from clew.process.maps import Mapping
    from clew.recording.following.followed import FollowedProcess
    from clew.recording.sinks.sink import Identity
    from clew.sessions.aggregates import Aggregate
    from clew.sessions.call_logs import CallLog
    from clew.sessions.call_stacks import CallStacks
    from clew.sessions.capture_sink import CaptureSink
    from clew.sessions.injections import Injection
    from clew.sessions.memory import Image
    from clew.sessions.target import SessionTarget
    from clew.sessions.wishing import LogWish

__all__ = ["ProbesFacet"]


class ProbesFacet:
    """Call probes."""

    _probes: CallProbes
    _captures: CaptureSink
    _aggregate_room: AggregateRoom
    _target: SessionTarget

    @overload
    def on_call(
        self, where: str | int, callback: Callback, *, capture: Iterable[str] = ..., condition: str | None = ...
    ) -> CallProbe: ...

    @overload
    def on_call(
        self, where: str | int, *, capture: Iterable[str] = ..., condition: str | None = ...
    ) -> Callable[[Callback], CallProbe]: ...

    def on_call(
        self,
        where: str | int,
        callback: Callback | None = None,
        *,
        capture: Iterable[str] = (),
        condition: str | None = None,
    ) -> CallProbe | Callable[[Callback], CallProbe]:
        """Call `callback` whenever a followed thread comes to the function `where`, however it is called.

        The thread waits meanwhile, two seconds at most, the others run on. `capture` are expressions, whose values the
        call has; where `condition` is 0 or can't be had nobody is called. What nothing that is loaded has is looked for
        in what will be loaded. Without `callback` it is a decorator. Raises CaptureError, UsageError.
        """
        add = self._probes.add(where, capture, condition, is_return=False)
        return add if callback is None else add(callback)

    @overload
    def on_return(
        self, where: str | int, callback: Callback, *, capture: Iterable[str] = ..., condition: str | None = ...
    ) -> CallProbe: ...

    @overload
    def on_return(
        self, where: str | int, *, capture: Iterable[str] = ..., condition: str | None = ...
    ) -> Callable[[Callback], CallProbe]: ...

    def on_return(
        self,
        where: str | int,
        callback: Callback | None = None,
        *,
        capture: Iterable[str] = (),
        condition: str | None = None,
    ) -> CallProbe | Callable[[Callback], CallProbe]:
        """As `on_call`, whenever a call of the function returns: `retval` is its result, which can be changed.

        A call that is left otherwise, by longjmp or an exception, does not return.
        """
        add = self._probes.add(where, capture, condition, is_return=True)
        return add if callback is None else add(callback)

    def log(self, *, capture: Iterable[str] = (), condition: str | None = None) -> CallLog:
        """A log that is filled where a transformer says so (`CodeInstruction.record`). Raises CaptureError,
        UsageError."""
        return self._probes.log(self._captures, None, capture, condition)

    def log_calls(self, where: str | int, *, capture: Iterable[str] = (), condition: str | None = None) -> CallLog:
        """Record the calls of the function `where`, with the values of expressions: no thread stops for it.

        Calls where `condition` is 0 or can't be had are not recorded. What nothing that is loaded has is looked for in
        what will be loaded. Raises CaptureError, UsageError.
        """
        return self._probes.log(self._captures, where, capture, condition)

    def log_returns(self, where: str | int, *, capture: Iterable[str] = (), condition: str | None = None) -> CallLog:
        """As `log_calls`, when a call of the function returns: a row a call, with the function as `pc`.

        `retval` is its result, `duration` how many nanoseconds it took, `entry(x)` what the expression `x` came to when
        it began. A call that is left otherwise has no row.
        """
        return self._probes.log(self._captures, where, capture, condition, has_returned=True)

    def log_all(self, wishes: Iterable[LogWish]) -> list[CallLog]:
        """Several logs at once, as `log_calls` or `log_returns` makes one: the process is stopped once. Raises
        CaptureError, UsageError."""
        return self._probes.log_all(self._captures, wishes)

    def log_in_images(
        self, choose: Callable[[Image, ElfFile], Iterable[LogWish]], take: Callable[[LogWish, CallLog], None]
    ) -> None:
        """Logs of functions that `choose` names in each image, now and whenever one is loaded, before its code is
        executed; `take` is given each log. Both are called in a thread of clew's own. Raises CaptureError, UsageError.
        """
        self._probes.log_in_images(self._captures, choose, take)

    def watch_code(self, look: Callable[[FollowedProcess, list[Mapping]], None]) -> None:
        """Have `look` called with what code is mapped in each process, now and whenever some is, before it is executed:
        in a thread of clew's own. Raises ControlError."""
        self._probes.watch_code(look)

    def debug_file(self, image: Image) -> DebugFile | None:
        """The debugging information of an image; who reads it is alone, as where images are told of."""
        return self._target.images.debug(image)

    def limit_captures(self, most_bytes: int) -> None:
        """Have the target wait where more than that is captured and was not read. For who reads all the while: what
        nobody reads would hold it for ever."""
        self._captures.most_bytes = most_bytes

    def call_stacks(self) -> CallStacks:
        """What takes the stacks of calls that are logged from now on. Raises ControlError."""
        from clew.sessions.call_stacks import CallStacks

        return CallStacks(self.watch_code, self.processes_begun, self._target.images)

    def inject(self, what: str, *, descriptions: Descriptions | None = None) -> Injection:
        """Have calls go another way from now on, in all processes of the session: `openat:path=/etc/*:error=ENOENT`.

        WHAT:CONDITION:CHANGE, as `clew api --inject` has it (docs/injection.md). `descriptions`: what is known of
        calls, if that is not what comes with clew. What nothing that is loaded has is looked for in what will be
        loaded.
        Raises UsageError, which a mistake in an expression is as well; ControlError.
        """
        from clew.sessions.injections import Injection

        if descriptions is None:
            from clew.api.reading import load_built_in

            descriptions = load_built_in()
        return Injection(self._probes, what, descriptions)

    def processes_begun(self) -> list[tuple[Identity, int]]:
        """The processes of the session, and the programs that they executed, in the order in which they were met: who
        each is, and when it began, in nanoseconds since 1970."""
        return list(self._captures.begun)

    def add_up_all(self, wishes: Iterable[tuple[str | int, AggregateWish, bool]]) -> list[Aggregate]:
        """Several aggregates at once, each of a function, what is added up, and whether it is when that returns: the
        process is stopped once. Raises CaptureError, UsageError."""
        return self._probes.add_up_all(self._aggregate_room, wishes)

    def aggregate(
        self,
        where: str | int,
        *,
        at: Literal["call", "return"] = "call",
        by: Iterable[str] = (),
        value: str | None = None,
        condition: str | None = None,
        histogram: bool = False,
        max_keys: int = 1024,
    ) -> Aggregate:
        """Count the calls of the function `where`, by the values of expressions, and add up `value`: in the target, no
        thread stops and nothing is written down.

        `at` its return there are `retval`, `duration` and `entry(x)`, as for `log_returns`. With `histogram` there are
        quantiles of `value`. Calls where `condition` is 0 or can't be had do not count. Of more than `max_keys` keys
        some are left out, and counted; those that are bytes have 64 bytes less eight for each key, together, and are
        cut to that. What nothing that is loaded has is looked for in what will be loaded. Raises CaptureError,
        UsageError.
        """
        keys = [by] if isinstance(by, str) else list(by)
        wish = AggregateWish(keys, value, condition, max_keys, histogram)
        if at not in ("call", "return"):
            raise UsageError(f"at {at!r}: a call, or a return")
        return self._probes.add_up(self._aggregate_room, where, wish, has_returned=at == "return")
