"""Row groups: a large process has its own, small ones share, and who asks for one process reads little else."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clew.store.columns import numbers, texts
from clew.store.excerpt import Excerpt, excerpt_of_pid
from clew.store.row_groups import MAX_GROUP_ROWS, OWN_GROUP_ROWS, iter_row_groups
from clew.store.rows import RowRanges
from clew.store.schema import SCHEMAS
from clew.store.trace import Trace
from clew.store.writer import TraceWriter
from tests.unit.small_trace import make_manifest, repeated_trace, write_trace


def counts_of(process: int, n: int) -> pa.Table:
    """`n` counts of one process."""
    constant = {"process_id": process, "pid": 100 + process, "tid": 100 + process}
    columns = {name: numbers(np.full(n, value), pa.int32()) for name, value in constant.items()}
    columns |= {
        "block_id": numbers(np.arange(n), pa.int64()),
        "edge_id": numbers(np.zeros(n), pa.int64(), np.ones(n, bool)),
        "executions": numbers(np.arange(n) + 1, pa.int64()),
    }
    return pa.Table.from_arrays(list(columns.values()), schema=SCHEMAS["counts"])


def write_counts(directory: Path, sizes: list[int], **options: Any) -> Trace:
    """A trace with nothing but so many counts of each process."""
    directory.mkdir()
    writer = TraceWriter(directory, **options)
    for process, size in enumerate(sizes):
        writer.write("counts", counts_of(process, size))
    writer.finish(make_manifest([{"pid": 100 + process} for process in range(len(sizes))]))
    return Trace(directory)


def groups_of(trace: Trace) -> list[tuple[int, int, int]]:
    """Of each row group of the counts: rows, and the least and the greatest pid that it tells of."""
    found = []
    for part in trace.manifest.tables["counts"]["parts"]:
        metadata = pq.ParquetFile(trace.directory / part).metadata
        for index in range(metadata.num_row_groups):
            group = metadata.row_group(index)
            pid = next(group.column(i) for i in range(group.num_columns) if group.column(i).path_in_schema == "pid")
            found.append((group.num_rows, pid.statistics.min, pid.statistics.max))
    return found


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        ([], []),
        ([0], []),
        ([3], [3]),
        ([1] * 25, [10, 10, 5]),
        ([4, 4, 4, 4], [12, 4]),
        ([1, 5, 1], [1, 5, 1]),
        ([1, 0, 11, 0, 1], [1, 5, 6, 1]),
        ([10, 30, 31], [10, 10, 10, 10, 7, 8, 8, 8]),
    ],
)
def test_groups(sizes: list[int], groups: list[int]) -> None:
    none = SCHEMAS["counts"].empty_table()
    tables = [counts_of(process, size) for process, size in enumerate(sizes)]
    found = list(iter_row_groups(tables, max_rows=10, own_rows=5))
    assert [group.num_rows for group in found] == groups
    assert pa.concat_tables([none, *found]).equals(pa.concat_tables([none, *tables]))


def test_each_word_is_once_in_a_dictionary() -> None:
    """Else Parquet's writer spells out every row."""
    words = pa.DictionaryArray.from_arrays(numbers([0, 1, 2, 2], pa.int32()), texts(["a", "b", "a"]))
    (group,) = iter_row_groups([pa.table({"symbol": words})])
    assert group["symbol"].to_pylist() == ["a", "b", "a", "a"]
    assert {tuple(chunk.dictionary.to_pylist()) for chunk in group["symbol"].chunks} == {("a", "b")}


