"""A trace in pieces: each process in one of them, all of them together the trace, and what is linked in one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from clew.analysis.tables.arrays import to_numpy
from clew.analysis.tables.linked import find_linked
from clew.analysis.tables.split import iter_by_pid, iter_closed
from clew.store.row_groups import MAX_GROUP_ROWS
from clew.store.schema import SCHEMAS
from clew.store.trace import Trace
from tests.apps.chain_trace import write_chains
from tests.unit.small_trace import MakeTrace, Rows, repeated_trace, write_trace

Split = Callable[[Trace, int | None], Iterator[Trace]]


def values(piece: Trace, table: str, column: str) -> list[int]:
    found: list[int] = to_numpy(piece.read(table, [column])[column]).tolist()
    return found


@pytest.mark.parametrize("split", [iter_by_pid, iter_closed])
@pytest.mark.parametrize("piece_rows", [1, 50, 100])
@pytest.mark.parametrize("part_rows", [1, 1000])
def test_pieces_are_the_trace(split: Split, piece_rows: int, part_rows: int, tmp_path: Path) -> None:
    trace = write_trace(repeated_trace(10), tmp_path / "t.clew", part_rows)
    pieces = list(split(trace, piece_rows))
    assert len(pieces) == {1: 10, 50: 5, 100: 3}[piece_rows]
    for table in SCHEMAS:
        assert [pid for piece in pieces for pid in values(piece, table, "pid")] == values(trace, table, "pid")
    of_piece = [set(values(piece, "counts", "pid")) for piece in pieces]
    assert sum(map(len, of_piece)) == len(set().union(*of_piece)) == 10
    assert [values(piece, "edges", "pid") == [] for piece in pieces] == [False] * len(pieces)


@pytest.mark.parametrize("split", [iter_by_pid, iter_closed])
def test_a_small_trace_is_one_piece(split: Split, make_trace: MakeTrace, rows: Rows) -> None:
    for trace in (make_trace(repeated_trace(3), "a"), make_trace(rows, "b")):
        assert list(split(trace, 1000)) == [trace]
    assert list(split(make_trace(rows, "c"), 1)) != []


@pytest.mark.parametrize("split", [iter_by_pid, iter_closed])
@pytest.mark.long
def test_small_processes_are_looked_at_a_row_group_at_a_time(split: Split, tmp_path: Path) -> None:
    """However many there are, they need no more memory than what has to be read at once anyway."""
    trace = write_chains(tmp_path / "t.clew", 1500, 60)
    n_rows = [sum(piece.n_rows(table) for table in SCHEMAS) for piece in split(trace, None)]
    assert sum(n_rows) == sum(trace.n_rows(table) for table in SCHEMAS) > MAX_GROUP_ROWS
    assert max(n_rows) <= MAX_GROUP_ROWS


def test_programs_of_one_process_stay_together(make_trace: MakeTrace) -> None:
    rows = repeated_trace(5)
    for content in rows.values():
        for row in content:
            row["pid"] = {3: 1}.get(row["process_id"], row["process_id"])
    pieces = list(iter_by_pid(make_trace(rows), 1))
    assert [sorted(set(values(piece, "blocks", "process_id"))) for piece in pieces] == [[0], [1, 3], [2], [4]]
    closed = iter_closed(make_trace(rows, "closed"), 1)
    assert [values(piece, "processes", "process_id") for piece in closed] == [[0], [1], [2], [3], [4]]


def linked(rows: Rows, make_trace: MakeTrace) -> set[tuple[int, ...]]:
    """Processes that are linked, in groups."""
    _, leaders = find_linked(make_trace(rows))
    groups: dict[int, list[int]] = {}
    for process, leader in leaders.items():
        groups.setdefault(leader, []).append(process)
    return {tuple(sorted(group)) for group in groups.values() if len(group) > 1}


@pytest.mark.parametrize(
    ("table", "row", "change"),
    [
        ("edges", 5, {"target_block_id": 12}),
        ("edges", 6, {"source_block_id": 15}),
        ("edges", 7, {"callee_block_id": 13}),
        ("counts", 9, {"block_id": 14}),
        ("counts", 14, {"edge_id": 19}),
        ("blocks", 4, {"image_id": 3}),
        ("blocks", 7, {"block_id": 12}),
        ("edges", 9, {"edge_id": 15}),
        ("images", 1, {"image_id": 3}),
        ("blocks", 5, {"process_id": 3}),
    ],
)
def test_who_names_what_is_anothers_is_linked_to_it(
    table: str, row: int, change: dict[str, int], make_trace: MakeTrace
) -> None:
    rows = repeated_trace(5)
    rows[table][row] |= change
    assert linked(rows, make_trace) == {(1, 3)}


@pytest.mark.parametrize(
    ("table", "row", "change"),
    [
        ("edges", 5, {"target_block_id": 1200}),
        ("counts", 9, {"block_id": 1 << 40}),
        ("counts", 9, {"executions": 0}),
        ("blocks", 7, {"block_id": 1200}),
        ("blocks", 7, {"block_id": (1 << 63) - 1}),
        ("blocks", 5, {"process_id": 30}),
    ],
)
def test_who_names_what_is_nowhere_is_linked_to_nobody(
    table: str, row: int, change: dict[str, int], make_trace: MakeTrace
) -> None:
    rows = repeated_trace(5)
    rows[table][row] |= change
    # But a block that a stranger has taken is still named by those whose it was.
    assert linked(rows, make_trace) == ({(1, 30)} if change.get("process_id") else set())


def test_links_lead_on(make_trace: MakeTrace) -> None:
    rows = repeated_trace(6)
    rows["counts"][9] |= {"block_id": 19}
    rows["edges"][20] |= {"target_block_id": 9}
    rows["blocks"][0] |= {"image_id": 5}
    trace = make_trace(rows)
    pieces = list(iter_closed(trace, 1))
    assert [values(piece, "processes", "process_id") for piece in pieces] == [[0, 5], [1, 2, 4], [3]]
    assert pieces[1].whole_rows("blocks", np.array([0, 4, 8])).tolist() == [4, 8, 16]
