"""Every difference between a single-stepped run and a recorded trace, one by one.

Runs on the machine that tests. Reads the trace's tables as any user of the format would.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from clew.store.trace import Trace
from tests.oracle.truth import BlockKey, Decoder, EdgeKey, Truth


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
            edge = _edge_key(row, keys)
            edges[edge] += times
            if row["callee_block_id"] is not None:
                callees.setdefault(edge, set()).add(keys[row["callee_block_id"]])
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


def _strip_never_run(edges: dict[EdgeKey, int], blocks: dict[BlockKey, tuple[int, int]]) -> dict[EdgeKey, int]:
    """Of a block that an edge touches but that never ran (it faulted, or waited for ever) only the address counts."""

    def strip(key: BlockKey) -> BlockKey:
        return key if key in blocks else BlockKey(key.pc, b"")

    stripped: Counter[EdgeKey] = Counter()
    for key, times in edges.items():
        source = None if key.source is None else strip(key.source)
        stripped[EdgeKey(source, strip(key.target), key.kind)] += times
    return dict(stripped)


def _normal_edges(edges: dict[EdgeKey, int], blocks: dict[BlockKey, tuple[int, int]]) -> dict[EdgeKey, int]:
    return _fold_conditional(_strip_never_run(edges, blocks))


def _name(key: object) -> str:
    match key:
        case int():
            return f"{key:#x}"
        case (int(source), int(target)):
            return f"{source:#x} -> {target:#x}"
        case _:
            return str(key)


def _compare(what: str, truth: dict[Any, Any], recorded: dict[Any, Any]) -> Iterator[str]:
    for key in sorted(truth.keys() | recorded.keys(), key=_name):
        expected, found = truth.get(key), recorded.get(key)
        if expected != found:
            yield f"{what} {_name(key)}: stepped {expected}, recorded {found}"


def find_differences(truth: Truth, trace: Trace) -> list[str]:
    """One line for each block and edge that differs, and for the total of instructions. Empty: all is exact."""
    tables = read_tables(trace)
    differences = list(_compare("block (times, instructions)", truth.blocks, tables.blocks))
    differences += _compare(
        "edge", _normal_edges(truth.edges, truth.blocks), _normal_edges(tables.edges, tables.blocks)
    )
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


def find_instruction_differences(truth: Truth, trace: Trace) -> list[str]:
    """The same for code that changes: executions of each instruction, and of each branch, whatever blocks they lie in.

    Which bytes around an instruction are one version with it cannot be seen by stepping; how often it ran can.
    """
    tables = read_tables(trace)
    decoder = Decoder()
    instructions: Counter[BlockKey] = Counter()
    last_pc: dict[BlockKey, int] = {}
    for block, (times, _) in tables.blocks.items():
        at = 0
        while at < len(block.code):
            found = decoder.decode(block.pc + at, block.code[at:])
            instructions[BlockKey(found.pc, found.code)] += times
            last_pc[block] = found.pc
            at += max(len(found.code), 1)
    branches: Counter[tuple[int, int]] = Counter()
    returned: Counter[int] = Counter()
    for edge, times in tables.edges.items():
        if edge.kind == "return":
            returned[edge.target.pc] += times
        elif edge.source is not None and edge.kind != "fall_through":
            branches[last_pc.get(edge.source, edge.source.pc), edge.target.pc] += times
    flows = truth.branch_counts
    stepped_returns: Counter[int] = Counter()
    for (source, target), times in list(flows.items()):
        if (source, target) not in branches and target in returned:
            stepped_returns[target] += times
            del flows[source, target]
    differences = list(_compare("instruction", truth.instruction_counts, dict(instructions)))
    differences += _compare("branch", flows, dict(branches))
    differences += _compare("returns to", dict(stepped_returns), dict(returned))
    return differences
