"""Assembly against the truth: made-up programs, recorded as the runtime records, must come out as they ran."""

from __future__ import annotations

import random
import sys
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from simulate import BASE, Program, Runtime, Truth, session_info

from clew.recording.assemble import assemble
from clew.store.trace import Trace


@dataclass
class Expected:
    """The truth, by blocks: where each ends, how often each thread ran each, and took each edge."""

    end: dict[int, int]
    executions: dict[int, Counter[int]]
    edges: dict[int, Counter[tuple[int, int, str]]]


def expect(program: Program, truth: Truth) -> Expected:
    """Basic blocks by their definition, from what ran."""
    executed: Counter[int] = Counter()
    for counter in truth.executed.values():
        executed.update(counter)
    leaders: set[int] = set(truth.faulted)
    before: defaultdict[int, set[int]] = defaultdict(set)
    for steps in truth.steps.values():
        for (source, target, kind), n in steps.items():
            if n <= 0:
                continue
            if kind == "next":
                before[target].add(source)
                if not executed[target]:
                    leaders.add(target)
            else:
                leaders.add(target)
            if kind in ("signal", "fault"):
                leaders.add(source)
    for returns in truth.returns.values():
        leaders.update(target for (_, target, _), n in returns.items() if n > 0)
    leaders.update(target for target, sources in before.items() if len(sources) > 1)

    block_of: dict[int, int] = {}
    end: dict[int, int] = {}
    last: dict[int, int] = {}
    for leader in sorted(leaders):
        pc = leader
        if not executed[leader]:
            continue
        while True:
            block_of[pc] = leader
            instruction = program.code[pc]
            follows = truth_goes_on(truth, pc, instruction.end)
            if instruction.kind != "plain" or instruction.end in leaders or not follows:
                break
            pc = instruction.end
        end[leader], last[leader] = program.code[pc].end, pc

    edges: dict[int, Counter[tuple[int, int, str]]] = {}
    for tid, steps in truth.steps.items():
        edges[tid] = Counter()
        for (source, target, kind), n in steps.items():
            if n <= 0 or (kind == "next" and target not in leaders):
                continue
            if kind in ("signal", "fault"):
                block = source
            else:
                block = 0 if kind == "start" else block_of[source]
            edges[tid][block, target, "fall_through" if kind == "next" else kind] += n
        for (_, target, _), n in truth.returns[tid].items():
            if n > 0:
                edges[tid][-1, target, "return"] += n
    executions = {
        tid: Counter({leader: counter[last[leader]] for leader in end if counter[last[leader]]})
        for tid, counter in truth.executed.items()
    }
    return Expected(end, executions, edges)


def truth_goes_on(truth: Truth, pc: int, end: int) -> bool:
    return any(steps[pc, end, "next"] > 0 for steps in truth.steps.values())


def check(program: Program, runtime: Runtime, trace: Trace) -> None:
    expected = expect(program, runtime.truth)
    blocks = trace.blocks.to_pylist()
    by_id = {row["block_id"]: row for row in blocks}
    found_executions: defaultdict[int, Counter[int]] = defaultdict(Counter)
    found_edges: defaultdict[int, Counter[tuple[int, int, str]]] = defaultdict(Counter)
    edges = {row["edge_id"]: row for row in trace.edges.to_pylist()}
    for row in trace.counts.to_pylist():
        if row["block_id"] is not None:
            found_executions[row["tid"]][by_id[row["block_id"]]["app_pc"]] += row["executions"]
            continue
        edge = edges[row["edge_id"]]
        target = by_id[edge["target_block_id"]]["app_pc"]
        source = 0 if edge["source_block_id"] is None else by_id[edge["source_block_id"]]["app_pc"]
        source = -1 if edge["kind"] == "return" else source
        found_edges[row["tid"]][source, target, edge["kind"]] += row["executions"]

    for tid in runtime.truth.executed:
        assert found_executions[tid] == expected.executions[tid]
    for tid in runtime.truth.steps:
        pending = runtime.truth.pending.get(tid)

        def settled(counter: Counter[tuple[int, int, str]], pending: int | None = pending) -> dict[object, int]:
            return {edge: n for edge, n in counter.items() if edge[1] != pending}

        assert settled(found_edges[tid]) == settled(expected.edges[tid])
    for row in blocks:
        pc = row["app_pc"]
        size = row["size_bytes"]
        assert row["bytes"] == bytes(program.memory[pc - BASE : pc - BASE + size])
        if pc in expected.end:
            assert pc + size == expected.end[pc]
            assert row["n_instructions"] == count_instructions(program, pc, pc + size)
    check_callees(trace, by_id, edges)


def check_callees(trace: Trace, by_id: dict[int, dict[str, object]], edges: dict[int, dict[str, object]]) -> None:
    """Every callee that a return edge names was called from where it returns to."""
    calls = {
        (edge["source_block_id"], edge["target_block_id"])
        for edge in edges.values()
        if edge["kind"] in ("call", "indirect_call")
    }
    for edge in edges.values():
        if edge["kind"] == "return" and edge["callee_block_id"] is not None:
            assert (edge["source_block_id"], edge["callee_block_id"]) in calls
    assert all(edge["callee_block_id"] is None for edge in edges.values() if edge["kind"] != "return")


def count_instructions(program: Program, start: int, end: int) -> int:
    n = 0
    while start < end:
        start = program.code[start].end
        n += 1
    return n


def run(seed: int, tmp_path: Path, *, max_steps: int = 1500, with_signals: bool = True, max_threads: int = 3) -> None:
    rng = random.Random(seed)
    program = Program(rng)
    runtime = Runtime(program, rng, max_steps=max_steps, with_signals=with_signals, max_threads=max_threads)
    process = runtime.raw_process()
    directory = tmp_path / f"{seed}.clew"
    directory.mkdir()
    assemble([process], directory, session_info())
    trace = Trace(directory)
    assert trace.manifest.losses["damaged_records"] == 0
    check(program, runtime, trace)


@pytest.mark.parametrize("seed", range(40))
def test_single_thread_without_signals(seed: int, tmp_path: Path) -> None:
    run(seed, tmp_path, with_signals=False, max_threads=1)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 40))
def test_random_programs(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    run(seed, tmp_path_factory.mktemp("random"))


@pytest.mark.parametrize("seed", [257, 901])
def test_seed(seed: int, tmp_path: Path) -> None:
    run(seed, tmp_path)
