"""Calls of a session's target that descriptions know (`clew.api`): captured by the engine, told one by one.

Runs in the controller, in any thread.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from clew.api.captures import CallCapture, capture_of
from clew.api.description import Function
from clew.api.pieces import Value
from clew.api.values import is_error
from clew.dataclass import dataclass
from clew.sessions.call_ends import CallEnds
from clew.sessions.call_logs import CallEnd, take_together
from clew.sessions.stack_sample import StackSample, stack_sample
from clew.sessions.where import MAX_SYSTEM_CALLS, Where, ring_operation
from clew.sessions.wishing import LogWish

if TYPE_CHECKING:
    from clew.api.descriptions import Descriptions
    from clew.binary.elf import ElfFile
    from clew.sessions.api_functions import ChosenFunction, FunctionChoice
    from clew.sessions.call_logs import CallLog
    from clew.sessions.call_stacks import CallStacks
    from clew.sessions.capture_sink import Captured
    from clew.sessions.injections import Injection
    from clew.sessions.live_clock import LiveClock
    from clew.sessions.memory import Image
    from clew.sessions.session import Session

    _Taken = tuple[LiveClock, list[tuple[int, Captured]]]
    """The clock for the times of records, and these, each with the number of its log."""

__all__ = ["ApiCall", "ApiLog"]


class ApiCall(NamedTuple):
    """A call of `function` by a thread, from the instruction at `pc`; of a library's, `pc` is where the function is.

    It began at `time_ns`, since 1970, with the stack pointer at `frame`, and took `duration_ns`; `values` are those of
    the arguments, `result` is as the register had it. None: it does not return, or has not, or nobody knows. Of what
    has not returned `end_ns` is when it was found to be over.
    """

    time_ns: int
    pid: int
    tid: int
    pc: int
    function: Function
    values: tuple[Value, ...]
    result: int | None
    duration_ns: int | None
    end_ns: int
    frame: int | None
    library: str | None = None
    """The path of the image that has the function."""
    stack: StackSample | None = None
    """What was taken of its stack, if that was asked for (CallStacks.frames)."""
    injected: int = 0
    """What was done to it, bits of enum Injected."""

    @property
    def has_failed(self) -> bool:
        """Whether its result is an error, or says that there was one."""
        return is_error(self.function, self.result)


class ApiLog:
    """Calls of a session's target that are captured by their descriptions: system calls, and functions of libraries."""

    def __init__(
        self,
        session: Session,
        descriptions: Descriptions,
        filters: Iterable[str] | None = (),
        *,
        functions: FunctionChoice | None = None,
        keeps: bool = False,
        stacks: CallStacks | None = None,
        injections: Sequence[Injection] = (),
        sees_world: bool = False,
        most_bytes: int | None = None,
    ) -> None:
        """All system calls; or those of `filters`; None: none. And `functions`, if there are any. `keeps`: what was
        read can be read again, all of it (`batches`). `stacks`: calls have theirs. `injections`: what may be done to
        calls, which are told so. `sees_world`: calls are read, too, that are not asked for and change what those are
        about (`is_told`). With more than `most_bytes` that nobody has read the target waits. Raises CaptureError,
        UsageError."""
        self.descriptions, self._stacks, self._injections = descriptions, stacks, injections
        self.raw: dict[str, int] = {}
        """How many calls were read of each function of which nobody knows the parameters: they are told raw."""
        self._filters = None if filters is None else frozenset(filters)
        chosen = descriptions.system_calls_of(self._filters, MAX_SYSTEM_CALLS, sees_world=sees_world)
        operations = [] if self._filters is None else descriptions.ring_operations_of(self._filters)
        captures = [
            capture_of(
                function,
                descriptions,
                self._n_spare,
                is_injected=any(one.is_about_call(number) for one in injections),
            )
            for number, function in chosen
        ]
        captures += [capture_of(function, descriptions, self._n_spare) for _, function in operations]
        places: list[str | Where] = [
            *(f"syscall:{number}" for number, _ in chosen),
            *(ring_operation(opcode) for opcode, _ in operations),
        ]
        # What the kernel does for a ring has no stack.
        taken = [self._taken_of_stack(capture, is_function=False) for capture in captures[: len(chosen)]]
        taken += [()] * len(operations)
        wishes = [
            LogWish(place, capture.expressions + more, has_returned=capture.returns, tells_left=capture.returns)
            for place, capture, more in zip(places, captures, taken, strict=True)
        ]
        logs = session.log_all(wishes)
        self._logs = [_Log(*one) for one in zip(captures, logs, taken, strict=True)]
        self._captured = logs
        self._kept: list[_Taken] | None = [] if keeps else None
        self._ends = CallEnds(session.processes_begun)
        if most_bytes is not None:
            session.limit_captures(most_bytes)
        if functions is not None:
            self._log_functions(session, functions)

    @property
    def _n_spare(self) -> int:
        return 0 if self._stacks is None else self._stacks.n_fields

    def _taken_of_stack(self, capture: CallCapture, *, is_function: bool) -> tuple[str, ...]:
        if self._stacks is None:
            return ()
        return self._stacks.expressions(is_function=is_function, has_returned=capture.returns)

    def _log_functions(self, session: Session, functions: FunctionChoice) -> None:
        chosen: dict[int, ChosenFunction] = {}

        def choose(image: Image, elf: ElfFile) -> Iterator[LogWish]:
            find_debug = partial(session.debug_file, image)
            for one in functions.of_image(image.path, elf, find_debug, self._n_spare, self._is_injected):
                name = one.capture.function.name
                where = Where(f"{image.name}!{name}", None, image.path, one.symbol, 0, one.offset)
                returns = one.capture.returns
                wish = LogWish(
                    where,
                    one.capture.expressions + self._taken_of_stack(one.capture, is_function=True),
                    has_returned=returns,
                    tells_left=returns,
                    on_choice=one.on_choice,
                )
                chosen[id(wish)] = one
                yield wish

        def take(wish: LogWish, log: CallLog) -> None:
            one = chosen.pop(id(wish))
            # Read in another thread: a list only grows.
            taken = self._taken_of_stack(one.capture, is_function=True)
            self._logs.append(_Log(one.capture, log, taken, one.path))
            self._captured.append(log)

        session.log_in_images(choose, take)

    def _is_injected(self, path: str, offset: int) -> bool:
        return any(one.is_about_function(path, offset) for one in self._injections)

    def is_told(self, call: ApiCall) -> bool:
        """Whether somebody asked for a call that was read."""
        if call.library is not None:
            return True
        return self._filters is not None and (not self._filters or call.function.filter in self._filters)

    def read(self, *, is_last: bool = False) -> list[ApiCall]:
        """The calls that are over since this was asked last, in that order; or begun, of those that never return.

        Of what came while it is read one thread may be told more than another: the next reading has the rest, the last
        one what may or may not be over.
        """
        taken = take_together(self._captured) if self._captured else None
        for index, captured in () if taken is None else taken[1]:
            function = self._logs[index].capture.function
            if function.parameters is None:
                self.raw[function.name] = self.raw.get(function.name, 0) + len(captured.heads)
        if self._kept is not None and taken is not None and taken[1]:
            self._kept.append(taken)
        return self._calls_of(taken, self._ends, is_last=is_last)

    def batches(self) -> Iterator[list[ApiCall]]:
        """All that was read so far, in pieces, in the order in which calls were over, whosever they are."""
        waiting: list[ApiCall] = []
        ends, kept = self._ends.start_again(), self._kept or []
        for index, taken in enumerate(kept):
            calls = self._calls_of(taken, ends, is_last=index == len(kept) - 1)
            if not calls:
                continue
            # Of one thread more may have been read before than of another.
            first_ns = min(call.end_ns for call in calls)
            n = bisect_right(waiting, first_ns, key=_end_ns)
            yield waiting[:n]
            waiting = sorted([*waiting[n:], *calls], key=_end_ns)
        yield waiting

    def _calls_of(self, taken: _Taken | None, ends: CallEnds, *, is_last: bool) -> list[ApiCall]:
        found: list[tuple[CallEnd, ApiCall]] = []
        if taken is not None:
            clock, records = taken
            for index, captured in records:
                found.extend(self._logs[index].calls_of(captured, clock))
        found.sort(key=_told_ns)
        return ends.settle(found, is_last=is_last)


