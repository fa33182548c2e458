"""What the page is told of traces before it asks for more: names, processes, threads, totals, losses.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clew.server.served_trace import ServedTrace
from clew.version import __version__

__all__ = ["list_traces", "summarize"]


def list_traces(served: Sequence[ServedTrace]) -> dict[str, Any]:
    """The traces that are served, by their numbers."""
    return {
        "clew_version": __version__,
        "traces": [
            {
                "index": one.index,
                "name": one.name,
                "mode": one.trace.mode,
                "command": one.trace.manifest.command,
                "processes": len(one.trace.manifest.processes),
            }
            for one in served
        ],
    }


def summarize(served: ServedTrace) -> dict[str, Any]:
    """What `clew info --json` prints of a trace, and its name.

    Times are nanoseconds since 1970 as strings, which a page's numbers could not hold; `started`, `ended` and `since`
    are the same as numbers of nanoseconds since the recording began.
    """
    summary = served.summary
    return {
        "name": served.name,
        **_with_times(summary, served.start_ns),
        "releases": [
            {**row, "since_ns": str(row["since_ns"]), "since": row["since_ns"] - served.start_ns}
            for row in summary["releases"]
        ],
        "processes": [
            {
                **_with_times(process, served.start_ns),
                "threads": [_with_times(thread, served.start_ns) for thread in process["threads"]],
            }
            for process in summary["processes"]
        ],
    }


def _with_times(row: dict[str, Any], start_ns: int) -> dict[str, Any]:
    return {
        **row,
        "start_ns": str(row["start_ns"]),
        "end_ns": str(row["end_ns"]),
        "started": row["start_ns"] - start_ns,
        "ended": row["end_ns"] - start_ns,
    }
