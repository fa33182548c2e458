"""Tables as files: against sums made of the trace's own tables, and names that spreadsheets would trip over."""

from __future__ import annotations

import csv
import io
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from clew.errors import UsageError
from clew.server.query import Query
from clew.server.served_trace import ServedTrace
from clew.server.table_files import make_table_file, write_arrow, write_csv
from tests.web.made_up_trace import write_made_up_trace
from tests.web.traces import HOSTILE_NAMES

FORMULAS = ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\uff1d1")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> ServedTrace:
    """A trace of two threads, with names that are not good for anybody."""
    directory = tmp_path_factory.mktemp("tables") / "t.clew"
    write_made_up_trace(directory, 400, n_threads=2, names=(*HOSTILE_NAMES, *FORMULAS))
    return ServedTrace(directory, 0)


def make(served: ServedTrace, **words: object) -> bytes:
    told = {name: str(value) for name, value in words.items()}
    return make_table_file(Query({"trace": 0, "process": 0}, told, [served])).content


def read_arrow(content: bytes) -> pa.Table:
    return pa.ipc.open_file(pa.BufferReader(content)).read_all()


def test_blocks_are_those_of_the_trace(served: ServedTrace) -> None:
    table = read_arrow(make(served, of="blocks", **{"as": "arrow"}))
    stored = {row["block_id"]: row for row in served.trace.blocks.to_pylist()}
    executions: Counter[int] = Counter()
    for row in served.trace.counts.to_pylist():
        if row["block_id"] is not None:
            executions[row["block_id"]] += row["executions"]
    rows = table.to_pylist()
    assert {row["block_id"] for row in rows} == set(stored)
    for row in rows:
        block = stored[row["block_id"]]
        assert row["address"] == block["app_pc"]
        assert row["exit"] == block["exit_kind"]
        assert (row["size_bytes"], row["n_instructions"]) == (block["size_bytes"], block["n_instructions"])
        assert row["first_ns"] == block["first_ns"] - served.start_ns
        assert row["executions"] == executions[row["block_id"]]


def test_edges_at_what_is_selected(served: ServedTrace) -> None:
    stored = served.trace.edges.to_pylist()
    blocks = read_arrow(make(served, of="blocks", **{"as": "arrow", "function": 3}))
    own = set(blocks["block_id"].to_pylist())
    wanted = Counter(
        (row["source_block_id"], row["target_block_id"], row["kind"])
        for row in stored
        if row["source_block_id"] in own or row["target_block_id"] in own
    )
    table = read_arrow(make(served, of="edges", **{"as": "arrow", "function": 3})).to_pylist()
    assert Counter((row["source_block_id"], row["target_block_id"], row["kind"]) for row in table) == wanted
    assert 0 < len(table) < len(stored)
    everything = read_arrow(make(served, of="edges", **{"as": "arrow"})).to_pylist()
    assert len(everything) == len(stored)
    assert None in {row["source_block_id"] for row in everything}, "a thread's start has no source"


def test_counts_of_one_thread_are_its_own(served: ServedTrace) -> None:
    tids = served.trace.threads["tid"].to_pylist()
    tables = [
        read_arrow(make(served, of="functions", threads=threads, **{"as": "arrow"}))
        for threads in (tids[0], tids[1], "all")
    ]
    one, other, both = (table["instructions"].to_numpy() for table in tables)
    assert one.sum() > 0 and other.sum() > 0
    assert np.array_equal(one + other, both)


def test_the_filter_leaves_what_the_table_of_the_page_has(served: ServedTrace) -> None:
    names = served.graph(0).names
    table = read_arrow(make(served, of="functions", text="SCRIPT", **{"as": "arrow"}))
    assert table["name"].to_pylist() == [name for name in names if "script" in name.lower()]
    images = served.graph(0).image
    hidden = read_arrow(make(served, of="functions", hide_images="0,-1", **{"as": "arrow"}))
    assert hidden["function"].to_pylist() == np.flatnonzero((images != 0) & (images != -1)).tolist()


def test_csv_is_arrow_as_text(served: ServedTrace) -> None:
    content = make(served, of="functions", **{"as": "csv"}).decode()
    rows = list(csv.DictReader(io.StringIO(content)))
    table = read_arrow(make(served, of="functions", **{"as": "arrow"})).to_pylist()
    assert len(rows) == len(table)
    assert content.count("\n") == len(table) + 1, "a row is a line, whatever a name has in it"
    for row, known in zip(rows, table, strict=True):
        assert int(row["address"], 16) == known["address"]
        assert int(row["instructions"]) == known["instructions"]
        assert row["image"] == (known["image"] or "")
    told = {row["name"] for row in rows}
    for name in HOSTILE_NAMES[1:5]:
        assert name in told
    for formula in FORMULAS:
        assert formula not in told
        assert "'" + formula.replace("\t", "\\x09") in told


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), min_size=1))
def test_no_text_is_a_formula_or_another_row(texts: list[str]) -> None:
    table = pa.table({"name": pa.array(texts, pa.string()), "n": pa.array(range(len(texts)))})
    lines = write_csv(table).decode().split("\n")
    assert lines[0] == '"name","n"'
    assert lines[-1] == ""
    rows = list(csv.reader(lines[1:-1]))
    assert [row[1] for row in rows] == [str(number) for number in range(len(texts))]
    for (cell, _), text in zip(rows, texts, strict=True):
        assert cell[:1] not in ("=", "+", "-", "@", "\t", "\r", "\n")
        assert cell in (text, f"'{text}") or any(ord(letter) < 32 or 127 <= ord(letter) < 160 for letter in text)
    assert read_arrow(write_arrow(table)).equals(table)


@pytest.mark.parametrize(
    "words",
    [
        {},
        {"of": "blocks"},
        {"of": "paper", "as": "csv"},
        {"of": "blocks", "as": "xlsx"},
        {"of": "blocks", "as": "csv", "block": "400"},
        {"of": "blocks", "as": "csv", "function": "-1"},
        {"of": "blocks", "as": "csv", "hide_images": "x"},
        {"of": "blocks", "as": "csv", "hide_images": "9"},
    ],
)
def test_words_that_mean_nothing(served: ServedTrace, words: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        make(served, **words)


def test_a_table_of_too_many_rows_is_refused(served: ServedTrace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("clew.server.table_files.MAX_ROWS", 399)
    with pytest.raises(UsageError, match="400 rows are more than 399"):
        make(served, of="blocks", **{"as": "csv"})
    assert make(served, of="blocks", **{"as": "csv", "function": 0})
