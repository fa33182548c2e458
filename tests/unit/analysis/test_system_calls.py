"""System calls of a trace as calls: as a made up region's tags have them, and as counts have them."""

from __future__ import annotations

from typing import Any

import pytest

from clew.analysis.calls.system_calls import CallPlace, count_system_calls, read_tag_calls
from clew.analysis.graph.graph import ProcessGraph
from tests.unit.small_trace import MakeTrace, Rows


@pytest.mark.parametrize("part_rows", [1, 1000])
def test_tags_of_calls(rows: Rows, make_trace: MakeTrace, part_rows: int) -> None:
    """The block is that of the execution just in front, if no branch lies between it and the call."""
    whose: dict[str, Any] = {"process_id": 0, "pid": 7, "tid": 7, "target_block_id": None, "executions": None}
    ran = {"kind": "executed", "value": None, "time_ns": None}
    call = {"kind": "syscall", "block_id": None}
    told: list[dict[str, Any]] = [
        ran | {"block_id": 2},
        call | {"value": 257, "time_ns": 3000},
        ran | {"block_id": 0},
        call | {"value": 0, "time_ns": 2500},
        call | {"value": 1 << 40, "time_ns": 4000},
        {"kind": "counts", "block_id": 2, "executions": 3, "value": None, "time_ns": None, "tag": 5},
        {"kind": "counts", "block_id": 2, "executions": 1, "value": None, "time_ns": None, "tag": 5},
        {"kind": "left_busy", "block_id": None, "value": None, "time_ns": 4100},
        call | {"value": 12, "time_ns": 4200},
    ]
    rows["tags"] = [whose | {"tag": number} | row for number, row in enumerate(told)]
    graph = ProcessGraph(make_trace(rows, mode="region", part_rows=part_rows), 0)
    found = read_tag_calls(graph)
    assert [found.names[name] for name in found.name.tolist()] == ["read", "openat", "system call -1", "brk"]
    assert found.time_ns.tolist() == [2500, 3000, 4000, 4200]
    assert found.source.tolist() == [3, 1, 4, 8]
    assert [int(graph.block_id[block]) if block >= 0 else None for block in found.block.tolist()] == [
        *(None, 2, None, None)
    ]


def test_places_by_counts(rows: Rows, make_trace: MakeTrace) -> None:
    graph = ProcessGraph(make_trace(rows), 0)
    (caller,) = (block for block in range(4) if graph.block_id[block] == 2)
    assert count_system_calls(graph) == count_system_calls(graph, [7]) == [CallPlace(caller, None, 1)]
    assert count_system_calls(graph, [8]) == []
    rows["blocks"][2] |= {"bytes": b"\xb0\x0f\x05", "size_bytes": 3}
    assert count_system_calls(ProcessGraph(make_trace(rows, "b.clew"), 0)) == [CallPlace(caller, None, 1)]
    rows["counts"] = []
    assert count_system_calls(ProcessGraph(make_trace(rows, "c.clew", mode="coverage"), 0)) == [
        CallPlace(caller, None, None)
    ]
