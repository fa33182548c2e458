"""What the page asks of calls of a process, or of all: a page of them, how many there are of what, over time, by place,
and one of them.

Runs in the controller. docs/format/container.md lists the arrays. Times are nanoseconds since the recording began; a
call is named by its index among those of its process, in the order of time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any, Final

import numpy as np

from clew.analysis.calls.call_rows import CallFilter, CallRows
from clew.analysis.calls.system_calls import CallPlace, count_system_calls, sum_system_calls
from clew.analysis.calls.told_calls import tell_arguments
from clew.analysis.replay.timeline import find_edges
from clew.api.call_filters import built_in_filters
from clew.api.vocabulary import FILTERS
from clew.errors import UsageError
from clew.protocol.words import CALL_WORDS
from clew.server.container import encode_container, pack_texts
from clew.server.process_calls import ProcessCalls, hold_calls, open_entities, parse_filter
from clew.server.query import Query
from clew.server.replay_answers import find_call_position

__all__ = [
    "MAX_TEXT",
    "answer_call",
    "answer_call_places",
    "answer_call_summary",
    "answer_calls",
    "encode_call_chart",
    "find_places",
    "tell_call_details",
    "tell_calls",
]

MAX_PAGE: Final = 500
MAX_NAMES: Final = 2000
MAX_PLACES: Final = 2000
MAX_REFERENCES: Final = 16
MAX_AROUND: Final = 32
MAX_WITHIN: Final = 20
MAX_TEXT: Final = 400
_NO_TIMES: Final = (
    "This trace has no API calls (clew api --trace OUT.clew -- COMMAND records them), and of system calls mode {} "
    "knows only which blocks made them: those of modes full and region have times"
)
_NO_ARGUMENTS: Final = (
    "This trace has no API calls (clew api --trace OUT.clew -- COMMAND records them): these are the system calls that "
    "mode {} notes, without arguments"
)


def answer_call_summary(query: Query) -> dict[str, Any]:
    """What is listed, and of the calls asked for how many there are: of each name, process and thread."""
    with hold_calls(query.served, query.whose) as calls:
        rows = calls.rows
        told: dict[str, Any] = {
            "source": calls.source,
            "reason": _tell_reason(calls),
            "total": 0 if rows is None else len(rows),
            "omitted": 0 if rows is None else rows.n_omitted,
            "untimed": _count_untimed(calls, rows),
            "from": None,
            "to": None,
            "calls": 0,
            "names": [],
            "names_omitted": 0,
            "filters": [],
            "processes": [],
            "threads": [],
        }
        wanted = parse_filter(query)
        if rows is None:
            return told | {"filters": _count_filters(_find_counted(calls, replace(wanted, filter=None)))}
        if not len(rows):
            return told
        # By what else can be chosen, too, instead of what is.
        any_filter = calls.choose(rows, replace(wanted, filter=None))
        chosen = any_filter if wanted.filter is None else calls.choose(rows, wanted)
        names = rows.count_names(chosen)
        start = query.served.start_ns
        return told | {
            "from": int(rows.time_ns[0]) - start,
            "to": int(rows.time_ns[-1]) - start,
            "calls": int(np.count_nonzero(chosen)),
            "names": [
                {"name": name[:MAX_TEXT], "kind": _name_kind(kind), "calls": n, "failed": failed}
                for name, kind, n, failed in names[:MAX_NAMES]
            ],
            "names_omitted": max(len(names) - MAX_NAMES, 0),
            "filters": [{"filter": word, "calls": n} for word, n in rows.count_filters(any_filter)],
            "processes": [{"process": process, "calls": n} for process, n in rows.count_processes(chosen)],
            "threads": [{"tid": tid, "calls": n} for tid, n in rows.count_threads(chosen)],
        }


def _count_filters(places: list[CallPlace]) -> list[dict[str, Any]]:
    """How many system calls there are of what descriptions have them under; blocks, where calls were not counted."""
    found: Counter[str] = Counter()
    for place in places:
        found[_filter_of(place.name)] += 1 if place.calls is None else place.calls
    return [{"filter": word, "calls": found[word]} for word in FILTERS if found[word]]


def _find_counted(calls: ProcessCalls, wanted: CallFilter) -> list[CallPlace]:
    """The places of system calls that were counted, and of which nothing else is known."""
    threads = None if wanted.threads is None else list(wanted.threads)
    return [place for place in count_system_calls(calls.graph, threads) if _is_named(place.name, wanted)]


def _count_untimed(calls: ProcessCalls, rows: CallRows | None) -> int:
    """How many system calls were counted that have neither order nor time, where those that have are listed."""
    if rows is None or calls.recorded is not None:
        return 0
    return max(sum_system_calls(calls.graph) - len(rows) - rows.n_omitted, 0)


def _tell_reason(calls: ProcessCalls) -> str | None:
    """Why less is told than of recorded calls."""
    if calls.source == "recorded":
        return None
    return (_NO_ARGUMENTS if calls.source == "system_calls" else _NO_TIMES).format(calls.graph.trace.mode)


def answer_calls(query: Query) -> dict[str, Any]:
    """Some of the calls asked for, sorted. `at` is the place of the call `call` (of all processes' of `process`) among
    them, or null."""
    offset, count = query.number("offset", 0), query.number("count", 100)
    if offset < 0 or not 0 <= count <= MAX_PAGE:
        raise UsageError(f"count: at most {MAX_PAGE}, and an offset of 0 at least")
    sort, descending = query.word("sort", "time"), query.flag("descending")
    wanted = parse_filter(query)
    with hold_calls(query.served, query.whose) as calls:
        rows = calls.rows
        if rows is None:
            return {"total": 0, "at": None, "offset": offset, "rows": []}
        order = calls.order(rows, wanted, sort, descending=descending)
        at = None
        if "call" in query.words():
            places = np.flatnonzero(order == _find_call(query, rows))
            at = int(places[0]) if len(places) else None
            if at is not None and "offset" not in query.words():
                offset = at - at % max(count, 1)
        page = order[offset : offset + count].tolist()
        return {"total": len(order), "at": at, "offset": offset, "rows": tell_calls(query, calls, rows, page)}


def _find_call(query: Query, rows: CallRows) -> int:
    whose = query.number("process") if query.whose is None else query.whose
    found = rows.find(whose, query.number("call"))
    if found is None:
        raise UsageError(f"call: there are {len(rows)}")
    return found


def _check_call(rows: CallRows, call: int) -> int:
    if not 0 <= call < len(rows):
        raise UsageError(f"call: there are {len(rows)}")
    return call


def tell_calls(query: Query, calls: ProcessCalls, rows: CallRows, page: list[int]) -> list[dict[str, Any]]:
    """What is told of the calls `page`, which are indices of `rows`, those that `calls` has."""
    start, recorded = query.served.start_ns, calls.recorded
    told = recorded.read(page) if recorded is not None else [{} for _ in page]
    found = []
    for call, more in zip(page, told, strict=True):
        block, thread, name = int(rows.block[call]), int(rows.thread[call]), int(rows.name[call])
        duration = -1 if rows.duration_ns is None else int(rows.duration_ns[call])
        row: dict[str, Any] = {
            "call": call if rows.number is None else int(rows.number[call]),
            "process": rows.processes[int(rows.whose[call])],
            "time": int(rows.time_ns[call]) - start,
            "duration": None if duration < 0 else duration,
            "tid": rows.tids[thread] if thread < len(rows.tids) else None,
            "kind": _name_kind(int(rows.kind[call])),
            "name": rows.names[name][:MAX_TEXT] if name < len(rows.names) else "",
            "block": block,
            "function": int(calls.graph.function[block]) if block >= 0 else -1,
            "filter": FILTERS[rows.filter[call]],
            "library": None,
            "arguments": [],
            "result": None,
            "error": None,
            "injected": [],
        }
        if more:
            text = more["result_text"] if more["result_text"] is not None else more["result"]
            row |= {
                "library": None if more["library"] is None else more["library"][:MAX_TEXT],
                "arguments": tell_arguments(more["arguments"]),
                "result": None if text is None else str(text)[:MAX_TEXT],
                "error": None if more["error"] is None else more["error"][:MAX_TEXT],
                "injected": [] if more["injected"] is None else more["injected"][:MAX_TEXT].split(","),
            }
        found.append(row)
    return found


def answer_call(query: Query) -> dict[str, Any]:
    """One call, what it did with which entities, and where its thread was; a `position` of null where no order is."""
    with hold_calls(query.served, query.process_id) as calls:
        if calls.rows is None:
            raise UsageError("there are no calls with a time in this trace")
        chosen = [_check_call(calls.rows, int(query.path["call"]))]
    (told,) = tell_call_details(query, chosen, MAX_REFERENCES)
    if told["references"]:
        entities = open_entities(query.served)
        rows_of = [entities.find(one["entity"]) for one in told["references"]]
        for one, row in zip(told["references"], rows_of, strict=True):
            one |= {"name": entities.names[row][:MAX_TEXT], "kind": entities.kinds[row]}
    return told | _tell_nested(query, chosen[0])


def _tell_nested(query: Query, call: int) -> dict[str, Any]:
    """What a call was made within, the outermost first, and the first of those that it is the innermost around."""
    with hold_calls(query.served, query.process_id) as calls:
        rows, nesting = calls.rows, calls.nesting
        assert rows is not None
        around = list(nesting.around(call))[:MAX_AROUND][::-1]
        within = nesting.within(call)
        inside = tell_calls(query, calls, rows, within[:MAX_WITHIN].tolist())
        outside = tell_calls(query, calls, rows, around)
    return {"around": outside, "within": inside, "n_within": len(within)}


def tell_call_details(query: Query, chosen: list[int], most_references: int) -> list[dict[str, Any]]:
    """What `answer_call` tells of each of some calls, which have times, with at most so many references."""
    with hold_calls(query.served, query.process_id) as calls:
        rows, recorded = calls.rows, calls.recorded
        assert rows is not None
        found = tell_calls(query, calls, rows, chosen)
        for call, told in zip(chosen, found, strict=True):
            told["parent"], told["depth"] = int(calls.nesting.parent[call]), int(calls.nesting.depth[call])
            told["own"] = None if told["duration"] is None else int(calls.nesting.own[call])
        # What was not recorded as a call is known by its number among the events.
        sources: list[int | None] = [None if recorded else int(rows.source[call]) for call in chosen]
        positions: list[int | None] = [None for _ in chosen]
        references: list[list[dict[str, Any]]] = [[] for _ in chosen]
        if recorded is not None:
            positions = [more["position"] for more in recorded.read(chosen)]
            references = recorded.read_references(chosen, most_references)
    for told, source, position, about in zip(found, sources, positions, references, strict=True):
        told["position"] = position
        if told["tid"] is not None:
            told["position"] = find_call_position(
                query.served,
                query.process_id,
                told["tid"],
                number=source,
                position=position,
                time_ns=query.served.start_ns + told["time"],
            )
        told["references"] = [
            {
                "entity": one["entity_id"],
                "role": str(one["role"])[:40],
                "argument": one["argument"],
                "bytes": one["bytes"],
            }
            for one in about
        ]
    return found


def answer_call_places(query: Query) -> dict[str, Any]:
    """Which blocks made the calls asked for, and how many of which; the most first. Without times by threads alone."""
    places = find_places(query)
    return {
        "total": len(places),
        "calls": None if any(one["calls"] is None for one in places) else sum(one["calls"] for one in places),
        "rows": places[:MAX_PLACES],
    }


def find_places(query: Query) -> list[dict[str, Any]]:
    """All rows of what `answer_call_places` tells."""
    wanted = parse_filter(query)
    with hold_calls(query.served, query.process_id) as calls:
        graph, rows = calls.graph, calls.rows
        places: list[tuple[int, str | None, int | None]]
        if rows is None:
            places = [(place.block, place.name, place.calls) for place in _find_counted(calls, wanted)]
        else:
            places = [
                (block, rows.names[name] if name < len(rows.names) else None, n)
                for block, name, n in rows.count_places(calls.choose(rows, wanted))
            ]
    return [
        {
            "block": block,
            "function": int(graph.function[block]) if block >= 0 else -1,
            "name": None if name is None else name[:MAX_TEXT],
            "calls": n,
            # Of single calls each says its own.
            "filter": _filter_of(name) if rows is None else None,
        }
        for block, name, n in places
    ]


def _filter_of(name: str | None) -> str:
    return built_in_filters().of_system_call(name or "")


def _is_named(name: str | None, wanted: CallFilter) -> bool:
    if wanted.filter is not None and _filter_of(name) != wanted.filter:
        return False
    return (wanted.name is None or name == wanted.name) and wanted.text.lower() in (name or "").lower()


def encode_call_chart(query: Query) -> bytes:
    """How many of the calls asked for were made in which part of time, by name, kind, filter, process or thread."""
    by, n_bins, n_series = query.word("by", "name"), query.number("bins", 100), query.number("series", 8)
    wanted = parse_filter(query)
    zero = query.served.start_ns
    with hold_calls(query.served, query.whose) as calls:
        rows = calls.rows
        if rows is None:
            raise UsageError("there are no calls with a time in this trace")
        first, last = (int(rows.time_ns[0]), int(rows.time_ns[-1])) if len(rows) else (zero, zero)
        start = first if wanted.start_ns is None else wanted.start_ns
        end = max(last, start + 1) if wanted.end_ns is None else wanted.end_ns
        if start >= end or not n_bins >= 1:
            raise UsageError("a chart ends behind its start, and has bins")
        series = rows.series(calls.choose(rows, wanted), by, find_edges(start, end, min(n_bins, end - start)), n_series)
    meta = {
        "process_id": query.whose,
        "from": start - zero,
        "to": end - zero,
        "by": by,
        "bins": series.counts.shape[1],
        "others": series.n_others,
    }
    arrays = pack_texts("name", [name[:MAX_TEXT] for name in series.names])
    return encode_container("call_chart", meta, arrays | {"calls": series.counts.reshape(-1).astype(np.uint32)})


def _name_kind(kind: int) -> str:
    return CALL_WORDS[kind] if kind < len(CALL_WORDS) else "unknown"
