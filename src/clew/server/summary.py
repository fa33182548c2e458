"""What the page is told of traces before it asks for more: names, processes, threads, totals, losses.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from clew.server.served_trace import ServedTrace
from clew.store.columns import to_numpy
from clew.store.trace import Trace
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
    are the same as numbers of nanoseconds since the recording began. `api_calls` says how many were recorded.
    """
    summary = served.summary
    n_calls = _count_calls(served.trace)
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
                "api_calls": n_calls.get(process["process_id"], 0),
                "threads": [_with_times(thread, served.start_ns) for thread in process["threads"]],
            }
            for process in summary["processes"]
        ],
    }


def _count_calls(trace: Trace) -> dict[int, int]:
    """By process how many recorded calls it has, if any."""
    found, counts = np.unique(to_numpy(trace.read("calls", ["process_id"])["process_id"]), return_counts=True)
    return dict(zip(found.tolist(), counts.tolist(), strict=True))


def _with_times(row: dict[str, Any], start_ns: int) -> dict[str, Any]:
    return {
        **row,
        "start_ns": str(row["start_ns"]),
        "end_ns": str(row["end_ns"]),
        "started": row["start_ns"] - start_ns,
        "ended": row["end_ns"] - start_ns,
    }
