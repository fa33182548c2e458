"""`Trace.graph`: nodes and edges of a trace that is small enough to look at."""

from __future__ import annotations

import pytest

from clew.analysis.trace import Trace
from clew.errors import UsageError
from tests.unit.small_trace import MakeTrace, Rows, repeated_trace


def test_a_process(make_trace: MakeTrace, rows: Rows) -> None:
    graph = Trace(make_trace(rows).directory).graph()
    nodes = {row["block_id"]: row for row in graph.nodes.to_pylist()}
    assert {block: row["executions"] for block, row in nodes.items()} == {0: 5, 1: 5, 2: 1, 3: 5}
    assert {block: row["function"] for block, row in nodes.items()} == {0: "main", 1: "main", 2: "main", 3: "f"}
    assert {row["image"] for row in nodes.values()} == {"/bin/it"}
    assert [nodes[block]["exit_kind"] for block in range(4)] == ["call", "conditional", "syscall", "return"]
    # A start comes from nowhere, and is no edge between nodes.
    edges = {
        (row["source_block_id"], row["target_block_id"], row["kind"], row["executions"])
        for row in graph.edges.to_pylist()
    }
    assert edges == {(0, 3, "call", 5), (0, 1, "return", 5), (1, 0, "taken", 4), (1, 2, "not_taken", 1)}


def test_a_function(make_trace: MakeTrace, rows: Rows) -> None:
    trace = Trace(make_trace(rows).directory)
    graph = trace.graph("main")
    assert sorted(graph.nodes["block_id"].to_pylist()) == [0, 1, 2]
    assert sorted(graph.edges["kind"].to_pylist()) == ["not_taken", "return", "taken"]
    with pytest.raises(UsageError, match="no function 'nobody'"):
        trace.graph("nobody")


def test_processes(make_trace: MakeTrace) -> None:
    rows = repeated_trace(3)
    rows["threads"][1]["instructions"] = 1000
    trace = Trace(make_trace(rows).directory)
    assert trace.graph().nodes["block_id"].to_pylist() == trace.graph(process_id=1).nodes["block_id"].to_pylist()
    assert not set(trace.graph().nodes["block_id"].to_pylist()) & set(
        trace.graph(process_id=2).nodes["block_id"].to_pylist()
    )
    with pytest.raises(UsageError, match="no process 9"):
        trace.graph(process_id=9)


def test_networkx(make_trace: MakeTrace, rows: Rows) -> None:
    networkx = pytest.importorskip("networkx")
    graph = Trace(make_trace(rows).directory).graph()
    found = graph.to_networkx()
    assert isinstance(found, networkx.MultiDiGraph)
    assert found.number_of_nodes() == 4
    assert found.number_of_edges() == graph.edges.num_rows
    assert found.nodes[3]["executions"] == 5
    assert found.edges[1, 0, 3]["kind"] == "taken"
