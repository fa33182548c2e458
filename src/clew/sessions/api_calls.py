"""Calls of a session's target that descriptions know (`clew.api`): captured by the engine, told one by one.

Runs in the controller, in any thread.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from clew.api.captures import CallCapture, capture_of
from clew.api.description import Function
from clew.api.pieces import Value
from clew.dataclass import dataclass
from clew.sessions.call_logs import read_together
from clew.sessions.call_probes import LogWish
from clew.sessions.where import Where

if TYPE_CHECKING:
    import pyarrow as pa

    from clew.api.descriptions import Descriptions
    from clew.binary.elf import ElfFile
    from clew.sessions.api_functions import ChosenFunction, FunctionChoice
    from clew.sessions.call_logs import CallLog
    from clew.sessions.memory import Image
    from clew.sessions.session import Session

__all__ = ["ApiCall", "ApiLog"]


@dataclass(frozen=True)
class ApiCall:
    """A call of `function` by a thread, from the instruction at `pc`; of a library's, `pc` is where the function is.

    It began at `time_ns`, since 1970, and took `duration_ns`; `values` are those of the arguments, `result` is as the
    register had it. None: it does not return, or nobody knows.
    """

    time_ns: int
    pid: int
    tid: int
    pc: int
    function: Function
    values: tuple[Value, ...]
    result: int | None
    duration_ns: int | None
    library: str | None = None
    """The path of the image that has the function."""

    @property
    def has_failed(self) -> bool:
        """Whether its result is an error."""
        return self.function.has_failed(self.result)


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
    ) -> None:
        """All system calls; or those of `filters`; None: none. And `functions`, if there are any. `keeps`: what was
        read can be read again, all of it (`batches`). Raises CaptureError, UsageError."""
        self.descriptions = descriptions
        chosen = [] if filters is None else descriptions.system_calls_of(set(filters))
        captures = [capture_of(function, descriptions) for _, function in chosen]
        wishes = [
            LogWish(f"syscall:{number}", capture.expressions, has_returned=capture.returns)
            for (number, _), capture in zip(chosen, captures, strict=True)
        ]
        self._logs = [_Log(*one) for one in zip(captures, session.log_all(wishes), strict=True)]
        self._kept: list[list[tuple[int, pa.Table]]] | None = [] if keeps else None
        if functions is not None:
            self._log_functions(session, functions)

    def _log_functions(self, session: Session, functions: FunctionChoice) -> None:
        chosen: dict[int, ChosenFunction] = {}

        def choose(image: Image, elf: ElfFile) -> Iterator[LogWish]:
            for one in functions.of_image(image.path, elf):
                name = one.capture.function.name
                where = Where(f"{image.name}!{name}", None, image.path, name, 0, one.offset)
                wish = LogWish(where, one.capture.expressions, has_returned=one.capture.returns)
                chosen[id(wish)] = one
                yield wish

        def take(wish: LogWish, log: CallLog) -> None:
            one = chosen.pop(id(wish))
            # Read in another thread: a list only grows.
            self._logs.append(_Log(one.capture, log, one.path))

        session.log_in_images(choose, take)

    def read(self) -> list[ApiCall]:
        """The calls that have returned since this was asked last, in that order; or begun, of those that never return.

        Of what came while it is read one thread may be told more than another: the next reading has the rest.
        """
        tables = [
            (index, table)
            for index, table in enumerate(read_together([one.log for one in list(self._logs)]))
            if table.num_rows
        ]
        if self._kept is not None and tables:
            self._kept.append(tables)
        return self._calls_of(tables)

    def batches(self) -> Iterator[list[ApiCall]]:
        """All that was read so far, in pieces, in the order in which calls returned, whosever they are."""
        waiting: list[ApiCall] = []
        for tables in self._kept or ():
            calls = self._calls_of(tables)
            # Of one thread more may have been read before than of another.
            first_ns = _returned_ns(calls[0])
            n = bisect_right(waiting, first_ns, key=_returned_ns)
            yield waiting[:n]
            waiting = sorted([*waiting[n:], *calls], key=_returned_ns)
        yield waiting

    def _calls_of(self, tables: list[tuple[int, pa.Table]]) -> list[ApiCall]:
        found: list[tuple[int, ApiCall]] = []
        for index, table in tables:
            found.extend(self._logs[index].calls_of(table))
        found.sort(key=lambda item: item[0])
        return [call for _, call in found]


def _returned_ns(call: ApiCall) -> int:
    return call.time_ns + (call.duration_ns or 0)


@dataclass(frozen=True)
class _Log:
    """What is captured of one function, and where it comes to."""

    capture: CallCapture
    log: CallLog
    library: str | None = None

    def calls_of(self, table: pa.Table) -> Iterator[tuple[int, ApiCall]]:
        """The calls of some rows, each with when it was told."""
        if not table.num_rows:
            return
        places: Sequence[list[int]] = [table.column(index).to_pylist() for index in range(4)]
        columns = [table[text].to_pylist() for text in self.capture.expressions]
        for row in range(table.num_rows):
            values, result, duration_ns = self.capture.values_of([column[row] for column in columns])
            told_ns, pid, tid, pc = (column[row] for column in places)
            began_ns = told_ns - (duration_ns or 0)
            call = ApiCall(began_ns, pid, tid, pc, self.capture.function, values, result, duration_ns, self.library)
            yield told_ns, call