def _told_ns(one: tuple[CallEnd, ApiCall]) -> int:
    return one[1].end_ns


def _end_ns(call: ApiCall) -> int:
    return call.end_ns


@dataclass(frozen=True)
class _Log:
    """What is captured of one function, and where it comes to."""

    capture: CallCapture
    log: CallLog
    of_stack: tuple[str, ...] = ()
    library: str | None = None

    def calls_of(self, captured: Captured, clock: LiveClock) -> Iterator[tuple[CallEnd, ApiCall]]:
        """The calls of some records, each with what has become of it."""
        capture, rows = self.capture, self.log.rows_of(captured, clock)
        n_fields = len(capture.expressions)
        columns, of_stack = rows.columns[:n_fields], rows.columns[n_fields:]
        places = zip(rows.told_ns, rows.tid, rows.pc, rows.ends, strict=True)
        for row, (told_ns, tid, pc, end) in enumerate(places):
            fields = [column[row] for column in columns]
            values, result, began_ns, frame = capture.values_of(fields)
            function, values = capture.complete(values, fields)
            injected = capture.injected_of(fields)
            took_ns = None
            if end == CallEnd.RETURNED and began_ns is not None:
                took_ns = max(told_ns - began_ns, 0)
            time_ns = told_ns if began_ns is None else min(began_ns, told_ns)
            stack = None
            if of_stack:
                stack = stack_sample([column[row] for column in of_stack], self.library is not None)
            # All of them by their places: that is several times as fast.
            of_call = (values, result, took_ns, told_ns, frame, self.library, stack, injected)
            call = ApiCall(time_ns, rows.pid, tid, pc, function, *of_call)
            yield CallEnd(end), call
