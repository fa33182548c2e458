"""A trace that is looked at in the page: opened once, with the graphs of the processes asked for last.

Runs in the controller. Requests are answered by threads; what is made here is made once, by one of them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Final, TypeVar

from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.probes.event_rows import is_event_folder
from clew.analysis.tables.totals import summarize_trace
from clew.analysis.trace import Trace

__all__ = ["ServedTrace"]

T = TypeVar("T")

_KEPT: Final = 12


class ServedTrace:
    """The trace in `directory`, as number `index` of those that are served, with the events of probes in the folders
    `events`; `directory` may be such a folder, too. Raises TraceError when it is opened."""

    def __init__(self, directory: Path, index: int, events: Sequence[Path] = ()) -> None:
        self.index = index
        self.trace = _open_trace(directory, events)
        self._lock = threading.RLock()
        self._kept: OrderedDict[object, Any] = OrderedDict()

    @property
    def name(self) -> str:
        return self.trace.directory.resolve().name

    @property
    def start_ns(self) -> int:
        """When the recording began; times that the page is given count from there."""
        return self.trace.manifest.start_ns

    @cached_property
    def summary(self) -> dict[str, Any]:
        """What `clew info --json` prints."""
        with self._lock:
            return summarize_trace(self.trace)

    def graph(self, process_id: int) -> ProcessGraph:
        """The graph of a process. Raises UsageError if there is no such process."""
        return self.once(("graph", process_id), lambda: ProcessGraph(self.trace, process_id))

    def once(self, key: object, make: Callable[[], T]) -> T:
        """What `make` makes, kept by `key` while it is among the last that were asked for."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
            else:
                self._kept[key] = make()
                while len(self._kept) > _KEPT:
                    self._kept.popitem(last=False)
            found: T = self._kept[key]
            return found


def _open_trace(directory: Path, events: Sequence[Path]) -> Trace:
    is_alone = is_event_folder(directory)
    if not is_alone and not events:
        return Trace(directory)
    from clew.analysis.probes.event_trace import TraceWithEvents

    return TraceWithEvents(None, [directory, *events]) if is_alone else TraceWithEvents(Trace(directory), events)
