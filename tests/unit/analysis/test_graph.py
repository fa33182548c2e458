"""The graph of a process against its tables: every number is found again with plain SQL and plain Python."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from clew.analysis.graph.graph import ProcessGraph
from clew.analysis.trace import Trace
from clew.errors import UsageError
from clew.protocol.words import EDGE_WORDS, EXIT_WORDS
from tests.web.made_up_trace import MadeUpTrace, write_made_up_trace

NAMES = ("main", "second", "third", "helper@plt")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> MadeUpTrace:
    """A trace of four threads."""
    return write_made_up_trace(tmp_path_factory.mktemp("graph") / "t.clew", 2500, n_threads=4, names=NAMES)


@pytest.fixture(scope="module")
def graph(made: MadeUpTrace) -> ProcessGraph:
    return ProcessGraph(Trace(made.directory), 0)


def _query(made: MadeUpTrace, text: str) -> list[tuple[Any, ...]]:
    """Rows of a query of the trace's tables."""
    tables = {
        name: f"read_parquet('{made.directory}/{name}/*.parquet')" for name in ("blocks", "edges", "counts", "images")
    }
    return duckdb.execute(text.format(**tables)).fetchall()


def test_functions_follow_one_another_as_they_were_discovered(made: MadeUpTrace, graph: ProcessGraph) -> None:
    rows = _query(
        made, "SELECT image_id, function_offset, min(first_ns) n, count(*) FROM {blocks} GROUP BY ALL ORDER BY n"
    )
    assert len(rows) == graph.n_functions == made.n_functions
    assert list(zip(graph.image.tolist(), graph.offset.tolist(), strict=True)) == [row[:2] for row in rows]
    assert graph.discovered_ns.tolist() == [row[2] for row in rows]
    sizes = [after - before for before, after in zip(graph.first_block[:-1], graph.first_block[1:], strict=True)]
    assert sizes == [row[3] for row in rows]


def test_blocks_of_a_function_follow_one_another_by_address(made: MadeUpTrace, graph: ProcessGraph) -> None:
    assert sorted(graph.block_id.tolist()) == list(range(made.n_blocks))
    for function in range(graph.n_functions):
        blocks = slice(int(graph.first_block[function]), int(graph.first_block[function + 1]))
        assert set(graph.function[blocks].tolist()) == {function}
        addresses = graph.app_pc[blocks].tolist()
        assert addresses == sorted(set(addresses))
        assert graph.app_pc[graph.entry_block[function]] == addresses[0]


def test_blocks_and_edges_are_those_of_the_tables(made: MadeUpTrace, graph: ProcessGraph) -> None:
    rows = {row[0]: row[1:] for row in _query(made, "SELECT block_id, app_pc, n_instructions, exit_kind FROM {blocks}")}
    exits = EXIT_WORDS
    found = zip(graph.app_pc.tolist(), graph.n_instructions.tolist(), graph.exit_kind.tolist(), strict=True)
    for block_id, (address, n_instructions, exit_kind) in zip(graph.block_id.tolist(), found, strict=True):
        assert rows[block_id] == (address, n_instructions, exits[exit_kind])
    ids = [*graph.block_id.tolist(), None]
    edges = zip(*(column.tolist() for column in (graph.edge_id, graph.source, graph.target, graph.kind)), strict=True)
    named = {edge: (ids[source], ids[target], EDGE_WORDS[kind]) for edge, source, target, kind in edges}
    expected = _query(made, "SELECT edge_id, source_block_id, target_block_id, kind FROM {edges}")
    assert named == {row[0]: row[1:] for row in expected}


def test_counts_of_each_thread_add_up_to_those_of_all(made: MadeUpTrace, graph: ProcessGraph) -> None:
    everything = graph.count()
    parts = [graph.count([thread]) for thread in made.threads]
    assert np.array_equal(np.sum([part.blocks for part in parts], axis=0), everything.blocks)
    assert np.array_equal(np.sum([part.edges for part in parts], axis=0), everything.edges)
    for thread, part in enumerate(parts):
        assert part.blocks.tolist() == made.executions[thread][graph.block_id].tolist()
    both = graph.count(made.threads[1:3])
    assert (both.blocks == parts[1].blocks + parts[2].blocks).all()
    assert not graph.count([]).blocks.any() and not graph.count([12345]).edges.any()


def test_sums_of_functions_are_those_of_sql(made: MadeUpTrace, graph: ProcessGraph) -> None:
    text = (
        "SELECT image_id, function_offset, sum(executions * n_instructions)::BIGINT"
        " FROM {counts} JOIN {blocks} USING (block_id) GROUP BY ALL"
    )
    expected = {row[:2]: row[2] for row in _query(made, text)}
    found = graph.sum_functions(graph.count()).tolist()
    places = zip(graph.image.tolist(), graph.offset.tolist(), strict=True)
    assert dict(zip(places, found, strict=True)) == expected


