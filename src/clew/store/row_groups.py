"""How the rows of a table are cut into row groups, so that who asks for one process reads little else.

Runs in the controller, where a trace is written. A process with many rows has row groups of its own, small ones share:
thousands of tiny groups would cost every reader more than they spare. What the rows say is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

import pyarrow as pa

__all__ = ["MAX_GROUP_ROWS", "OWN_GROUP_ROWS", "iter_row_groups"]

MAX_GROUP_ROWS: Final = 1 << 18
OWN_GROUP_ROWS: Final = 1 << 16
"""A table with so many rows shares a group with no other."""


def iter_row_groups(
    tables: Sequence[pa.Table], max_rows: int = MAX_GROUP_ROWS, own_rows: int = OWN_GROUP_ROWS
) -> Iterator[pa.Table]:
    """The rows of `tables`, in order, as a table for each row group; none where there are no rows.

    Each of `tables` is about one process: all of its rows, or those of some of its threads. One of `own_rows` and more
    is cut into pieces of `max_rows` at most; of smaller ones so many share a group as together reach `max_rows`.
    """
    waiting: list[pa.Table] = []
    n_waiting = 0
    for table in tables:
        is_small = table.num_rows < own_rows
        if is_small:
            waiting.append(table)
            n_waiting += table.num_rows
        if n_waiting and (not is_small or n_waiting >= max_rows):
            yield _join(waiting)
            waiting, n_waiting = [], 0
        if not is_small:
            n_pieces = -(-table.num_rows // max_rows)
            cuts = [table.num_rows * piece // n_pieces for piece in range(n_pieces + 1)]
            for first, last in pairwise(cuts):
                yield _join([table.slice(first, last - first)])
    if n_waiting:
        yield _join(waiting)


def _join(tables: Sequence[pa.Table]) -> pa.Table:
    # With a second chunk, be it empty, this also leaves each word once in the dictionary of a single table: Parquet's
    # writer spells out every row of a column in which one is there twice.
    return pa.concat_tables([*tables, tables[0].slice(0, 0)]).unify_dictionaries()
