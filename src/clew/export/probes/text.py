"""Events as text, one line each, as babeltrace2 (and `lttng view`) prints a trace of them.

Runs in the controller. Two things are told otherwise than there: values that are missing, and how many elements there
are, which shows.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, tzinfo
from typing import Final, TextIO

from clew.export.probes.event_types import EventBatch, Loss
from clew.export.probes.identity import Host
from clew.export.probes.rows import Event, TimeOrder
from clew.export.probes.value_text import MISSING, fields_text, plain_text, quoted_text

__all__ = ["TextWriter"]

_SECOND: Final = 1_000_000_000


class TextWriter:
    """Writes lines to `file`. `processes` are names by number, which may be added to while events come: where one is
    not there the thread's is taken. Times are local ones, or those of `zone`."""

    def __init__(self, file: TextIO, host: Host, processes: dict[int, bytes], zone: tzinfo | None = None) -> None:
        self._file, self._host, self._processes, self._zone = file, plain_text(host.name), processes, zone
        self._order = TimeOrder()
        self._last_ns: int | None = None
        self._second, self._second_text = -1, ""

    def write(self, batch: EventBatch) -> None:
        """Write what is next in time. Raises OSError."""
        self._write(self._order.add(batch))

    def close(self) -> None:
        """Write what waited. Raises OSError."""
        self._write(self._order.close())

    def _write(self, found: Iterable[Event | Loss]) -> None:
        self._file.writelines(self._loss_line(one) if isinstance(one, Loss) else self._line(one) for one in found)
        self._file.flush()

    def _line(self, event: Event) -> str:
        since = "+?.?????????" if self._last_ns is None else _span_text(event.time_ns - self._last_ns)
        self._last_ns = event.time_ns
        comm = event.comm.split(b"\0")[0]
        process = plain_text(self._processes.get(event.pid, comm))
        contexts = fields_text(event.type.contexts, event.contexts)
        own = f"vpid = {event.pid}, vtid = {event.tid}, procname = {quoted_text(comm)}"
        fields = fields_text(event.type.fields, event.fields)
        return (
            f"[{self._time_text(event.time_ns)}] ({since}) {self._host}:{process}:({event.pid}) "
            f"{plain_text(event.type.name)}: {{ cpu_id = {MISSING if event.cpu is None else event.cpu} }}, "
            f"{{ {own}{', ' if contexts else ''}{contexts} }}, {{ {fields}{' ' if fields else ''}}}\n"
        )

    def _loss_line(self, loss: Loss) -> str:
        return f"[{self._time_text(loss.time_ns)}] {loss.count} events of thread {loss.tid} of {loss.pid} were lost\n"

    def _time_text(self, time_ns: int) -> str:
        second, rest = divmod(time_ns, _SECOND)
        if second != self._second:
            self._second = second
            self._second_text = datetime.fromtimestamp(second, self._zone).strftime("%H:%M:%S")
        return f"{self._second_text}.{rest:09}"


def _span_text(span_ns: int) -> str:
    seconds, rest = divmod(abs(span_ns), _SECOND)
    return f"{'-' if span_ns < 0 else '+'}{seconds}.{rest:09}"