def test_functions_are_entered_as_often_as_they_are_called(made: MadeUpTrace, graph: ProcessGraph) -> None:
    """In made up programs calls and starts alone lead to where functions begin."""
    text = (
        "SELECT b.app_pc, sum(executions)::BIGINT FROM {edges} e JOIN {blocks} b ON target_block_id = b.block_id"
        " JOIN {counts} c ON c.edge_id = e.edge_id WHERE kind IN ('call', 'start') GROUP BY ALL"
    )
    entries = graph.count_entries(graph.count()).tolist()
    addresses = graph.app_pc[graph.entry_block].tolist()
    assert dict(zip(addresses, entries, strict=True)) == dict(_query(made, text))


def test_links_join_functions_as_their_edges_do(made: MadeUpTrace, graph: ProcessGraph) -> None:
    counts = graph.count()
    expected: Counter[tuple[int, int, bool]] = Counter()
    for source, target, kind, times in zip(
        graph.source.tolist(), graph.target.tolist(), graph.kind.tolist(), counts.edges.tolist(), strict=True
    ):
        word = EDGE_WORDS[kind]
        if source < 0 or word == "return":
            continue
        pair = int(graph.function[source]), int(graph.function[target])
        if pair[0] != pair[1] or word == "call":
            expected[(*pair, word == "call")] += times
    source, target, is_call, _ = graph.links
    keys = zip(source.tolist(), target.tolist(), is_call.tolist(), strict=True)
    assert dict(zip(keys, graph.sum_links(counts).tolist(), strict=True)) == dict(expected)


def test_callers_were_known_before_and_are_one_call_less_deep(made: MadeUpTrace, graph: ProcessGraph) -> None:
    callers, depth = graph.caller.tolist(), graph.depth.tolist()
    called = {
        (int(graph.function[source]), int(graph.function[target]))
        for source, target in zip(graph.source.tolist(), graph.target.tolist(), strict=True)
        if source >= 0
    }
    roots = [function for function, caller in enumerate(callers) if caller < 0]
    assert roots == list(range(len(made.threads))), "where threads begin, and nowhere else"
    for function, caller in enumerate(callers):
        assert caller < function
        if caller < 0:
            assert depth[function] == 0
        else:
            assert (caller, function) in called
            assert depth[function] == depth[caller] + 1


def test_owners_are_the_threads_that_executed_most(made: MadeUpTrace, graph: ProcessGraph) -> None:
    for block, owner in enumerate(graph.find_owners().tolist()):
        executions = made.executions[:, graph.block_id[block]].tolist()
        most = max(executions)
        if most * 10 < sum(executions) * 9:
            assert owner == -2
        else:
            assert executions[owner] == most > 0


def test_each_threads_functions_are_those_of_its_counts(made: MadeUpTrace, graph: ProcessGraph) -> None:
    found = zip(*(column.tolist() for column in graph.sum_thread_functions()), strict=True)
    expected = {}
    for index, thread in enumerate(made.threads):
        for function, instructions in enumerate(graph.sum_functions(graph.count([thread])).tolist()):
            if instructions:
                expected[index, function] = instructions
    assert {(thread, function): instructions for thread, function, instructions in found} == expected


def test_names_are_those_of_symbols(graph: ProcessGraph) -> None:
    assert tuple(graph.names[: len(NAMES)]) == NAMES
    assert graph.is_stub.tolist()[: len(NAMES) + 1] == [False, False, False, True, False]
    assert graph.names[16] == f"sub_{int(graph.offset[16]):x}"


def test_a_process_that_is_not_there_is_named(made: MadeUpTrace) -> None:
    with pytest.raises(UsageError, match="no process 3"):
        ProcessGraph(Trace(made.directory), 3)


@settings(deadline=None, max_examples=25)
@given(st.integers(150, 900), st.integers(1, 5), st.integers(0, 2**32))
def test_graphs_of_any_program_are_sound(
    tmp_path_factory: pytest.TempPathFactory, n_blocks: int, n_threads: int, seed: int
) -> None:
    directory: Path = tmp_path_factory.mktemp("any") / "t.clew"
    try:
        made = write_made_up_trace(directory, n_blocks, n_threads=n_threads, seed=seed)
    except ValueError:
        # Few long functions, as chance had it: too few for the threads.
        reject()
    graph = ProcessGraph(Trace(directory), 0)
    assert (graph.n_blocks, graph.n_functions, graph.n_edges) == (made.n_blocks, made.n_functions, made.n_edges)
    counts = graph.count()
    assert counts.blocks.tolist() == made.executions.sum(axis=0)[graph.block_id].tolist()
    assert int(graph.sum_functions(counts).sum()) == int((counts.blocks * graph.n_instructions).sum())
    assert (graph.caller < range(graph.n_functions)).all()
    assert int(graph.count_entries(counts)[: len(made.threads)].sum()) == n_threads
