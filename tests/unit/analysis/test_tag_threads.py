"""What is told of a thread's tags is what a look at one after the other finds, however they are cut into pieces."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.analysis.replay.tag_threads import TagThreads
from clew.protocol._generated import GapReason
from clew.protocol.words import TAG_WORDS
from clew.store.schema import SCHEMAS
from clew.store.trace import Trace
from clew.store.writer import TraceWriter
from tests.unit.small_trace import make_manifest, small_trace

KINDS = st.sampled_from([*TAG_WORDS, "became_busy", "left_busy", "counts"])
END_NS = 9000

Row = dict[str, Any]


def write(rows: list[Row], sizes: list[int], folder: pytest.TempPathFactory) -> Trace:
    """A trace of these tags, in files and row groups of so many rows."""
    directory = folder.mktemp("tags") / "t.clew"
    directory.mkdir()
    writer = TraceWriter(directory, part_rows=1)
    tables = small_trace()
    for name, content in tables.items():
        writer.write(name, pa.Table.from_pylist(content, SCHEMAS[name]))
    left = list(rows)
    while left:
        size = sizes.pop() if sizes else len(left)
        writer.write("tags", pa.Table.from_pylist(left[:size], SCHEMAS["tags"]))
        left = left[size:]
    writer.finish(make_manifest([{"pid": 7, "code": 0}], mode="region"))
    return Trace(directory)


def find_gaps(rows: list[Row]) -> list[tuple[int, ...]]:
    """From when to when, from where to where, and how much was counted in between."""
    gaps: list[list[int]] = []
    is_busy, counted = False, 0
    for position, row in enumerate(rows):
        if row["kind"] == "counts":
            counted += max(row["executions"], 0)
        if row["kind"] == "became_busy" and not is_busy:
            gaps.append([row["time_ns"], END_NS, position, len(rows), counted, GapReason.BUSY])
            is_busy = True
        elif row["kind"] == "left_busy" and is_busy:
            gaps[-1][1], gaps[-1][3] = max(row["time_ns"], gaps[-1][0]), position + 1
            gaps[-1][4] = counted - gaps[-1][4]
            is_busy = False
    if is_busy:
        gaps[-1][4] = counted - gaps[-1][4]
    return [tuple(gap) for gap in gaps]


@settings(max_examples=60)
@given(
    of_thread=st.lists(st.tuples(st.sampled_from([7, 8]), KINDS, st.integers(0, 50)), max_size=40),
    sizes=st.lists(st.integers(1, 15), max_size=4),
)
def test_gaps_and_ticks_are_those_of_the_rows(
    tmp_path_factory: pytest.TempPathFactory, of_thread: list[tuple[int, str, int]], sizes: list[int]
) -> None:
    rows = [
        {"process_id": 0, "pid": 7, "tid": tid, "tag": number, "kind": kind, "block_id": number % 4}
        | {"target_block_id": None, "executions": value, "value": value, "time_ns": 2000 + 10 * number - value}
        for number, (tid, kind, value) in enumerate(of_thread)
    ]
    tags = TagThreads(write(rows, sizes, tmp_path_factory), 0)
    for tid in (7, 8, 9):
        own = [row for row in rows if row["tid"] == tid]
        times = tags.times(tid, 1000, END_NS)
        assert tags.length(tid) == times.length == len(own)
        assert [tuple(gap) for gap in times.gaps.tolist()] == find_gaps(own)
        happened = [(row["time_ns"], at) for at, row in enumerate(own) if row["kind"] in ("signal", "fault", "syscall")]
        assert sorted(zip(times.ticks["ns"].tolist(), times.ticks["place"].tolist(), strict=True)) == sorted(happened)
        read = tags.read(tid, 1, 30)
        assert read["kind"].tolist() == [TAG_WORDS.index(row["kind"]) for row in own[1:31]]
        assert read["executions"].tolist() == [row["executions"] for row in own[1:31]]
        for _ in tags.prepare(tid):
            pass
        for block in range(5):
            # Of a group more may be told than is asked for, never less.
            is_told = any(row["block_id"] == block for row in own[2:10])
            assert tags.may_tell_of(tid, 2, 8, block) or not is_told
