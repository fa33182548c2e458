"""Mode auto: what is in the order is the sequence of single-stepping, and what is left out is counted."""

from __future__ import annotations

import itertools
import json
import subprocess
from pathlib import Path

import numpy as np
import pytest

import clew
from clew.analysis.invariants.check import check_invariants
from clew.analysis.replay.thread_times import read_path_times
from clew.protocol._generated import GapReason, PathEventKind
from clew.store.columns import Array, to_numpy
from tests.e2e import runs
from tests.e2e.controlled import controlled
from tests.oracle.steps import SteppedOnce
from tests.oracle.test_paths import stepped_instructions
from tests.oracle.truth import Decoder, Truth
from tests.programs.build import BIN, build_one, find

PROGRAM = BIN / "branches_random.static"
SHORT, LONG = "2000", "60000"
"""So many turns in each phase: the many make more order than is kept for a second."""


def ordered_pieces(trace: clew.Trace) -> list[tuple[int, list[tuple[int, bytes]]]]:
    """Each piece of the order: the number of its first instruction, and address and bytes of what ran."""
    decoder = Decoder()
    blocks: dict[int, list[tuple[int, bytes]]] = {}
    for row in trace.blocks.select(["block_id", "app_pc", "bytes"]).to_pylist():
        listed = blocks[row["block_id"]] = []
        at = 0
        while at < len(row["bytes"]):
            code = decoder.decode(row["app_pc"] + at, row["bytes"][at:]).code
            listed.append((row["app_pc"] + at, code))
            at += max(len(code), 1)
    return [
        (piece.place.instruction, [entry for block in piece.block_ids.tolist() for entry in blocks[block]])
        for piece in trace.path().iter_pieces()
    ]


def executed_blocks(trace: clew.Trace) -> Array:
    """By id of a block: address and size. Ids of two recordings may differ."""
    rows = trace.blocks
    ids = to_numpy(rows["block_id"])
    table: Array = np.zeros((int(ids.max()) + 1, 2), np.uint64)
    table[ids, 0], table[ids, 1] = to_numpy(rows["app_pc"]), to_numpy(rows["size_bytes"])
    return table


@pytest.fixture(scope="module")
def thinned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A long run of which the order was recorded in part."""
    build_one(find(PROGRAM.name))
    path = tmp_path_factory.mktemp("auto") / "thinned.clew"
    assert runs.record([PROGRAM, LONG], path, "--mode", "auto", "--budget", "0.02", fixed_layout=True).status == 0
    return path


@pytest.fixture(scope="module")
def stepped(step_once: SteppedOnce) -> tuple[runs.Run, list[tuple[int, bytes]]]:
    """A short run: what it printed, and its instructions, address and bytes."""
    build_one(find(PROGRAM.name))
    printed, steps = step_once([PROGRAM, "200"])
    return printed, list(stepped_instructions(Truth(steps)))


@pytest.mark.timeout(600)
@pytest.mark.parametrize("budget", ["0", "1000000"])
def test_what_is_told_is_what_was_stepped(
    stepped: tuple[runs.Run, list[tuple[int, bytes]]], tmp_path: Path, budget: str
) -> None:
    printed, expected = stepped
    path = tmp_path / "out.clew"
    assert runs.record([PROGRAM, "200"], path, "--mode", "auto", "--budget", budget, fixed_layout=True) == printed
    assert runs.read(path).totals["instructions"] == len(expected), "totals are exact, whatever is left out"
    n_told = 0
    for first, instructions in ordered_pieces(clew.Trace(path)):
        n_told += len(instructions)
        assert instructions == expected[first : first + len(instructions)], f"from instruction {first:,} on"
    assert n_told == (len(expected) if budget != "0" else 0)


def test_what_is_told_lies_in_its_place(thinned: Path, tmp_path: Path) -> None:
    """Against mode full, which is single-stepping's: each piece is what was executed there."""
    full = tmp_path / "full.clew"
    assert runs.record([PROGRAM, LONG], full, "--mode", "full", fixed_layout=True).status == 0
    runs.read(thinned)
    all_of_it, trace = clew.Trace(full), clew.Trace(thinned)
    expected = executed_blocks(all_of_it)[np.concatenate([piece.block_ids for piece in all_of_it.path().iter_pieces()])]
    blocks, known = executed_blocks(trace), 0
    for piece in trace.path().iter_pieces():
        found, first = blocks[piece.block_ids], piece.place.execution
        assert np.array_equal(found, expected[first : first + len(found)]), f"from execution {first:,} on"
        known += len(found)
    assert known < len(expected) / 2
    gaps = read_path_times(trace.path(), 0, 1 << 62).gaps
    assert set(gaps["reason"].tolist()) == {GapReason.THINNED}
    assert int(gaps["executions"].sum()) == len(expected) - known == trace.path().block_executions - known
    told = set(np.concatenate([np.unique(piece.block_ids) for piece in trace.path().iter_pieces()]).tolist())
    names = {row["symbol"] for row in trace.blocks.to_pylist() if row["block_id"] in told}
    assert {"new_0", "new_1", "new_2", "new_3"} <= names, "what is new is told first"


