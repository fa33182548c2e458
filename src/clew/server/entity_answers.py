"""What the page asks of entities: those that calls are about, and who did what with them.

Runs in the controller. A trace without recorded calls has its processes and threads to show. Times are nanoseconds
since the recording began.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from clew.analysis.calls.entities import EntityFilter, EntityTable
from clew.analysis.calls.entity_life import read_life
from clew.errors import UsageError
from clew.server.process_calls import hold_calls, open_entities
from clew.server.query import Query

__all__ = ["answer_entities", "answer_entity", "answer_touches", "tell_entities", "tell_touches"]

MAX_PAGE: Final = 500
MAX_TOUCHES: Final = 1000
MAX_LIFE: Final = 200
_MAX_TEXT: Final = 400


def answer_entities(query: Query) -> dict[str, Any]:
    """Some of the entities asked for, sorted, with how many calls of the process, or of all, have to do with each."""
    offset, count = query.number("offset", 0), query.number("count", 100)
    if offset < 0 or not 0 <= count <= MAX_PAGE:
        raise UsageError(f"count: at most {MAX_PAGE}, and an offset of 0 at least")
    return tell_entities(query, offset, count)


def tell_entities(query: Query, offset: int, count: int) -> dict[str, Any]:
    """What `answer_entities` tells, however many are asked for."""
    process_id, table = query.whose, open_entities(query.served)
    # Also where nothing is read of it: a process that there is not is told of.
    if process_id is not None:
        query.served.graph(process_id)
    elif not len(table):
        raise UsageError("this trace has no API calls, which alone are about entities")
    if not len(table):
        return _tell_known(query, offset, count)
    wanted = EntityFilter(
        query.word("kind") or None, query.word("text")[:200], process_id if query.flag("own") else None
    )
    rows = table.choose(wanted)
    kinds = table.count_kinds(table.choose(EntityFilter(None, wanted.text, wanted.process_id)))
    page = table.sort(rows, query.word("sort", "calls"), process_id)[offset : offset + count]
    return {
        "source": "recorded",
        "total": len(rows),
        "offset": offset,
        "kinds": kinds,
        "rows": _tell_rows(query, table, page.tolist()),
    }


def _tell_rows(query: Query, table: EntityTable, rows: list[int]) -> list[dict[str, Any]]:
    start = query.served.start_ns
    calls, all_calls = table.count_calls(query.whose), table.count_calls()
    moved = table.count_bytes(query.whose)
    return [
        {
            "entity": one["entity_id"],
            "kind": str(one["kind"])[:40],
            "name": one["name"][:_MAX_TEXT],
            "process": one["process_id"],
            "tid": None,
            "parent": one["parent_entity_id"],
            "details": [list(pair) for pair in one["details"]],
            "from": one["first_ns"] - start,
            "to": one["last_ns"] - start,
            "calls": int(calls[row]),
            "all_calls": int(all_calls[row]),
            "bytes": int(moved[row]),
        }
        for row, one in zip(rows, table.read(rows), strict=True)
    ]


def _tell_known(query: Query, offset: int, count: int) -> dict[str, Any]:
    """Processes of the trace, and threads of the process, as if they were entities: each recording has them."""
    with hold_calls(query.served, query.process_id) as calls:
        by_thread: dict[int, int] = {}
        if calls.rows is not None:
            by_thread = dict(calls.rows.count_threads(np.ones(len(calls.rows), bool)))
    text, kind = query.word("text")[:200].lower(), query.word("kind") or None
    processes = query.served.summary["processes"]
    start, found = query.served.start_ns, []
    for one in processes:
        is_own = one["process_id"] == query.process_id
        row = {"entity": None, "process": one["process_id"], "tid": None, "parent": None, "bytes": 0}
        life = {"from": one["start_ns"] - start, "to": one["end_ns"] - start}
        name = f"{one['pid']} {' '.join(one['command'])[:_MAX_TEXT]}"
        details = [["pid", str(one["pid"])], ["executable", one["executable"][:_MAX_TEXT]]]
        n = sum(by_thread.values()) if is_own and by_thread else None
        found.append(row | life | {"kind": "process", "name": name, "details": details, "calls": n, "all_calls": n})
        for thread in one["threads"] if is_own else []:
            life = {"from": thread["start_ns"] - start, "to": thread["end_ns"] - start}
            n = by_thread.get(thread["tid"], 0) if by_thread else None
            told = {"kind": "thread", "name": f"{thread['tid']} {thread['name'][:_MAX_TEXT]}", "details": []}
            found.append(row | life | told | {"tid": thread["tid"], "calls": n, "all_calls": n})
    if query.flag("own"):
        found = [row for row in found if row["process"] == query.process_id]
    found = [row for row in found if text in str(row["name"]).lower()]
    kinds = {word: sum(row["kind"] == word for row in found) for word in ("process", "thread")}
    chosen = [row for row in found if kind is None or row["kind"] == kind]
    return {
        "source": "known",
        "total": len(chosen),
        "offset": offset,
        "kinds": {word: n for word, n in kinds.items() if n},
        "rows": chosen[offset : offset + count],
    }


def answer_entity(query: Query) -> dict[str, Any]:
    """One entity, and what each process did with it."""
    if query.whose is not None:
        query.served.graph(query.whose)
    table = open_entities(query.served)
    row = table.find(int(query.path["entity"]))
    (told,) = _tell_rows(query, table, [row])
    parent = table.find(told["parent"]) if told["parent"] is not None else None
    return told | {
        "touches": tell_touches(table, None, int(query.path["entity"]))[0],
        "parent_name": None if parent is None else table.names[parent][:_MAX_TEXT],
        **_tell_life(query, int(query.path["entity"])),
    }


def _tell_life(query: Query, entity_id: int) -> dict[str, Any]:
    """Who opened, shared, used and closed it. `call`: its index among those of its process, where it is listed."""
    events, total = read_life(query.served.trace, entity_id, MAX_LIFE)
    with hold_calls(query.served, query.whose) as calls:
        ids = np.array([event.call_id for event in events], np.int64)
        index = np.full(len(ids), -1) if calls.recorded is None else calls.recorded.number_of(ids)
    return {
        "life_total": total,
        "life": [
            {
                "process": event.process_id,
                "tid": event.tid,
                "call": call if call >= 0 else None,
                "time": event.time_ns - query.served.start_ns,
                "name": event.name[:_MAX_TEXT],
                "role": event.role[:40],
                "more": event.more,
            }
            for event, call in zip(events, index.tolist(), strict=True)
        ],
    }


def answer_touches(query: Query) -> dict[str, Any]:
    """Which processes did what with which entities, those with the most calls first; `own`: only the process."""
    query.served.graph(query.process_id)
    limit = query.number("limit", 100)
    if not 1 <= limit <= MAX_TOUCHES:
        raise UsageError(f"limit: from 1 to {MAX_TOUCHES}")
    rows, total = tell_touches(
        open_entities(query.served), query.process_id if query.flag("own") else None, None, limit
    )
    return {"total": total, "rows": rows}


def tell_touches(
    table: EntityTable, process_id: int | None, entity_id: int | None, limit: int = MAX_TOUCHES
) -> tuple[list[dict[str, Any]], int]:
    """At most `limit` of what processes, or one, did with entities, or one, and how many there are of that."""
    touches = table.touches(process_id, entity_id)
    kept = touches[:limit]
    told = table.read([table.find(touch.entity_id) for touch in kept])
    rows = [
        {
            "process": touch.process_id,
            "entity": touch.entity_id,
            "kind": str(one["kind"])[:40],
            "name": one["name"][:_MAX_TEXT],
            "calls": touch.calls,
            "roles": [[role, n] for role, n in list(touch.roles.items())[:20]],
            "bytes_read": touch.bytes_read,
            "bytes_written": touch.bytes_written,
        }
        for touch, one in zip(kept, told, strict=True)
    ]
    return rows, len(touches)
