"""A trace in pieces that can be looked at one by one: whole processes, as many at a time as fit into memory together.

Runs in the controller. So what a question costs in memory is bounded by the largest process, not by the trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from clew.analysis.tables.linked import Runs, find_linked, find_runs
from clew.store.columns import Array, distinct
from clew.store.excerpt import Excerpt
from clew.store.rows import RowRanges
from clew.store.schema import SCHEMAS
from clew.store.trace import Trace

__all__ = ["iter_by_pid", "iter_closed"]

PIECE_ROWS = 1 << 18
"""Rows of all tables that are looked at together, if several processes have them; one that has more is alone. As many
as one row group has: with more, memory grows with small processes up to several times what reading them takes; with
fewer, each row group is read for more and more pieces."""


def iter_by_pid(trace: Trace, piece_rows: int | None = None) -> Iterator[Trace]:
    """Pieces of `trace` that together are all of it, each with everything about some process ids."""
    piece_rows = PIECE_ROWS if piece_rows is None else piece_rows
    if _is_one_piece(trace, piece_rows):
        yield trace
        return
    runs = {table: find_runs(trace, table, "pid") for table in SCHEMAS}
    pids = distinct(np.concatenate([of_table.owner for of_table in runs.values()]))
    yield from _iter_pieces(trace, runs, {pid: pid for pid in pids.tolist()}, piece_rows)


def iter_closed(trace: Trace, piece_rows: int | None = None) -> Iterator[Trace]:
    """Pieces of `trace` that together are all of it, each with everything about some rows of `processes`.

    No row names a row of another piece, and no id is in two of them, be the trace damaged as it may.
    """
    piece_rows = PIECE_ROWS if piece_rows is None else piece_rows
    if _is_one_piece(trace, piece_rows):
        yield trace
        return
    yield from _iter_pieces(trace, *find_linked(trace), piece_rows)


def _is_one_piece(trace: Trace, piece_rows: int) -> bool:
    n_rows = sum(trace.n_rows(table) for table in SCHEMAS)
    return n_rows <= piece_rows or len(trace.manifest.processes) <= 1


def _iter_pieces(
    trace: Trace, runs: Mapping[str, Runs], leaders: Mapping[int, int], piece_rows: int
) -> Iterator[Excerpt]:
    """Pieces of at least `piece_rows` rows but for the last; owners with one leader come together."""
    # Units are numbered in the order of the tables, and so are the pieces.
    units: dict[int, int] = {}
    of_owner = {owner: units.setdefault(leader, len(units)) for owner, leader in leaders.items()}
    n_rows = np.zeros(len(units), np.int64)
    sorted_runs = {}
    for table, of_table in runs.items():
        unit = np.array([of_owner[owner] for owner in of_table.owner.tolist()], np.int64)
        np.add.at(n_rows, unit, of_table.last - of_table.first)
        order = np.argsort(unit, kind="stable")
        sorted_runs[table] = unit[order], of_table.first[order], of_table.last[order]
    for first_unit, last_unit in _cut(n_rows, piece_rows):
        ranges = {}
        for table, (unit, first, last) in sorted_runs.items():
            inside = slice(*np.searchsorted(unit, [first_unit, last_unit]))
            ranges[table] = RowRanges.join([first[inside]], [last[inside]])
        yield Excerpt(trace, ranges)


def _cut(n_rows: Array, piece_rows: int) -> Iterator[tuple[int, int]]:
    first = so_far = 0
    for unit, n_of_unit in enumerate(n_rows.tolist()):
        if unit > first and so_far + n_of_unit > piece_rows:
            yield first, unit
            first, so_far = unit, 0
        so_far += n_of_unit
    if first < len(n_rows):
        yield first, len(n_rows)
