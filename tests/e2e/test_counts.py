"""What counts say of programs whose numbers are known: loops, calls, threads; and that modes and filters agree."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tests.e2e import runs
from tests.programs.build import find

pytestmark = pytest.mark.usefixtures("programs")


def executions_by_symbol(recorded: runs.Recorded) -> Counter[str]:
    """Executions of the blocks that start where a symbol does."""
    found: Counter[str] = Counter()
    rows = recorded.trace.blocks.select(["symbol", "symbol_offset"]).to_pylist()
    for row, times in zip(rows, recorded.arrays.block_executions.tolist(), strict=True):
        if row["symbol"] is not None and row["symbol_offset"] == 0:
            found[row["symbol"]] += times
    return found


def record(name: str, folder: Path, *options: str, trace: str = "trace.clew") -> runs.Recorded:
    path = folder / trace
    run = runs.record([find(name).path], path, *options, fixed_layout=True)
    assert run.status == find(name).status
    return runs.read(path)


def test_every_loop_of_nested_loops(tmp_path: Path) -> None:
    found = executions_by_symbol(record("nested_loops", tmp_path))
    loops = {symbol: times for symbol, times in found.items() if symbol.startswith("loop_")}
    assert loops == {f"loop_{times}": times for times in (3, 21, 231, 23331)}


def test_loops_of_one_block_beyond_65536_turns(tmp_path: Path) -> None:
    found = executions_by_symbol(record("long_loop", tmp_path))
    assert {symbol: times for symbol, times in found.items() if symbol.startswith("loop_")} == {
        "loop_carry_70001": 70001,
        "loop_full_66000": 66000,
        "loop_memory_131073": 131073,
        "loop_itself_65537": 65537,
    }


def test_repeated_string_instruction_in_a_loop(tmp_path: Path) -> None:
    assert executions_by_symbol(record("string_instructions", tmp_path))["loop_9"] == 9


def test_calls_and_returns_of_a_recursion(tmp_path: Path) -> None:
    recorded = record("recursion", tmp_path)
    # fib(14) makes 2 * 610 - 1 calls in all; the two functions that call each other share 302.
    found = executions_by_symbol(recorded)
    assert found["fib"] == 1219
    assert found["is_even"] + found["is_odd"] == 302
    assert found["depth"] == 3001


def test_threads_are_counted_apart(tmp_path: Path) -> None:
    recorded = record("threads_mutex", tmp_path)
    threads = recorded.summary["processes"][0]["threads"]
    assert len(threads) == 5
    assert len({thread["tid"] for thread in threads}) == 5
    assert {thread["end"] for thread in threads} == {"exit"}
    assert all(thread["instructions"] > 20_000 for thread in threads[1:])
    assert sum(thread["instructions"] for thread in threads) == recorded.totals["instructions"]
    assert sum(thread["block_executions"] for thread in threads) == recorded.totals["block_executions"]


def test_many_short_threads_are_all_kept(tmp_path: Path) -> None:
    recorded = record("thread_churn", tmp_path)
    threads = recorded.summary["processes"][0]["threads"]
    assert len(threads) == 241
    assert executions_by_symbol(recorded)["work"] == 240


def test_every_abort_of_a_restartable_sequence_is_an_edge(tmp_path: Path) -> None:
    recorded = record("rseq_abort", tmp_path)
    arrays, symbols = recorded.arrays, recorded.trace.blocks["symbol"].to_pylist()
    aborts = 0
    for edge in np.flatnonzero(arrays.is_kind("signal")).tolist():
        ends = {symbols[arrays.edge_source[edge]], symbols[arrays.edge_target[edge]]}
        aborts += int(arrays.edge_executions[edge]) if ends == {"spin"} else 0
    # Nothing else ends what a call of it does.
    assert aborts == executions_by_symbol(recorded)["spin"] >= 80


def keys(recorded: runs.Recorded) -> tuple[set[tuple[int, bytes]], set[tuple[int | None, int, str]]]:
    """Blocks and edges of a trace, by address."""
    blocks = recorded.trace.blocks.to_pylist()
    pcs = {row["block_id"]: row["app_pc"] for row in blocks}
    edges = recorded.trace.edges.to_pylist()
    return (
        {(row["app_pc"], row["bytes"]) for row in blocks},
        {(pcs.get(row["source_block_id"]), pcs[row["target_block_id"]], row["kind"]) for row in edges},
    )


@pytest.mark.parametrize("name", ["calls", "exceptions", "switch_table", "overlapping", "signal_return", "code_made"])
def test_coverage_sees_the_blocks_and_edges_of_counts(name: str, tmp_path: Path) -> None:
    counts_blocks, counts_edges = keys(record(name, tmp_path, trace="counts.clew"))
    coverage_blocks, coverage_edges = keys(record(name, tmp_path, "--mode", "coverage", trace="coverage.clew"))
    assert coverage_blocks == counts_blocks
    # Coverage does not follow which return came from which call: those edges are told apart by counting alone.
    assert {edge for edge in counts_edges if edge[2] != "return"} == {e for e in coverage_edges if e[2] != "return"}


@pytest.mark.parametrize("mode", ["counts", "coverage"])
def test_each_version_of_a_target_has_its_own_edges(mode: str, tmp_path: Path) -> None:
    trace = record("versions_of_targets", tmp_path, "--mode", mode).trace
    blocks = {row["block_id"]: row for row in trace.blocks.to_pylist()}
    found: dict[int, set[bytes]] = {}
    for row in trace.edges.to_pylist():
        target = blocks[row["target_block_id"]]
        if row["kind"] == "indirect_call" and target["image_id"] is None:
            found.setdefault(blocks[row["source_block_id"]]["app_pc"], set()).add(target["bytes"])
    # Two sites; five targets, each of which was rewritten once and called again.
    values = {10, 20, 30, 40, 50, 1000, 2000, 3000, 4000, 5000}
    assert len(found) == 2
    for codes in found.values():
        assert {int.from_bytes(code[1:5], "little") for code in codes} == values


def instructions_by_image(recorded: runs.Recorded) -> dict[str, int]:
    images = recorded.summary["processes"][0]["images"]
    return {Path(image["path"]).name: image["instructions"] for image in images if image["instructions"]}


def test_include_and_exclude_change_nothing_but_what_is_kept(tmp_path: Path) -> None:
    whole = instructions_by_image(record("calls", tmp_path, trace="whole.clew"))
    without_libc = instructions_by_image(record("calls", tmp_path, "--exclude", "libc.so*", trace="exclude.clew"))
    only_program = instructions_by_image(record("calls", tmp_path, "--include", "calls", trace="include.clew"))
    assert set(whole) >= {"calls", "libc.so.6", "ld-linux-x86-64.so.2"}
    assert without_libc == {name: count for name, count in whole.items() if name != "libc.so.6"}
    assert only_program == {"calls": whole["calls"]}


def test_exceptions_pass_through_code_that_is_not_kept(tmp_path: Path) -> None:
    native = runs.run([find("callback_throw").path])
    options = ("--exclude", "libc.so*", "--exclude", "libstdc++*", "--exclude", "libgcc_s*")
    assert runs.record([find("callback_throw").path], tmp_path / "trace.clew", *options) == native
    assert set(instructions_by_image(runs.read(tmp_path / "trace.clew"))) >= {"callback_throw"}


def test_two_recordings_count_the_same(tmp_path: Path) -> None:
    first = record("virtual_calls", tmp_path, trace="first.clew")
    second = record("virtual_calls", tmp_path, trace="second.clew")
    assert first.totals == second.totals
    assert keys(first) == keys(second)


@pytest.mark.parametrize("mode", ["counts", "full"])
def test_code_that_the_process_can_not_look_up(mode: str, tmp_path: Path) -> None:
    recorded = record("code_not_listed", tmp_path, "--mode", mode)
    # Two instructions in shared memory, a thousand times in each of three processes.
    blocks = recorded.trace.blocks.select(["symbol", "n_instructions"]).to_pylist()
    times = recorded.arrays.block_executions.tolist()
    alone = [n for row, n in zip(blocks, times, strict=True) if row["symbol"] is None and row["n_instructions"] == 2]
    assert [n for n in alone if n >= 1000] == [1000, 1000, 1000]
