"""Every difference between a single-stepped run and a recorded trace, one by one.

Runs on the machine that tests. Reads the trace's tables as any user of the format would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from clew.store.trace import Trace
from tests.oracle.truth import BlockKey, EdgeKey, Truth


@dataclass(frozen=True)
class Tables:
    """A trace's blocks and edges with their executions over all threads, those never executed left out."""

    blocks: dict[BlockKey, tuple[int, int]]
    edges: dict[EdgeKey, int]
    callees: dict[EdgeKey, set[BlockKey]]


def read_tables(trace: Trace) -> Tables:
    """Add up the tables of a trace made in mode counts."""
    executions: Counter[tuple[str, int]] = Counter()
    for row in trace.counts.to_pylist():
        column = "block_id" if row["block_id"] is not None else "edge_id"
        executions[column, row[column]] += row["executions"]
    keys: dict[int, BlockKey] = {}
    blocks: dict[BlockKey, tuple[int, int]] = {}
    for row in trace.blocks.to_pylist():
        key = keys[row["block_id"]] = BlockKey(row["app_pc"], row["bytes"])
        times = executions["block_id", row["block_id"]]
        if times:
            before, _ = blocks.get(key, (0, 0))
            blocks[key] = (before + times, row["n_instructions"])
    edges: Counter[EdgeKey] = Counter()
    callees: dict[EdgeKey, set[BlockKey]] = {}
    for row in trace.edges.to_pylist():
        times = executions["edge_id", row["edge_id"]]
        if times:
            key = _edge_key(row, keys)
            edges[key] += times
            if row["callee_block_id"] is not None:
                callees.setdefault(key, set()).add(keys[row["callee_block_id"]])
    return Tables(blocks, dict(edges), callees)


def _edge_key(row: dict[str, Any], keys: dict[int, BlockKey]) -> EdgeKey:
    source = None if row["source_block_id"] is None else keys[row["source_block_id"]]
    return EdgeKey(source, keys[row["target_block_id"]], row["kind"])


def _fold_conditional(edges: dict[EdgeKey, int]) -> dict[EdgeKey, int]:
    """A conditional branch to the instruction that follows it: by the address alone, taken and not taken are one."""
    folded: Counter[EdgeKey] = Counter()
    for key, times in edges.items():
        source = key.source
        if key.kind == "taken" and source is not None and source.pc + len(source.code) == key.target.pc:
            key = replace(key, kind="not_taken")
        folded[key] += times
    return dict(folded)


def _compare(what: str, truth: dict[Any, Any], recorded: dict[Any, Any]) -> Iterator[str]:
    for key in sorted(truth.keys() | recorded.keys(), key=str):
        expected, found = truth.get(key), recorded.get(key)
        if expected != found:
            yield f"{what} {key}: stepped {expected}, recorded {found}"


def find_differences(truth: Truth, trace: Trace) -> list[str]:
    """One line for each block and edge that differs, and for the total of instructions. Empty: all is exact."""
    tables = read_tables(trace)
    differences = list(_compare("block (times, instructions)", truth.blocks, tables.blocks))
    differences += _compare("edge", _fold_conditional(truth.edges), _fold_conditional(tables.edges))
    recorded_total = sum(times * instructions for times, instructions in tables.blocks.values())
    if recorded_total != truth.total_instructions:
        differences.append(f"instructions: stepped {truth.total_instructions}, recorded {recorded_total}")
    differences += _compare_callees(truth, tables)
    return differences


def _compare_callees(truth: Truth, tables: Tables) -> Iterator[str]:
    """The callee of a return must be a block that its call was seen to go to."""
    called: dict[BlockKey, set[BlockKey]] = {}
    for key in truth.edges:
        if key.source is not None and key.kind in ("call", "indirect_call"):
            called.setdefault(key.source, set()).add(key.target)
    for key, callees in sorted(tables.callees.items(), key=str):
        if key.kind != "return":
            yield f"edge {key}: has a callee, but is no return"
        elif key.source is not None and not callees <= called.get(key.source, set()):
            yield f"edge {key}: callee {', '.join(map(str, callees))} was not called there"
