"""What the page asks of calls within calls: the tree of a thread, one level at a time.

Runs in the controller. Times are nanoseconds; a call is named by its index, as in call_answers.py, and what has the
same calls around it by the index of its path.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from clew.analysis.calls.call_nesting import CallNesting
from clew.analysis.calls.call_paths import PATH_SORTS, CallPaths
from clew.analysis.calls.call_rows import CallFilter, CallRows
from clew.analysis.tables.arrays import Array
from clew.errors import UsageError
from clew.protocol._constants import Injected
from clew.protocol.words import CALL_WORDS
from clew.server.call_answers import MAX_TEXT, tell_calls
from clew.server.process_calls import ProcessCalls, hold_calls, parse_filter
from clew.server.query import Query

__all__ = ["answer_call_tree"]

MAX_PAGE: Final = 500
_GROUPS: Final = ("call", "name")


def answer_call_tree(query: Query) -> dict[str, Any]:
    """One level of the calls asked for and those around them: within `parent`, else those of `thread` that are within
    none, else the threads, which is all that is told of all processes together. `by` call: each call; by name: those
    together that have the same around them."""
    by, sort, descending = query.word("by", "call"), query.word("sort", "order"), query.flag("descending")
    offset, count = query.number("offset", 0), query.number("count", 100)
    if by not in _GROUPS or sort not in PATH_SORTS:
        raise UsageError(f"by is one of {', '.join(_GROUPS)}, sort one of {', '.join(PATH_SORTS)}")
    if offset < 0 or not 0 <= count <= MAX_PAGE:
        raise UsageError(f"count: at most {MAX_PAGE}, and an offset of 0 at least")
    wanted, words = parse_filter(query), query.words()
    with hold_calls(query.served, query.whose) as calls:
        rows = calls.rows
        if rows is None:
            raise UsageError("there are no calls with a time in this trace")
        if "parent" not in words and "thread" not in words:
            return _tell_threads(calls, rows, wanted, by=by)
        if query.whose is None:
            raise UsageError("a level of the tree is one of a process")
        page: list[dict[str, Any]]
        if by == "name":
            paths = calls.paths(wanted)
            found = _find_paths(query, rows, paths)
            chosen = paths.sort(found, sort, descending=descending)[offset : offset + count]
            page = [_tell_path(rows, paths, path) for path in chosen.tolist()]
        else:
            kept = calls.keep(wanted)
            found = _find_calls(query, rows, calls.nesting, kept)
            chosen = _sort_calls(calls.nesting, found, sort, descending=descending)[offset : offset + count]
            page = _tell_calls(query, calls, rows, kept, chosen.tolist())
        return {"total": len(found), "offset": offset, "rows": page}


def _tell_threads(calls: ProcessCalls, rows: CallRows, wanted: CallFilter, *, by: str) -> dict[str, Any]:
    kept = calls.keep(wanted)
    outermost = kept & (calls.nesting.parent < 0)
    n = len(rows.tids) + 1
    n_calls, n_failed = (np.bincount(rows.thread[one], minlength=n) for one in (kept, kept & rows.failed))
    total = np.bincount(rows.thread[outermost], weights=calls.nesting.took[outermost], minlength=n).astype(np.int64)
    if by == "name":
        paths = calls.paths(wanted)
        within = np.bincount(paths.thread[paths.parent < 0], minlength=n)
    else:
        within = np.bincount(rows.thread[outermost], minlength=n)
    found = [
        {
            "process": rows.owners[thread] if rows.owners else rows.processes[0],
            "tid": tid,
            "calls": int(n_calls[thread]),
            "failed": int(n_failed[thread]),
            "total": int(total[thread]),
            "within": int(within[thread]),
        }
        for thread, tid in enumerate(rows.tids)
        if n_calls[thread]
    ]
    return {"total": len(found), "offset": 0, "threads": found}


def _find_thread(query: Query, rows: CallRows) -> int:
    tid = query.number("thread")
    if tid not in rows.tids:
        raise UsageError(f"no thread {tid} in this process")
    return rows.tids.index(tid)


def _find_paths(query: Query, rows: CallRows, paths: CallPaths) -> Array:
    if "parent" not in query.words():
        return paths.of_thread(_find_thread(query, rows))
    parent = query.number("parent")
    if not 0 <= parent < len(paths):
        raise UsageError(f"parent: there are {len(paths)}")
    return paths.within(parent)


def _find_calls(query: Query, rows: CallRows, nesting: CallNesting, kept: Array) -> Array:
    if "parent" not in query.words():
        found = nesting.outermost(_find_thread(query, rows))
    else:
        parent = query.number("parent")
        if not 0 <= parent < len(rows):
            raise UsageError(f"parent: there are {len(rows)}")
        found = nesting.within(parent)
    return found[kept[found]]


def _sort_calls(nesting: CallNesting, found: Array, sort: str, *, descending: bool) -> Array:
    if sort in ("order", "calls"):
        return found[::-1] if descending else found
    if sort == "name":
        by = nesting.rows.rank_names()[found]
    else:
        by = (nesting.took if sort == "total" else nesting.own)[found]
    return found[np.argsort(-by if descending else by, kind="stable")]


def _tell_calls(
    query: Query, calls: ProcessCalls, rows: CallRows, kept: Array, page: list[int]
) -> list[dict[str, Any]]:
    nesting = calls.nesting
    return [
        told
        | {
            "total": told["duration"],
            "own": int(nesting.own[call]),
            "calls": 1,
            "failed": int(rows.failed[call]),
            "within": int(np.count_nonzero(kept[nesting.within(call)])),
        }
        for call, told in zip(page, tell_calls(query, calls, rows, page), strict=True)
    ]


def _tell_path(rows: CallRows, paths: CallPaths, path: int) -> dict[str, Any]:
    name, kind = int(paths.name[path]), int(paths.kind[path])
    return {
        "path": path,
        "call": int(paths.first[path]),
        "name": rows.names[name][:MAX_TEXT] if name < len(rows.names) else "",
        "kind": CALL_WORDS[kind] if kind < len(CALL_WORDS) else "unknown",
        "calls": int(paths.calls[path]),
        "failed": int(paths.failed[path]),
        "total": int(paths.total[path]),
        "own": int(paths.own[path]),
        "injected": [one.name.lower() for one in Injected if paths.injected[path] & one],
        "within": int(paths.n_within[path]),
    }
