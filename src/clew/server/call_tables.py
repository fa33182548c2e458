"""What the page's view of calls has, as tables to be taken out of it: calls, where they were made, what they are about,
and who did what with that.

Runs in the controller. Rows are what call_answers.py and entity_answers.py tell the page, texts as short as there, so
that `web/src/model/export/call-tables.ts` makes the same of them where the page is a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa

from clew.analysis.graph.graph import ProcessGraph
from clew.errors import UsageError
from clew.server.call_answers import find_places, tell_calls
from clew.server.entity_answers import tell_entities, tell_touches
from clew.server.process_calls import hold_calls, open_entities, parse_filter
from clew.server.query import Query
from clew.store.columns import optional_numbers, texts

__all__ = ["CALL_TABLES", "tabulate_calls"]

CALL_TABLES: Final = ("calls", "places", "entities", "touches")
"""What there is a table of."""

_AT_ONCE: Final = 1 << 15
"""So many calls are told at once: whoever else asks for calls waits that long, and as many are in memory as objects."""

_Rows = list[dict[str, Any]]


def tabulate_calls(query: Query, of: str, most: int) -> pa.Table:
    """The table `of` one of CALL_TABLES, with the rows that are asked for by the words of the page's own questions, in
    the order of these. Times are nanoseconds since the recording began, texts are cut off at 400 letters.

    Of calls: `call` (index), `process_id`, `pid`, `time_ns`, `duration_ns`, `tid`, `kind`, `filter`, `name`, `library`,
    `arguments`, `result`, `error`, `injected`, `block` (index) and `function` that made it, where one process is asked
    about. Of places: `block`, `function`, `name` of the calls, `calls`. Of entities: `entity_id`, `kind`, `name`,
    `process_id`, `tid`, `parent_entity_id`, `first_ns`, `last_ns`, `calls` (of the process, or of all), `all_calls`,
    `bytes` (that were read and written there), `details`. Of touches: `process_id`, `pid`, `entity_id`, `kind`, `name`,
    `calls`, `roles`, `bytes_read`, `bytes_written`.

    Raises UsageError where there are more than `most` rows.
    """
    return {"calls": _calls, "places": _places, "entities": _entities, "touches": _touches}[of](query, most)


def _calls(query: Query, most: int) -> pa.Table:
    wanted, sort, descending = parse_filter(query), query.word("sort", "time"), query.flag("descending")
    pids = _find_pids(query)
    with hold_calls(query.served, query.whose) as calls:
        rows = calls.rows
        if rows is None:
            raise UsageError("there are no calls with a time in this trace")
        order = calls.order(rows, wanted, sort, descending=descending)
    _check(len(order), most, "calls")
    # As they lie in the file, where each part is read as a whole; then in the order that is asked for.
    stored = np.argsort(rows.source[order], kind="stable")
    parts = []
    for first in range(0, max(len(order), 1), _AT_ONCE):
        with hold_calls(query.served, query.whose) as calls:
            told = tell_calls(query, calls, rows, order[stored[first : first + _AT_ONCE]].tolist())
        parts.append(_tabulate_calls(None if query.whose is None else calls.graph, told, pids))
    place = np.empty(len(stored), np.int64)
    place[stored] = np.arange(len(stored))
    return pa.concat_tables(parts).take(place)


def _find_pids(query: Query) -> dict[int, int]:
    return {one["process_id"]: one["pid"] for one in query.served.summary["processes"]}


def _tabulate_calls(graph: ProcessGraph | None, rows: _Rows, pids: dict[int, int]) -> pa.Table:
    return pa.table(
        {
            "call": _numbers(rows, "call", pa.uint32()),
            "process_id": _numbers(rows, "process"),
            "pid": optional_numbers([pids.get(row["process"]) for row in rows], pa.int64()),
            "time_ns": _numbers(rows, "time"),
            "duration_ns": _numbers(rows, "duration"),
            "tid": _numbers(rows, "tid"),
            "kind": _texts(rows, "kind"),
            "filter": _texts(rows, "filter"),
            "name": _texts(rows, "name"),
            "library": _texts(rows, "library"),
            "arguments": texts([", ".join(map(_tell_argument, row["arguments"])) for row in rows]),
            "result": _texts(rows, "result"),
            "error": _texts(rows, "error"),
            "injected": texts([",".join(row["injected"]) or None for row in rows]),
            **_tabulate_place(graph, rows),
        }
    )


def _tell_argument(argument: dict[str, str]) -> str:
    """`path=/etc/passwd`: what it means where that is known, else its value."""
    told = argument.get("text", argument.get("value", "?"))
    return f"{argument['name']}={told}" if "name" in argument else told


def _tabulate_place(graph: ProcessGraph | None, rows: _Rows) -> dict[str, pa.Array]:
    blocks = [row["block"] if row["block"] >= 0 else None for row in rows]
    functions = [graph.names[row["function"]] if graph and row["function"] >= 0 else None for row in rows]
    return {"block": optional_numbers(blocks, pa.uint32()), "function": texts(functions)}


def _places(query: Query, most: int) -> pa.Table:
    rows = find_places(query)
    _check(len(rows), most, "places")
    where = _tabulate_place(query.served.graph(query.process_id), rows)
    return pa.table({**where, "name": _texts(rows, "name"), "calls": _numbers(rows, "calls")})


def _entities(query: Query, most: int) -> pa.Table:
    page = tell_entities(query, 0, most)
    _check(page["total"], most, "entities")
    rows = page["rows"]
    return pa.table(
        {
            "entity_id": _numbers(rows, "entity"),
            "kind": _texts(rows, "kind"),
            "name": _texts(rows, "name"),
            "process_id": _numbers(rows, "process"),
            "tid": _numbers(rows, "tid"),
            "parent_entity_id": _numbers(rows, "parent"),
            "first_ns": _numbers(rows, "from"),
            "last_ns": _numbers(rows, "to"),
            "calls": _numbers(rows, "calls"),
            "all_calls": _numbers(rows, "all_calls"),
            "bytes": _numbers(rows, "bytes"),
            "details": texts([", ".join(f"{name}={value}" for name, value in row["details"]) for row in rows]),
        }
    )


def _touches(query: Query, most: int) -> pa.Table:
    # A process that there is not is told of.
    if query.whose is not None:
        query.served.graph(query.whose)
    rows, total = tell_touches(open_entities(query.served), None, None, most)
    _check(total, most, "pairs")
    pids = _find_pids(query)
    return pa.table(
        {
            "process_id": _numbers(rows, "process"),
            "pid": optional_numbers([pids.get(row["process"]) for row in rows], pa.int64()),
            "entity_id": _numbers(rows, "entity"),
            "kind": _texts(rows, "kind"),
            "name": _texts(rows, "name"),
            "calls": _numbers(rows, "calls"),
            "roles": texts([", ".join(f"{role} {n}" for role, n in row["roles"]) for row in rows]),
            "bytes_read": _numbers(rows, "bytes_read"),
            "bytes_written": _numbers(rows, "bytes_written"),
        }
    )


def _check(n: int, most: int, what: str) -> None:
    if n > most:
        raise UsageError(f"{n} {what} are more than {most}: choose fewer")


def _numbers(rows: Sequence[dict[str, Any]], name: str, kind: pa.DataType | None = None) -> pa.Array:
    return optional_numbers([row[name] for row in rows], kind or pa.int64())


def _texts(rows: Sequence[dict[str, Any]], name: str) -> pa.Array:
    return texts([row[name] for row in rows])
