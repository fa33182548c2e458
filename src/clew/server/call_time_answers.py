"""What the page asks of calls in time and in the order of execution: bars in the lanes of threads, and the calls around
a place of a thread.

Runs in the controller. Times are nanoseconds since the recording began; a call is named by its index.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from clew.analysis.calls.call_rows import MAX_BINS, CallFilter
from clew.errors import UsageError
from clew.server.call_answers import MAX_TEXT, tell_calls
from clew.server.container import encode_container, pack_texts
from clew.server.process_calls import hold_calls, parse_filter
from clew.server.query import Query
from clew.server.replay_answers import answer_replay

__all__ = ["answer_next_call", "answer_thread_calls", "encode_call_lanes"]

MAX_AROUND: Final = 100
MAX_BARS: Final = 1 << 16
MAX_OPEN: Final = 64


def encode_call_lanes(query: Query) -> bytes:
    """Recorded calls between two times as bars, by thread and depth. Those of one bin are one bar."""
    start, end, n_bins = query.number("from"), query.number("to"), query.number("bins", 1000)
    if start >= end or not 1 <= n_bins <= MAX_BINS:
        raise UsageError(f"lanes end behind their start, and have 1 to {MAX_BINS} bins")
    zero, wanted, tids = query.served.start_ns, parse_filter(query), query.threads()
    with hold_calls(query.served, query.process_id) as calls:
        rows = calls.rows if calls.recorded is not None else None
        if rows is None:
            return encode_container("call_lanes", {"process_id": query.process_id, "deep": 0}, _NO_BARS)
        threads = None if tids is None else {number for number, tid in enumerate(rows.tids) if tid in set(tids)}
        n_threads = len(rows.tids) if threads is None else len(threads)
        n_bins = max(min(n_bins, MAX_BARS // max(n_threads * calls.lanes.n_rows, 1)), 1)
        chosen = None if wanted == CallFilter(threads=wanted.threads) else calls.choose(rows, wanted)
        bars = calls.lanes.bars(zero + start, zero + end, n_bins, threads, chosen)
        deep = calls.lanes.n_deep(threads)
        names, name = np.unique(rows.name[bars.longest], return_inverse=True)
        words = [rows.names[one][:MAX_TEXT] if one < len(rows.names) else "" for one in names.tolist()]
        tid = np.array([*rows.tids, 0], np.uint32)[bars.thread]
    arrays = pack_texts("name", words) | {
        "tid": tid,
        "depth": bars.depth.astype(np.uint8),
        "from": (bars.start_ns - zero).astype(np.float64),
        "to": (bars.end_ns - zero).astype(np.float64),
        "calls": bars.calls.astype(np.uint32),
        "failed": bars.failed.astype(np.uint32),
        "call": bars.longest.astype(np.uint32),
        "named": name.astype(np.uint32),
    }
    return encode_container("call_lanes", {"process_id": query.process_id, "deep": deep}, arrays)


_NO_BARS: Final = pack_texts("name", []) | {
    **{name: np.zeros(0, np.uint32) for name in ("tid", "calls", "failed", "call", "named")},
    **{name: np.zeros(0, np.float64) for name in ("from", "to")},
    "depth": np.zeros(0, np.uint8),
}


def answer_thread_calls(query: Query) -> dict[str, Any]:
    """The recorded calls of a thread around a place: `count` in front of it, and as many from there on. `first` says
    which of `total` the first row is. `around` are those that the one in front of the first row was made within."""
    position, count = query.number("position", 0), query.number("count", 20)
    if not 0 <= count <= MAX_AROUND:
        raise UsageError(f"count: at most {MAX_AROUND}")
    with hold_calls(query.served, query.process_id) as calls:
        rows, order = calls.rows, calls.in_order
        if rows is None or order is None:
            return {"total": 0, "first": 0, "rows": [], "around": []}
        own = order.of_thread(query.tid)
        at = order.first_from(query.tid, position)
        first = max(at - count, 0)
        page = own[first : at + count].tolist()
        around = list(calls.nesting.around(page[0]))[:MAX_OPEN] if page else []
        told = tell_calls(query, calls, rows, page + around)
        for call, row in zip(page + around, told, strict=True):
            row["position"] = int(order.position[call])
            row["depth"] = int(calls.nesting.depth[call])
            row["parent"] = int(calls.nesting.parent[call])
    return {"total": len(own), "first": first, "rows": told[: len(page)], "around": told[len(page) :]}


def answer_next_call(query: Query) -> dict[str, Any]:
    """A thread where the next recorded call behind a position is made, or the last before it (`back`); `found` says
    whether there is one."""
    position = query.number("position", 0)
    with hold_calls(query.served, query.process_id) as calls:
        order = calls.in_order
        found = None if order is None else order.find(query.tid, position, back=query.flag("back"))
    state = answer_replay(query.served, query.process_id, query.tid, position if found is None else found)
    return {**state, "found": found is not None}
