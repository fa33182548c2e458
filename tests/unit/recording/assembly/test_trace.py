"""Assembly against the truth: made-up programs, recorded as the runtime records, must come out as they ran."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from clew.analysis.invariants.check import check_invariants
from clew.protocol._generated import Mode
from clew.recording.assembly.trace import assemble
from clew.store.trace import Trace
from tests.unit.recording.made_up_program import BASE, VERSION_SHIFT, Program
from tests.unit.recording.made_up_records import session_info
from tests.unit.recording.simulate import Runtime, Truth, make_runtime

Edge = tuple[int, int, str]
NEEDS_REAL_CODE = "an instruction lies in one block"
"""Made-up code is noise to a disassembler."""
_ADDRESS = (1 << VERSION_SHIFT) - 1


@dataclass
class Expected:
    """The truth, by blocks: how long each is, how often each thread ran each, and took each edge.

    Blocks are named as the program names their first instruction; edges have addresses without versions, and -1 for the
    source of returns.
    """

    size: dict[int, int]
    executions: dict[int, Counter[int]]
    edges: dict[int, Counter[Edge]]


def expect(program: Program, truth: Truth) -> Expected:
    """Basic blocks by their definition, from what ran."""
    executed: Counter[int] = Counter()
    for counter in truth.executed.values():
        executed.update(counter)
    leaders = set(truth.faulted)
    before: defaultdict[int, set[int]] = defaultdict(set)
    for steps in truth.steps.values():
        for (source, target, kind), n in steps.items():
            if n > 0 and kind == "next":
                before[target].add(source)
            elif n > 0:
                leaders.add(target)
                leaders.update([source] if kind in ("signal", "fault") else [])
    for returns in truth.returns.values():
        leaders.update(target for (_, target, _), n in returns.items() if n > 0)
    leaders.update(target for target, sources in before.items() if len(sources) > 1 or not executed[target])

    block_of: dict[int, int] = {}
    size: dict[int, int] = {}
    last: dict[int, int] = {}
    for leader in leaders:
        name = leader
        while executed[leader]:
            block_of[name] = leader
            size[leader] = name + program.history[name].size - leader
            last[leader] = name
            following = name + program.history[name].size
            if program.history[name].kind != "plain" or following in leaders or name not in before[following]:
                break
            name = following

    edges: dict[int, Counter[Edge]] = {}
    for tid, steps in truth.steps.items():
        edges[tid] = Counter()
        for (source, target, kind), n in steps.items():
            if n > 0 and (kind != "next" or target in leaders):
                block = source if kind in ("signal", "fault", "start") else block_of[source]
                edges[tid][block & _ADDRESS, target & _ADDRESS, "fall_through" if kind == "next" else kind] += n
        for (_, target, _), n in truth.returns[tid].items():
            if n > 0:
                edges[tid][-1, target & _ADDRESS, "return"] += n
    executions = {
        tid: Counter({leader: counter[last[leader]] for leader in last if counter[last[leader]]})
        for tid, counter in truth.executed.items()
    }
    return Expected(size, executions, edges)


def check_counts(program: Program, truth: Truth, trace: Trace) -> None:
    """What a trace of mode counts tells is what happened."""
    expected = expect(program, truth)
    names = name_blocks(program, trace, expected)
    edges = {row["edge_id"]: edge_of(row, trace) for row in trace.edges.to_pylist()}
    assert set(trace.counts["edge_id"].to_pylist()) >= edges.keys()
    executions: defaultdict[int, Counter[int]] = defaultdict(Counter)
    taken: defaultdict[int, Counter[Edge]] = defaultdict(Counter)
    for row in trace.counts.to_pylist():
        if row["block_id"] is not None:
            executions[row["tid"]][names[row["block_id"]]] += row["executions"]
        else:
            taken[row["tid"]][edges[row["edge_id"]]] += row["executions"]
    for tid in truth.executed:
        assert executions[tid] == expected.executions[tid]
    for tid in truth.steps:
        # Where a stopped thread had got to it may have come to by a system call, as far as counters tell.
        pending = truth.pending.get(tid)
        settled = [{edge: n for edge, n in counter.items() if edge[1] != pending}
                   for counter in (taken[tid], expected.edges[tid])]  # fmt: skip
        assert settled[0] == settled[1]


def check_instructions(program: Program, truth: Truth, trace: Trace) -> None:
    """Every instruction ran as often as it did, whatever block it is told to be in; edges but the straight line too.

    What can be asked of code that changes: where versions begin can't always be told from what of each was seen.
    """
    rows = {row["block_id"]: row for row in trace.blocks.to_pylist()}
    edges = {row["edge_id"]: edge_of(row, trace) for row in trace.edges.to_pylist()}
    executed: defaultdict[int, Counter[int]] = defaultdict(Counter)
    taken: defaultdict[int, Counter[Edge]] = defaultdict(Counter)
    for row in trace.counts.to_pylist():
        if row["block_id"] is None:
            taken[row["tid"]][edges[row["edge_id"]]] += row["executions"]
            continue
        block = rows[row["block_id"]]
        name = program.find_names(block["app_pc"], block["bytes"])[0]
        end = name + block["size_bytes"]
        while name < end:
            executed[row["tid"]][name] += row["executions"]
            name += program.history[name].size
    edges_of_truth = expect(program, truth).edges
    for tid in truth.executed:
        pending = truth.pending.get(tid)
        short = Counter(truth.executed[tid])
        short.subtract(executed[tid])
        # The block in which a thread was stopped may be missing one execution.
        assert set(short.values()) <= ({0} if pending is None else {0, 1})
        assert add_up(taken[tid], pending) == add_up(edges_of_truth[tid], pending)


def add_up(edges: Counter[Edge], pending: int | None) -> Counter[tuple[int, str]]:
    """Edges by target and kind, but for the straight line and those to `pending`."""
    total: Counter[tuple[int, str]] = Counter()
    for (_, target, kind), n in edges.items():
        total[target, kind] += n if target != pending and kind != "fall_through" else 0
    return +total


def check_coverage(program: Program, truth: Truth, trace: Trace) -> None:
    """What a trace of mode coverage tells is what happened."""
    expected = expect(program, truth)
    names = name_blocks(program, trace, expected)
    # Where a thread was stopped; and in front of what a signal or fault came, if it never ran: whether it did can't be
    # told where it ends in a return or a system call.
    pending = set(truth.pending.values())
    waited = set()
    for tid, steps in truth.steps.items():
        waiting = {name for name, _, kind in steps if kind in ("signal", "fault")}
        waited |= {name & _ADDRESS for name in waiting}
        pending |= {name & _ADDRESS for name in waiting if not truth.executed[tid][name]}
    ran = {name for counter in expected.executions.values() for name in counter}
    found = {names[row["block_id"]] for row in trace.blocks.to_pylist() if row["n_instructions"]}
    assert {name for name in found if name & _ADDRESS not in pending} >= {
        name for name in ran if name & _ADDRESS not in pending
    }
    edges = {edge_of(row, trace) for row in trace.edges.to_pylist()}
    taken = {edge for counter in expected.edges.values() for edge in counter}

    def is_known(edge: Edge) -> bool:
        # A system call that a signal came after, or one that ended the thread, with a signal there for another reason.
        return not pending & set(edge[:2]) and not (edge[2] == "syscall" and edge[1] in waited)

    assert set(filter(is_known, edges)) == set(filter(is_known, taken))


def name_blocks(program: Program, trace: Trace, expected: Expected) -> dict[int, int]:
    """Names of the blocks of a trace, by id, told by their bytes; each that ran has the size it should have."""
    names = {}
    for row in trace.blocks.to_pylist():
        candidates = program.find_names(row["app_pc"], row["bytes"])
        assert candidates, "bytes that the program never had there"
        fitting = [name for name in candidates if expected.size.get(name) == row["size_bytes"]]
        names[row["block_id"]] = (fitting or candidates)[0]
        # Coverage can't tell that a thread was stopped before it ran what it had come to.
        is_known = len(candidates) == 1 and candidates[0] in expected.size and trace.mode != "coverage"
        if row["size_bytes"] and is_known:
            assert fitting, f"block at {row['app_pc']:#x} has another size"
    return names


def edge_of(row: dict[str, Any], trace: Trace) -> Edge:
    blocks = trace.blocks
    source = 0 if row["source_block_id"] is None else blocks["app_pc"][row["source_block_id"]].as_py()
    return -1 if row["kind"] == "return" else source, blocks["app_pc"][row["target_block_id"]].as_py(), row["kind"]


def run(seed: int, directory: Path, **options: Any) -> tuple[Runtime, Trace]:
    """Run and record a made-up program, check what holds for any trace."""
    runtime = make_runtime(seed, **options)
    directory.mkdir(exist_ok=True)
    assemble([runtime.raw_process()], directory, session_info(runtime.mode))
    trace = Trace(directory)
    assert not any(trace.manifest.losses.values())
    assert not [finding for finding in check_invariants(trace) if finding.invariant != NEEDS_REAL_CODE]
    for row in trace.blocks.to_pylist():
        if row["size_bytes"] and row["code_version"] == 0 and not options.get("with_rewriting"):
            offset = row["app_pc"] - BASE
            assert row["bytes"] == bytes(runtime.program.memory[offset : offset + row["size_bytes"]])
    return runtime, trace


@pytest.mark.parametrize("seed", range(30))
def test_single_thread_without_signals(seed: int, tmp_path: Path) -> None:
    runtime, trace = run(seed, tmp_path, with_signals=False, max_threads=1)
    check_counts(runtime.program, runtime.truth, trace)


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 40))
def test_threads_and_signals(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    runtime, trace = run(seed, tmp_path_factory.mktemp("random"))
    check_counts(runtime.program, runtime.truth, trace)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1 << 40))
def test_code_that_changes(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    runtime, trace = run(seed, tmp_path_factory.mktemp("random"), with_rewriting=True, with_signals=False)
    check_instructions(runtime.program, runtime.truth, trace)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1 << 40), with_signals=st.booleans())
def test_threads_that_are_stopped(seed: int, with_signals: bool, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("random")
    runtime, trace = run(seed, directory, with_stops=True, with_signals=with_signals)
    check_counts(runtime.program, runtime.truth, trace)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1 << 40))
@pytest.mark.long
def test_stopped_in_code_that_changes(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    directory = tmp_path_factory.mktemp("random")
    runtime, trace = run(seed, directory, with_stops=True, with_rewriting=True, with_signals=False)
    check_instructions(runtime.program, runtime.truth, trace)
    run(seed, tmp_path_factory.mktemp("seen"), with_stops=True, with_rewriting=True, mode=Mode.COVERAGE)


@settings(max_examples=40, deadline=None)
@given(seed=st.integers(0, 1 << 40))
def test_coverage(seed: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    runtime, trace = run(seed, tmp_path_factory.mktemp("random"), mode=Mode.COVERAGE)
    assert trace.counts.num_rows == 0
    executed = {name & _ADDRESS for counter in runtime.truth.executed.values() for name in counter}
    assume(executed.issuperset(runtime.truth.pending.values()))
    check_coverage(runtime.program, runtime.truth, trace)


@pytest.mark.parametrize("seed", range(10))
def test_callees_of_returns_were_called_from_there(seed: int, tmp_path: Path) -> None:
    _, trace = run(seed, tmp_path)
    edges = trace.edges.to_pylist()
    calls = {(row["source_block_id"], row["target_block_id"]) for row in edges if row["kind"].endswith("call")}
    for row in edges:
        if row["callee_block_id"] is not None:
            assert row["kind"] == "return"
            assert (row["source_block_id"], row["callee_block_id"]) in calls


def test_two_processes_share_no_ids(tmp_path: Path) -> None:
    processes = [make_runtime(seed).raw_process() for seed in (1, 2)]
    object.__setattr__(processes[1], "pid", 5000)
    assemble(processes, tmp_path, session_info())
    trace = Trace(tmp_path)
    assert not [finding for finding in check_invariants(trace) if finding.invariant != NEEDS_REAL_CODE]
    assert set(trace.blocks["pid"].to_pylist()) == {4242, 5000}
    assert set(trace.processes["process_id"].to_pylist()) == set(trace.blocks["process_id"].to_pylist()) == {0, 1}
