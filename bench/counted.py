"""What was counted in a run, in each unit a peer counts in: it tells which peers did the same work as clew.

Reads a trace's tables. Knows no peer.
"""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

INSTRUCTIONS = "instructions"
BLOCKS = "block executions"
CALLS = "calls"

# By unit. A tool has one or none of them, a trace all.
Counted = dict[str, int]


def read_trace_counted(trace: Path) -> Counted:
    """Of all threads and processes of a trace of mode counts. OSError without one."""
    threads = pq.read_table(trace / "threads", columns=["instructions", "block_executions"])
    calls = pq.read_table(trace / "edges", columns=["edge_id"], filters=[("kind", "in", ["call", "indirect_call"])])
    counts = pq.read_table(trace / "counts", columns=["edge_id", "executions"])
    called = counts.filter(pc.is_in(counts["edge_id"], value_set=calls["edge_id"]))
    return {
        INSTRUCTIONS: _add_up(threads["instructions"]),
        BLOCKS: _add_up(threads["block_executions"]),
        CALLS: _add_up(called["executions"]),
    }


def _add_up(column: object) -> int:
    return int(pc.sum(column).as_py() or 0)


def read_target_seconds(trace: Path) -> float:
    """CPU seconds of the recorded program, as the trace's manifest has them. OSError, ValueError."""
    return float(json.loads((trace / "manifest.json").read_text())["cpu"]["target_seconds"])
