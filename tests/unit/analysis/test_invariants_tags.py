"""Each invariant of tags holds in a good trace, finds what breaks it, and tells that from what was cut off."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from clew.analysis.invariants.check import check_invariants
from clew.analysis.invariants.tags import TAG_INVARIANTS
from tests.unit.small_trace import MakeTrace, Rows, put_together, small_trace, write_trace

ROWS, TURNS, ORDER, SUMS = (name for name, _ in TAG_INVARIANTS)


def tagged_trace() -> Rows:
    """The small trace as mode region has it: twice through the loop in tags, three times busy, and out of it."""
    rows = small_trace()
    rows["tags"] = []

    def add(kind: str, block: int | None = None, target: int | None = None, **fields: int) -> None:
        last = rows["tags"][-1]["tag"] if rows["tags"] else -1
        row: dict[str, Any] = {"process_id": 0, "pid": 7, "tid": 7, "tag": last + 1, "kind": kind}
        row |= {"block_id": block, "target_block_id": target, "executions": None, "value": None, "time_ns": None}
        rows["tags"].append(row | fields)

    for _ in range(2):
        for block, target in ((0, 3), (3, 1), (1, 0)):
            add("executed", block, target)
    for block in (0, 3, 1):
        add("became_busy", block, time_ns=2000)
    add("counts", 0, 3, executions=3)
    add("counts", 3, executions=3)
    add("counts", 1, 0, executions=2)
    add("counts", 1, 2, executions=1, tag=11)
    add("left_busy", time_ns=3000)
    add("executed", 2)
    add("syscall", value=60, time_ns=4000)
    return rows


@pytest.fixture
def rows() -> Rows:
    return tagged_trace()


def broken(make_trace: MakeTrace, rows: Rows, name: str = "t", **fields: Any) -> set[str]:
    return {one.invariant for one in check_invariants(make_trace(rows, name, **{"mode": "region"} | fields))}


def change(row: int, **fields: Any) -> Callable[[Rows], None]:
    return lambda rows: rows["tags"][row].update(fields)


def remove(*numbers: int) -> Callable[[Rows], None]:
    """Without some rows, and the others numbered anew."""

    def apply(rows: Rows) -> None:
        rows["tags"] = [row for number, row in enumerate(rows["tags"]) if number not in numbers]
        number, before = -1, None
        for row in rows["tags"]:
            number += row["tag"] != before
            before, row["tag"] = row["tag"], number

    return apply


def swap(first: int, second: int) -> Callable[[Rows], None]:
    def apply(rows: Rows) -> None:
        tags = rows["tags"]
        tags[first]["tag"], tags[second]["tag"] = tags[second]["tag"], tags[first]["tag"]
        tags[first], tags[second] = tags[second], tags[first]

    return apply


DAMAGES = [
    (change(0, kind="leapt"), ROWS),
    (change(0, tag=1), ROWS),
    (change(4, tag=3), ROWS),
    (change(11, tag=10), ROWS),
    (change(0, block_id=77), ROWS),
    (change(0, target_block_id=77), ROWS),
    (change(6, target_block_id=3), ROWS),
    (change(13, block_id=1), ROWS),
    (change(0, executions=1), ROWS),
    (change(9, executions=None), ROWS),
    (change(15, value=None), ROWS),
    (change(0, value=1), ROWS),
    (change(6, time_ns=None), ROWS),
    (change(0, time_ns=5), ROWS),
    (change(15, tid=8), ROWS),
    (remove(13), TURNS),
    (remove(8), TURNS),
    (remove(10), TURNS),
    (remove(6, 7, 8, 9, 10, 11, 12), TURNS),
    (change(9, block_id=2), TURNS),
    (change(10, block_id=0), TURNS),
    (swap(8, 9), TURNS),
    (swap(5, 6), TURNS),
    (change(0, target_block_id=1), ORDER),
    (change(5, target_block_id=3), ORDER),
    (remove(2), ORDER),
    (remove(5), SUMS),
    (remove(3), SUMS),
    (change(9, executions=4), SUMS),
    (change(12, executions=2), SUMS),
    (change(0, block_id=None), SUMS),
    (change(14, block_id=0), SUMS),
]
"""What is changed, and the invariant that does not hold any more."""


def test_good_trace(make_trace: MakeTrace, rows: Rows) -> None:
    assert broken(make_trace, rows) == set()


@pytest.mark.parametrize(("damage", "invariant"), DAMAGES)
def test_damage_is_found(damage: Callable[[Rows], None], invariant: str, make_trace: MakeTrace, rows: Rows) -> None:
    damage(rows)
    assert invariant in broken(make_trace, rows)


@pytest.mark.parametrize(
    ("damage", "invariant"),
    [pytest.param(*one, marks=() if number % 4 == 0 else pytest.mark.long) for number, one in enumerate(DAMAGES)],
)
def test_damage_among_many_processes(
    damage: Callable[[Rows], None], invariant: str, make_trace: MakeTrace, tmp_path: Any
) -> None:
    """It is found wherever the trace is cut, and whatever the row groups."""
    processes = [tagged_trace() for _ in range(3)]
    damage(processes[1])
    sizes = dict.fromkeys(("process", "image", "block", "edge"), 1000)
    together = put_together(processes, sizes)
    trace = make_trace(together, "many", mode="region")
    whole = check_invariants(trace)
    assert invariant in {finding.invariant for finding in whole}
    for piece_rows in (1, 60):
        assert check_invariants(trace, piece_rows=piece_rows) == whole
    parts = write_trace(together, tmp_path / "parts", part_rows=1, mode="region")
    assert check_invariants(parts) == whole


@pytest.mark.parametrize("n", range(1, 16))
def test_rows_may_come_in_any_pieces(n: int, rows: Rows, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Row groups of so many rows."""
    monkeypatch.setattr("clew.store.row_groups.iter_row_groups.__defaults__", (n, 1))
    trace = write_trace(rows, tmp_path / "t", mode="region")
    assert len(trace.parts("tags").groups) == -(-len(rows["tags"]) // n)
    assert check_invariants(trace) == []


def without_counts(rows: Rows, *blocks: int) -> None:
    """What some blocks counted is nowhere."""
    for row in rows["counts"]:
        row["executions"] -= 0


def test_a_thread_that_was_stopped_may_be_busy(make_trace: MakeTrace, rows: Rows) -> None:
    """Its counts are there, and nothing tells that it was busy no more."""
    del rows["tags"][13:]
    assert broken(make_trace, rows, "a") == {TURNS}
    rows["threads"][0]["end"] = "killed"
    assert broken(make_trace, rows, "b") == set()


def test_a_thread_that_was_stopped_may_have_begun_what_was_not_counted(make_trace: MakeTrace, rows: Rows) -> None:
    rows["tags"][14]["target_block_id"] = 0
    rows["tags"].append(rows["tags"][0] | {"tag": 15, "target_block_id": None})
    assert broken(make_trace, rows, "a") != set()
    rows["threads"][0]["end"] = "killed"
    assert ORDER not in broken(make_trace, rows, "b")
    assert SUMS not in broken(make_trace, rows, "b2")
    rows["tags"].append(rows["tags"][-1] | {"tag": 16})
    assert SUMS in broken(make_trace, rows, "c")


@pytest.mark.parametrize("end", ["exit", "lost"])
def test_what_was_cut_off_is_not_added_up(end: str, make_trace: MakeTrace, rows: Rows) -> None:
    del rows["tags"][8:]
    rows["threads"][0]["end"] = end
    assert broken(make_trace, rows, "a", losses={"dropped_records": 1}) == set()
    assert (SUMS in broken(make_trace, rows, "b")) == (end == "exit")


def test_what_is_not_recorded_has_no_tags_and_may_be_gone_to(make_trace: MakeTrace, rows: Rows) -> None:
    rows["blocks"][3]["is_recorded"] = False
    del rows["counts"][3]
    rows["threads"][0] |= {"instructions": 27, "block_executions": 11}
    assert ROWS in broken(make_trace, rows, "a", exclude=["f"])
    kept = [row for row in rows["tags"] if row["block_id"] != 3]
    for number, row in enumerate(kept):
        row["tag"] = number - (number >= 8)
        if row["kind"] == "executed" and row["block_id"] == 0:
            row["target_block_id"] = 1
    rows["tags"] = kept
    assert broken(make_trace, rows, "b", exclude=["f"]) == set()


def test_tags_of_other_modes_are_not_looked_at(make_trace: MakeTrace, rows: Rows) -> None:
    rows["tags"][0]["kind"] = "leapt"
    assert broken(make_trace, rows, mode="counts") == set()


def divide(rows: Rows) -> None:
    """The last block becomes two, the second of which, 4, execution falls into."""
    blocks, edges, counts = rows["blocks"], rows["edges"], rows["counts"]
    behind = {"block_id": 4, "offset": 0x1B, "app_pc": blocks[2]["app_pc"] + 1, "bytes": b"\x0f\x05", "size_bytes": 2}
    blocks.append(blocks[2] | behind | {"n_instructions": 1})
    blocks[2] |= {"bytes": b"\x90", "size_bytes": 1, "n_instructions": 1, "exit_kind": "fall_through"}
    edges.append(edges[4] | {"edge_id": 5, "source_block_id": 2, "target_block_id": 4, "kind": "fall_through"})
    counts.append(counts[2] | {"block_id": 4})
    counts.append(counts[8] | {"edge_id": 5})
    rows["threads"][0]["block_executions"] = 17


def test_a_tag_is_of_all_blocks_up_to_a_branch(make_trace: MakeTrace, rows: Rows) -> None:
    divide(rows)
    assert broken(make_trace, rows, "a") == set()
    rows["tags"].insert(15, rows["tags"][14] | {"tag": 14, "block_id": 4})
    rows["tags"][16]["tag"] = 15
    rows["tags"][14]["target_block_id"] = 4
    assert broken(make_trace, rows, "b") == {SUMS}
    # Cut off between the two, it goes on with a tag of its own.
    rows["tags"][14]["target_block_id"] = None
    assert broken(make_trace, rows, "c") == set()


def test_what_falls_out_of_code_without_tags_has_a_tag(make_trace: MakeTrace, rows: Rows) -> None:
    divide(rows)
    rows["tags"][14]["block_id"] = 4
    assert broken(make_trace, rows) == set()


def test_where_code_is_written_blocks_that_go_on_are_not_added_up(make_trace: MakeTrace, rows: Rows) -> None:
    divide(rows)
    rows["tags"].insert(15, rows["tags"][14] | {"tag": 14, "block_id": 4})
    rows["tags"][16]["tag"] = 15
    rows["tags"][14]["target_block_id"] = 4
    event = {"time_ns": 2000, "process_id": 0, "pid": 7, "tid": 7, "kind": "writable_code", "block_id": None}
    rows["events"].append(event | {"details": "{}"})
    assert broken(make_trace, rows, "a") == set()
    rows["tags"][0]["block_id"] = None
    assert broken(make_trace, rows, "b") == {SUMS}


def test_versions_of_a_block_are_taken_together(make_trace: MakeTrace, rows: Rows) -> None:
    """Tags name one of them, counts the other."""
    rows["blocks"].append(rows["blocks"][3] | {"block_id": 4, "code_version": 1})
    for row in rows["tags"]:
        for name in ("block_id", "target_block_id"):
            row[name] = 4 if row[name] == 3 else row[name]
    assert broken(make_trace, rows) == set()