def test_processes_have_row_groups_of_their_own_range(tmp_path: Path) -> None:
    large = 2 * MAX_GROUP_ROWS + 1
    trace = write_counts(tmp_path / "t.clew", [10, 20, large, 30, OWN_GROUP_ROWS, 40, 50])
    groups = groups_of(trace)
    assert groups == [
        (30, 100, 101),
        *((large * (n + 1) // 3 - large * n // 3, 102, 102) for n in range(3)),
        (30, 103, 103),
        (OWN_GROUP_ROWS, 104, 104),
        (90, 105, 106),
    ]
    assert max(rows for rows, _, _ in groups) <= MAX_GROUP_ROWS


def test_thousands_of_small_processes_share_groups(tmp_path: Path) -> None:
    groups = groups_of(write_counts(tmp_path / "t.clew", [100] * 3000))
    assert len(groups) == 2
    assert groups[0][2] <= groups[1][1]


def test_other_engines_pass_over_the_groups_of_other_processes(tmp_path: Path) -> None:
    trace = write_counts(tmp_path / "t.clew", [OWN_GROUP_ROWS + process for process in range(6)])
    files = str(trace.directory / "counts" / "*.parquet")
    told = duckdb.execute(
        "SELECT count(DISTINCT (file_name, row_group_id)) FROM parquet_metadata(?) WHERE path_in_schema = 'pid' "
        "AND stats_min_value::INT <= 103 AND stats_max_value::INT >= 103",
        [files],
    ).fetchall()
    assert told == [(1,)]
    query = "SELECT count(*), sum(executions) FROM read_parquet(?) WHERE pid = 103"
    n = OWN_GROUP_ROWS + 3
    assert duckdb.execute(query, [files]).fetchall() == [(n, n * (n + 1) // 2)]
    assert polars.scan_parquet(files).filter(polars.col("pid") == 103).collect().height == n


def test_who_asks_for_one_process_reads_only_its_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = write_counts(tmp_path / "t.clew", [OWN_GROUP_ROWS + process for process in range(6)])
    read: list[int] = []
    read_row_group = pq.ParquetFile.read_row_group

    def note(self: Any, index: int, columns: list[str]) -> Any:
        read.append(index)
        return read_row_group(self, index, columns)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", note)
    excerpt = excerpt_of_pid(trace, 103)
    # That all rows of a group are the process' own its statistics tell.
    assert not read
    assert excerpt.n_rows("counts") == OWN_GROUP_ROWS + 3
    assert excerpt.read("counts", ["pid"])["pid"].unique().to_pylist() == [103]
    assert len(read) == 1


@pytest.fixture
def trace(tmp_path: Path) -> Trace:
    """Ten processes, with the counts in many small parts."""
    return write_trace(repeated_trace(10), tmp_path / "t.clew", part_rows=1)


def test_pieces_are_the_table(trace: Trace) -> None:
    pieces = list(trace.iter_pieces("counts", ["tid", "executions"]))
    assert pa.concat_tables(pieces).equals(trace.counts.select(["tid", "executions"]))


def test_rows_by_their_numbers(trace: Trace) -> None:
    expected = trace.blocks.select(["symbol", "app_pc"]).to_pylist()
    rows = [39, 0, 17, 17]
    assert trace.read_rows("blocks", rows, ["symbol", "app_pc"]) == [expected[row] for row in rows]
    assert trace.read_rows("blocks", [], ["symbol"]) == []
    for row in (-1, 40):
        with pytest.raises(IndexError):
            trace.read_rows("blocks", [row], ["symbol"])


def test_rows_by_values(trace: Trace) -> None:
    assert trace.find_first("blocks", "block_id", [5, 39, 77]) == {5: 5, 39: 39}
    assert trace.find_first("blocks", "pid", [8, 7]) == {7: 0, 8: 4}
    assert trace.find_first("blocks", "pid", []) == {}


def test_excerpts(trace: Trace) -> None:
    ranges = {table: RowRanges(np.array([1, 5]), np.array([3, 6])) for table in SCHEMAS}
    excerpt = Excerpt(trace, ranges)
    assert excerpt.n_rows("counts") == 3
    assert excerpt.blocks["block_id"].to_pylist() == [1, 2, 5]
    assert excerpt.read("blocks", ["pid"])["pid"].to_pylist() == [7, 7, 8]
    assert excerpt.read_rows("blocks", [2, 0], ["block_id"]) == [{"block_id": 5}, {"block_id": 1}]
    assert excerpt.whole_rows("blocks", np.array([0, -1, 2])).tolist() == [1, -1, 5]
    assert (excerpt.whole, trace.whole) == (trace, trace)
    assert excerpt.mode == trace.mode


@pytest.mark.parametrize("n_rows", [10, MAX_GROUP_ROWS // 3])
def test_a_few_rows_do_not_keep_their_row_group_in_memory(n_rows: int, tmp_path: Path) -> None:
    whole = write_counts(tmp_path / "t.clew", [1000] * 250)
    ranges = {table: RowRanges(np.zeros(0, np.int64), np.zeros(0, np.int64)) for table in SCHEMAS}
    excerpt = Excerpt(whole, ranges | {"counts": RowRanges(np.array([7]), np.array([7 + n_rows]))})
    table = excerpt.read("counts", ["block_id", "executions"])
    assert table["block_id"].to_pylist() == (np.arange(7, 7 + n_rows) % 1000).tolist()
    assert table.get_total_buffer_size() < 2 * 16 * n_rows + 4096


def test_an_excerpt_of_a_process(trace: Trace) -> None:
    excerpt = excerpt_of_pid(trace, 9)
    assert excerpt.processes["process_id"].to_pylist() == [2]
    assert excerpt.counts["pid"].to_pylist() == [9] * 9
    assert excerpt.events.num_rows == 0
    assert excerpt_of_pid(trace, 99).blocks.num_rows == 0


def test_ranges() -> None:
    ranges = RowRanges.join([np.array([4, 0]), np.array([2, 9])], [np.array([6, 2]), np.array([4, 12])])
    assert (ranges.first.tolist(), ranges.last.tolist()) == ([0, 9], [6, 12])
    assert len(ranges) == 9
    assert ranges.rows().tolist() == [0, 1, 2, 3, 4, 5, 9, 10, 11]
    assert ranges.locate(np.arange(9)).tolist() == ranges.rows().tolist()
    within = ranges.within(5, 10)
    assert (within.first.tolist(), within.last.tolist()) == ([5, 9], [6, 10])
    empty = RowRanges.join([], [])
    assert (len(empty), empty.rows().tolist(), empty.locate(np.array([-1])).tolist()) == (0, [], [-1])


def test_a_trace_that_knows_no_programs_but_the_first(trace: Trace, tmp_path: Path) -> None:
    """As the first traces of the format: without process_id, and without what row groups tell of themselves."""
    for part in trace.manifest.tables["counts"]["parts"]:
        table = pq.read_table(trace.directory / part).drop_columns(["process_id"])
        pq.write_table(table, trace.directory / part, write_statistics=False)
    found = Trace(trace.directory)
    assert found.counts["process_id"].to_pylist() == found.counts["pid"].to_pylist()
    assert excerpt_of_pid(found, 9).n_rows("counts") == 9
    assert found.find_first("counts", "process_id", [9]) == {9: 18}
