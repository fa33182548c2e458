"""Events of probes as files, as `clew trace --format parquet` writes them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from clew.analysis.probes.event_trace import TraceWithEvents
from clew.export.probes.event_types import EventBatch
from clew.export.probes.events_table import EventTables
from clew.store.trace import Trace

__all__ = ["open_events", "write_events"]


def write_events(folder: Path, *batches: EventBatch) -> Path:
    """The folder, in which these events are now."""
    folder.mkdir()
    tables = EventTables(folder)
    for batch in batches:
        tables.write(batch)
    tables.close()
    return folder


def open_events(folder: Path, batches: Iterable[EventBatch], whole: Trace | None = None) -> TraceWithEvents:
    """A trace with these events, which are written into a new folder `folder`."""
    return TraceWithEvents(whole, [write_events(folder, *batches)])
