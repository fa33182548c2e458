"""Writing a trace and reading it again; and everything else that may be found in place of one."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from clew.errors import NotATraceError, TraceDamagedError, TraceError, TraceUnfinishedError, TraceVersionError
from clew.store import columns
from clew.store.manifest import Manifest
from clew.store.names import JOURNAL_NAME, MANIFEST_NAME
from clew.store.schema import FORMAT_VERSION, SCHEMAS
from clew.store.trace import Trace
from clew.store.writer import TraceWriter


def make_manifest() -> Manifest:
    return Manifest(
        command=["it"],
        mode="counts",
        include=[],
        exclude=[],
        start_ns=1,
        end_ns=2,
        clew_version="0",
        machine={},
        cpu={},
        losses={"dropped_records": 2, "damaged_records": 1, "lost_threads": 7},
        processes=[{"pid": 7, "code": 0}],
        warnings=[],
    )


def counts(n: int) -> pa.Table:
    rows = [
        {"process_id": 0, "pid": 7, "tid": 7, "block_id": at, "edge_id": None, "executions": at + 1} for at in range(n)
    ]
    return pa.Table.from_pylist(rows, SCHEMAS["counts"])


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    """A good trace with counts in two parts."""
    path = tmp_path / "t.clew"
    path.mkdir()
    writer = TraceWriter(path, part_rows=1)
    writer.write("counts", counts(3))
    writer.write("counts", counts(2))
    writer.finish(make_manifest())
    return path


def edit_manifest(directory: Path, **fields: Any) -> None:
    path = directory / MANIFEST_NAME
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_parts_are_joined(directory: Path) -> None:
    trace = Trace(directory)
    assert trace.counts["executions"].to_pylist() == [1, 2, 3, 1, 2]
    assert trace.counts.schema.names == SCHEMAS["counts"].names
    assert trace.blocks.num_rows == 0
    assert trace.manifest.lost_records == 3
    assert trace.mode == "counts"


def test_a_table_that_a_trace_may_lack(directory: Path) -> None:
    assert not (directory / "tags").exists()
    assert "tags" not in json.loads((directory / MANIFEST_NAME).read_text())["tables"]
    assert Trace(directory).tags.schema.names == SCHEMAS["tags"].names
    assert Trace(directory).tags.num_rows == 0


def test_only_some_columns(directory: Path) -> None:
    assert Trace(directory).read("counts", ["tid"]).schema.names == ["tid"]


def test_nothing_unfinished_stays(directory: Path) -> None:
    assert not [path for path in directory.rglob("*") if "unfinished" in path.name]


def test_other_engines_read_the_tables(directory: Path) -> None:
    table = pq.read_table(directory / "counts")
    assert table["executions"].to_pylist() == [1, 2, 3, 1, 2]


def test_full_disk_is_told_and_leaves_nothing(tmp_path: Path) -> None:
    writer = TraceWriter(tmp_path, part_rows=1)
    (tmp_path / "counts").mkdir()
    os.symlink("/dev/full", tmp_path / "counts" / ".part-00000.parquet.unfinished")
    with pytest.raises(OSError) as failure:
        writer.write("counts", counts(1000))
    assert failure.value.errno == 28
    assert not list((tmp_path / "counts").iterdir())


def test_path_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NotATraceError, match="no such trace"):
        Trace(tmp_path / "nothing")


def test_file_in_place_of_a_trace(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("hello")
    with pytest.raises(NotATraceError, match="a trace is a directory"):
        Trace(tmp_path / "file")


def test_directory_that_is_no_trace(tmp_path: Path) -> None:
    with pytest.raises(NotATraceError, match=r"no manifest\.json"):
        Trace(tmp_path)


def test_trace_being_written(tmp_path: Path) -> None:
    (tmp_path / JOURNAL_NAME).write_bytes(b"")
    with pytest.raises(TraceUnfinishedError, match="being written"):
        Trace(tmp_path)


def test_newer_version(directory: Path) -> None:
    edit_manifest(directory, format=FORMAT_VERSION + 1, something_new=1)
    with pytest.raises(TraceVersionError, match="newer clew"):
        Trace(directory)


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000, b'{"format": "1"}', b'{"format": true}', b'{"format": 1}'],
)
def test_damaged_manifest(directory: Path, content: bytes) -> None:
    (directory / MANIFEST_NAME).write_bytes(content)
    with pytest.raises(TraceDamagedError, match=r"manifest\.json"):
        Trace(directory)


@pytest.mark.parametrize(
    "fields",
    [
        {"command": "it"},
        {"command": [1]},
        {"mode": 3},
        {"losses": {"dropped_records": "many"}},
        {"losses": {"dropped_records": [1]}},
        {"processes": [1]},
        {"processes": [{"pid": "x"}]},
        {"tables": {}},
        {"tables": {"blocks": {"rows": 1}}},
        {"cpu": {"target_seconds": "x"}},
        {"warnings": [None]},
        {"releases": {}},
        {"releases": [1]},
        {"releases": [{"pid": 1, "reason": 2, "threads": 1, "since_ns": 0}]},
        {"releases": [{"pid": 1, "reason": "traced", "threads": 1}]},
    ],
)
def test_manifest_with_impossible_values(directory: Path, fields: dict[str, Any]) -> None:
    edit_manifest(directory, **fields)
    with pytest.raises(TraceDamagedError, match="damaged"):
        Trace(directory)


@pytest.mark.parametrize("part", ["/etc/passwd", "../other/part.parquet", "counts/../../x", "a\0b", 7])
def test_parts_stay_inside_the_trace(directory: Path, part: object) -> None:
    tables = json.loads((directory / MANIFEST_NAME).read_text())["tables"]
    tables["counts"]["parts"] = [part]
    edit_manifest(directory, tables=tables)
    with pytest.raises(TraceDamagedError, match="tables"):
        Trace(directory)


def part_of(directory: Path) -> Path:
    return directory / "counts" / "part-00000.parquet"


def test_missing_part(directory: Path) -> None:
    part_of(directory).unlink()
    with pytest.raises(TraceDamagedError, match="missing"):
        _ = Trace(directory).counts


@pytest.mark.parametrize("kept", [0, 3, 4, 100, -1, -8, -9])
def test_truncated_part(directory: Path, kept: int) -> None:
    content = part_of(directory).read_bytes()
    part_of(directory).write_bytes(content[:kept])
    with pytest.raises(TraceDamagedError, match="damaged or truncated"):
        _ = Trace(directory).counts


def test_part_of_another_table(directory: Path) -> None:
    shutil.copy(directory / "events" / "part-00000.parquet", part_of(directory))
    with pytest.raises(TraceDamagedError, match="no column"):
        _ = Trace(directory).counts


def test_column_of_another_type(directory: Path) -> None:
    table = counts(3).set_column(5, "executions", pa.array(["a", "b", "c"]))
    pq.write_table(table, part_of(directory))
    with pytest.raises(TraceDamagedError, match="type string"):
        _ = Trace(directory).counts


def test_part_with_other_rows(directory: Path) -> None:
    pq.write_table(counts(4), part_of(directory))
    with pytest.raises(TraceDamagedError, match="6 rows, the manifest says 5"):
        _ = Trace(directory).counts


def test_damaged_bytes_never_do_more_than_fail(directory: Path) -> None:
    content = part_of(directory).read_bytes()
    rng = np.random.default_rng(1)
    for _ in range(150):
        damaged = bytearray(content)
        for at in rng.integers(0, len(content), 3).tolist():
            damaged[at] = int(rng.integers(256))
        part_of(directory).write_bytes(damaged)
        try:
            assert Trace(directory).counts.num_rows == 5
        except TraceError as error:
            assert "\n" not in error.message


def test_columns() -> None:
    assert columns.numbers([1, 2], pa.int32(), np.array([False, True])).to_pylist() == [1, None]
    assert columns.optional_numbers([None, 5], pa.int64()).to_pylist() == [None, 5]
    assert columns.booleans(np.array([True, False, True])).to_pylist() == [True, False, True]
    assert columns.texts(["a", None, "", "é"]).to_pylist() == ["a", None, "", "é"]
    assert columns.texts([]).to_pylist() == []
    assert columns.text_lists([["a", "b"], []]).to_pylist() == [["a", "b"], []]
    assert columns.words(np.array([1, 0, 0]), ["x", "y"], np.array([False, True, False])).to_pylist() == [
        "y",
        None,
        "x",
    ]
    data, offsets = np.frombuffer(b"abcd", np.uint8), np.array([0, 1, 1, 4])
    assert columns.binaries(data, offsets).to_pylist() == [b"a", b"", b"bcd"]
    columns.texts(["x"] * 3).validate(full=True)
    assert columns.distinct(np.array([3, -1, 3, 2])).tolist() == [-1, 2, 3]
    assert columns.distinct(np.zeros(0, np.int64)).tolist() == []
