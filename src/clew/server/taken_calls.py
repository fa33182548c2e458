"""The calls of a process for a page that is taken away: all of them, which the page chooses from and adds up itself.

Runs in the controller. `web/src/api/file-calls.ts` and those beside it answer out of it what call_answers.py,
call_tree_answers.py, call_time_answers.py and entity_answers.py would.
"""

from __future__ import annotations

from typing import Any, Final

from clew.analysis.calls.entities import EntityFilter
from clew.analysis.calls.system_calls import sum_system_calls
from clew.server.call_answers import answer_call_places, answer_call_summary, find_places, tell_call_details
from clew.server.entity_answers import answer_entities, tell_touches
from clew.server.process_calls import hold_calls, open_entities
from clew.server.query import Query
from clew.server.served_trace import ServedTrace

__all__ = ["MOST_CALLS", "MOST_ENTITIES", "MOST_REFERENCES", "take_calls"]

MOST_CALLS: Final = 20_000
"""Calls of a process whose calls are in the file: a browser looks through so many at once."""

MOST_REFERENCES: Final = 100_000
"""To entities, of these calls."""

MOST_ENTITIES: Final = 2_000
"""Of the trace, and pairs of one and a process."""

_PAGE: Final = 500


def take_calls(served: ServedTrace, process_id: int) -> dict[str, Any] | None:
    """All that is told of the calls of a process; None where that is more than a file has."""
    table = open_entities(served)
    if len(table) > MOST_ENTITIES or not _has_few_calls(served, process_id):
        return None
    touches, n_touches = tell_touches(table, None, None, MOST_ENTITIES)
    entities = _read_entities(served, process_id)
    if entities is None or n_touches > MOST_ENTITIES:
        return None
    query = _query(served, process_id)
    makers = [(one, table.find_maker(one)) for one in range(len(table))]
    with hold_calls(served, process_id) as calls:
        rows = calls.rows
    return {
        "summary": answer_call_summary(query),
        # All of them: the page's tables are to be those of the server.
        "places": answer_call_places(query) | {"rows": find_places(query)},
        "calls": [] if rows is None else tell_call_details(query, list(range(len(rows))), MOST_REFERENCES),
        "entities": entities,
        # Entities that are this process, or a thread of it: whatever they call has to do with them.
        "makers": [
            [int(table.entity_id[one]), maker[1]]
            for one, maker in makers
            if maker is not None and maker[0] == process_id
        ],
        "touches": touches,
    }


def _has_few_calls(served: ServedTrace, process_id: int) -> bool:
    with hold_calls(served, process_id) as calls:
        if calls.recorded is not None:
            return calls.recorded.n_all <= MOST_CALLS and calls.recorded.n_references <= MOST_REFERENCES
        if calls.source == "counts":
            return True
        # To read them all only to find that they are too many takes long.
        return sum_system_calls(calls.graph) <= MOST_CALLS and calls.rows is not None and len(calls.rows) <= MOST_CALLS


def _read_entities(served: ServedTrace, process_id: int) -> dict[str, Any] | None:
    """All entities, and whether the process has to do with each; None where they are too many."""
    page = answer_entities(_query(served, process_id, offset=0, count=_PAGE))
    if page["total"] > MOST_ENTITIES:
        return None
    rows = page["rows"]
    while len(rows) < page["total"]:
        rows += answer_entities(_query(served, process_id, offset=len(rows), count=_PAGE))["rows"]
    if page["source"] == "recorded":
        table = open_entities(served)
        own = set(table.entity_id[table.choose(EntityFilter(process_id=process_id))].tolist())
        rows = [row | {"own": row["entity"] in own} for row in rows]
    else:
        rows = [row | {"own": row["process"] == process_id} for row in rows]
    return {"source": page["source"], "rows": rows}


def _query(served: ServedTrace, process_id: int, **words: int) -> Query:
    told = {name: str(value) for name, value in words.items()}
    return Query({"trace": 0, "process": process_id}, told, [served])