def test_info_tells_how_much_is_in_the_order(thinned: Path) -> None:
    trace = clew.Trace(thinned)
    sizes = {row["block_id"]: row["n_instructions"] for row in trace.blocks.to_pylist()}
    told = [sum(sizes[block] for block in piece.block_ids.tolist()) for piece in trace.path().iter_pieces()]
    run = runs.run(runs.clew_command("info", "--json", thinned))
    order = json.loads(run.stdout)["order"]
    assert (order["instructions"], order["all_instructions"]) == (sum(told), trace.path().instructions)
    assert (order["left_out"], order["lost"]) == (len(read_path_times(trace.path(), 0, 1 << 62).gaps), 0)
    line = next(
        line for line in runs.run(runs.clew_command("info", thinned)).stdout.decode().splitlines() if "order " in line
    )
    assert line.endswith(f"% of the instructions, the rest left out in {order['left_out']} places")


def test_what_is_told_by_turns_lies_in_its_place(tmp_path: Path) -> None:
    """Each piece is what was executed there, wherever another mode was chosen."""
    build_one(find(PROGRAM.name))
    full, turns = tmp_path / "full.clew", tmp_path / "turns.clew"
    assert runs.record([PROGRAM, SHORT], full, "--mode", "full", fixed_layout=True).status == 0
    with controlled(PROGRAM, turns, "--pause", "60", arguments=[SHORT], fixed_layout=True) as target:
        for number in range(4):
            target.do("break", place=f"new_{number}")
        target.do("continue")
        # Where it stands, and wherever it was stepped to: at the start of a block, or in the middle.
        for at_once, stepped in [("full", "counts"), ("auto", "full"), ("counts", "auto"), ("full", "counts")]:
            target.wait_for_stop("breakpoint")
            target.do("mode", mode=at_once)
            for _ in range(30):
                target.do("step")
            target.do("mode", mode=stepped)
            target.do("continue")
        assert target.finish()[::2] == (0, "")
    runs.read(turns)
    assert runs.counts_by_place(turns) == runs.counts_by_place(full)
    whole, trace = clew.Trace(full), clew.Trace(turns)
    expected = list(itertools.chain.from_iterable(piece for _, piece in ordered_pieces(whole)))
    told: list[int] = []
    end = 0
    for first, instructions in ordered_pieces(trace):
        told += [first] if first != end or not told else []
        end = first + len(instructions)
        assert instructions == expected[first : first + len(instructions)], f"from instruction {first:,} on"
    assert len(told) == 3, "behind the first, the second and the third stop"


def test_counts_are_those_of_counts(thinned: Path, tmp_path: Path) -> None:
    path = tmp_path / "counts.clew"
    assert runs.record([PROGRAM, LONG], path, "--mode", "counts", fixed_layout=True).status == 0
    assert runs.counts_by_place(path) == runs.counts_by_place(thinned)


def python_that_repeats() -> list[str]:
    script = "import json\nfor i in range(100000): json.loads(json.dumps({'a': [i, str(i)], 'b': {'c': i % 7}}))"
    return ["/usr/bin/python3", "-c", script]


def compiler_pass(folder: Path, n_functions: int = 600) -> list[str]:
    """gcc's own compiler on a source with many functions."""
    source = folder / "many.c"
    body = "for (int i = 0; i < x; i++) x += i % 3 ? x * 7 : x >> 1;"
    source.write_text("".join(f"int f{n}(int x) {{ {body} return x; }}\n" for n in range(n_functions)))
    found = subprocess.run(["gcc", "-print-prog-name=cc1"], stdout=subprocess.PIPE, check=True, text=True)
    return [found.stdout.strip(), "-quiet", "-O2", "-o", "/dev/null", str(source)]


@pytest.mark.parametrize("program", ["python3", pytest.param("cc1", marks=pytest.mark.stress)])
@pytest.mark.long
def test_no_more_is_recorded_than_the_budget_allows(tmp_path: Path, program: str) -> None:
    """Over the whole run, but for what there is at first, and what a stretch and the last checkpoint may owe."""
    path = tmp_path / "out.clew"
    command = python_that_repeats() if program == "python3" else compiler_pass(tmp_path)
    budget = 200_000
    run = runs.record(command, path, "--mode", "auto", "--budget", str(budget / 1e6))
    assert run.status == 0
    trace = clew.Trace(path)
    assert not check_invariants(trace)
    stretches = trace.path().stretches
    facts = stretches.file.facts
    n_events = sum(len(stretches.events(one.number)) for one in stretches)
    told = sum(sum(map(len, stretches.read_streams(one.number))) for one in stretches) + 64 * n_events
    told += sum(3 * len(stretches.file.read_checkpoint(n).index) for n in range(len(stretches.file.places)))
    seconds = (trace.manifest.end_ns - trace.manifest.start_ns) / 1e9
    assert facts.block_executions > sum(len(piece.block_ids) for piece in trace.path().iter_pieces())
    assert told <= budget * seconds + (1 << 20) + (1 << 18)
    kinds = {int(kind) for one in stretches for kind in stretches.events(one.number)["event_kind"]}
    assert PathEventKind.THINNED in kinds
    assert not any(trace.manifest.losses.values())


@pytest.mark.stress
def test_what_is_told_behind_a_gap_is_worth_its_checkpoint(tmp_path: Path) -> None:
    """Of a program with so much code that going on takes as much as the budget brings in some tenths of a second."""
    path = tmp_path / "out.clew"
    assert runs.record(compiler_pass(tmp_path, 250), path, "--mode", "auto", "--budget", "4").status == 0
    lengths, end = [], -1
    for piece in clew.Trace(path).path().iter_pieces():
        if piece.place.execution != end:
            lengths.append(0)
        lengths[-1] += len(piece.block_ids)
        end = piece.place.execution + len(piece.block_ids)
    # The last one may be where the thread ended.
    assert len(lengths) > 2
    assert min(lengths[1:-1]) > 20_000
