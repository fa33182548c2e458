"""Recorded calls added up by function, and things by what was done with them: `clew report --by api|syscall|entity`.

Runs in the controller. A trace without recorded calls has no rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from clew.analysis.calls.entities import EntityTable
from clew.store.trace import Trace

__all__ = ["rank_calls", "rank_entities"]

Row = dict[str, Any]

_BY: Final = ["pid", "kind", "library", "name"]
_COLUMNS: Final = [*_BY, "duration_ns", "error"]
_NUMBERS: Final = ["calls", "errors", "returned", "total_ns"]


def rank_calls(
    trace: Trace, n: int, *, pid: int | None = None, merge: bool = False, kind: str | None = None
) -> list[Row]:
    """The `n` functions that took the longest, all calls of one together: `calls`, `errors`, `returned` (those whose
    duration is known), `total_ns`, `mean_ns`, `max_ns`.

    Of each process its own; with `merge` of all together. `kind`: only `system_call` or `library`.
    """
    by = [name for name in _BY if not (merge and name == "pid")]
    parts = [_added_up(piece, by) for piece in _pieces(trace, pid, kind)]
    if not parts:
        return []
    total = pa.concat_tables(parts).group_by(by).aggregate([*((name, "sum") for name in _NUMBERS), ("max_ns", "max")])
    rows = [
        {name: row[name] for name in by}
        | {name: int(row[f"{name}_sum"] or 0) for name in _NUMBERS}
        | {"max_ns": row["max_ns_max"]}
        for row in total.to_pylist()
    ]
    for row in rows:
        row["mean_ns"] = row["total_ns"] // row["returned"] if row["returned"] else None
    rows.sort(key=lambda row: (-row["total_ns"], -row["calls"], row["name"], row.get("pid", 0)))
    return rows[:n]


def _pieces(trace: Trace, pid: int | None, kind: str | None) -> Iterator[pa.Table]:
    for piece in trace.iter_pieces("calls", _COLUMNS):
        # Words are dictionaries of each piece's own.
        piece = pa.table({name: _plain(piece[name]) for name in piece.column_names})
        for name, wanted in (("pid", pid), ("kind", kind)):
            if wanted is not None:
                piece = piece.filter(pc.equal(piece[name], wanted))
        if piece.num_rows:
            yield piece


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _added_up(piece: pa.Table, by: list[str]) -> pa.Table:
    counted = piece.append_column("errors", pc.is_valid(piece["error"]).cast(pa.int64()))
    counted = counted.append_column("returned", pc.is_valid(piece["duration_ns"]).cast(pa.int64()))
    found = counted.group_by(by).aggregate(
        [("name", "count"), ("errors", "sum"), ("returned", "sum"), ("duration_ns", "sum"), ("duration_ns", "max")]
    )
    renamed = {
        "name_count": "calls",
        "errors_sum": "errors",
        "returned_sum": "returned",
        "duration_ns_sum": "total_ns",
        "duration_ns_max": "max_ns",
    }
    return found.rename_columns([renamed.get(name, name) for name in found.column_names]).select(
        [*by, *_NUMBERS, "max_ns"]
    )


def rank_entities(trace: Trace, n: int, *, pid: int | None = None) -> list[Row]:
    """The `n` things with which most calls have to do: `calls`, `bytes_read`, `bytes_written`, `roles` (how often
    each), `processes` (how many)."""
    table = EntityTable(trace)
    process_id = None
    if pid is not None:
        processes = trace.read("processes", ["process_id", "pid"]).to_pylist()
        # Of several programs that a process executed the last one's.
        process_id = [row["process_id"] for row in processes if row["pid"] == pid][-1]
    found: dict[int, Row] = {}
    for touch in table.touches(process_id):
        row = found.setdefault(
            touch.entity_id, {"calls": 0, "bytes_read": 0, "bytes_written": 0, "roles": {}, "processes": 0}
        )
        row["calls"] += touch.calls
        row["bytes_read"] += touch.bytes_read
        row["bytes_written"] += touch.bytes_written
        row["processes"] += 1
        for role, count in touch.roles.items():
            row["roles"][role] = row["roles"].get(role, 0) + count
    ranked = sorted(found.items(), key=lambda item: (-item[1]["calls"], item[0]))[:n]
    told = table.read([table.find(entity_id) for entity_id, _ in ranked])
    return [
        {"entity_id": entity_id, "pid": one["pid"], "kind": one["kind"], "name": one["name"]} | row
        for (entity_id, row), one in zip(ranked, told, strict=True)
    ]
