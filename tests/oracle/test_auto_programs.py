"""Mode auto on interpreters and compilers: counts are those of mode counts, and what is told is what ran there.

All of it is for `make stress`; what is told of small programs is in test_auto.py. Whole ones are too long to be
stepped: what they do is held against mode full, their start and their end against single-stepping.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import clew
from clew.analysis.replay.thread_times import read_path_times
from clew.analysis.tables.totals import summarize_trace
from clew.protocol._generated import GapReason
from clew.store.columns import Array
from tests.e2e import runs
from tests.oracle.steps import StepKind, Steps, single_step
from tests.oracle.test_auto import executed_blocks
from tests.oracle.truth import Decoder

pytestmark = pytest.mark.stress

CLOCK = "[vdso]"
"""Its ways depend on the time."""
ATTEMPTS = 6


def find_command(program: str, folder: Path) -> list[str]:
    """A run of some hundred million instructions that does the same each time."""
    if program == "python3":
        script = "import json\nfor i in range(4000): json.loads(json.dumps({'a': [i, str(i)], 'b': {'c': i % 7}}))"
        return ["/usr/bin/python3", "-S", "-c", script]
    source = folder / "some.c"
    body = "for (int i = 0; i < x; i++) x += i % 3 ? x * 7 : x >> 1;"
    source.write_text("".join(f"int f{n}(int x) {{ {body} return x; }}\n" for n in range(8)))
    return [find_compiler(), "-quiet", "-O2", "-o", "/dev/null", str(source)]


def find_compiler() -> str:
    """gcc's own compiler."""
    found = subprocess.run(["gcc", "-print-prog-name=cc1"], stdout=subprocess.PIPE, check=True, text=True)
    return found.stdout.strip()


def iter_runs(trace: clew.Trace) -> Iterator[tuple[int, Array]]:
    """What is told without a gap: the number of the first execution, and ids of blocks."""
    first, found = 0, list[Array]()
    for piece in trace.path().iter_pieces():
        if found and piece.place.execution != first + sum(map(len, found)):
            yield first, np.concatenate(found)
            found = []
        if not found:
            first = piece.place.execution
        found.append(piece.block_ids)
    if found:
        yield first, np.concatenate(found)


def split_off_clock(path: Path) -> tuple[dict[tuple[int, int], int], int]:
    """Executions by place, without what depends on the time; and how many blocks of that were executed."""
    trace = clew.Trace(path)
    clocks = {row["image_id"] for row in trace.images.to_pylist() if row["path"] == CLOCK}
    places = {(row["app_pc"], row["size_bytes"]) for row in trace.blocks.to_pylist() if row["image_id"] in clocks}
    counts = runs.counts_by_place(path)
    return {place: n for place, n in counts.items() if place not in places}, sum(counts.get(one, 0) for one in places)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("program", ["python3", "cc1"])
def test_what_is_told_of_whole_programs_is_what_ran(tmp_path: Path, program: str) -> None:
    command = find_command(program, tmp_path)
    full, counts = tmp_path / "full.clew", tmp_path / "counts.clew"
    for path, mode in ((counts, "counts"), (full, "full")):
        assert runs.record(command, path, "--mode", mode, fixed_layout=True).status == 0
    expected, n_clock = split_off_clock(full)
    assert split_off_clock(counts)[0] == expected
    # Executions have the same numbers where the clock took as many blocks.
    for attempt in range(ATTEMPTS):
        auto = tmp_path / f"auto-{attempt}.clew"
        options = ("--mode", "auto", "--budget", "0.2")
        assert runs.record(command, auto, *options, fixed_layout=True).status == 0
        found, n = split_off_clock(auto)
        assert found == expected
        if n == n_clock:
            break
    else:
        pytest.skip("the clock took other ways each time")
    runs.read(auto)
    whole, trace = clew.Trace(full), clew.Trace(auto)
    blocks, others = executed_blocks(trace), executed_blocks(whole)
    n_told = 0
    for first, ids in iter_runs(trace):
        n_told += len(ids)
        there = whole.path().blocks(first, len(ids))
        assert np.array_equal(blocks[ids], others[there]), f"from execution {first:,} on"
    gaps = read_path_times(trace.path(), 0, 1 << 62).gaps
    assert set(gaps["reason"].tolist()) == {GapReason.THINNED}
    assert n_told + int(gaps["executions"].sum()) == trace.path().block_executions
    assert 0 < n_told < trace.path().block_executions / 2


def stepped_addresses(steps: Steps) -> Array:
    """Addresses (u64) of the instructions that ran, one after the other; of repeated ones each once. No signal came."""
    assert set(np.unique(steps.kinds).tolist()) == {StepKind.STEP, StepKind.EXIT}
    numbers = steps.values[steps.kinds == StepKind.STEP]
    decoder = Decoder()
    repeats = [decoder.decode(int(entry["pc"]), entry["bytes"].tobytes()).is_repeated for entry in steps.codes]
    found: Array = steps.codes["pc"][numbers]
    again = np.append(False, found[1:] == found[:-1]) & np.array(repeats)[numbers]
    once: Array = found[~again]
    return once


def instruction_addresses(trace: clew.Trace) -> dict[int, Array]:
    """By id of a block the addresses (u64) of its instructions."""
    decoder = Decoder()
    found = {}
    for row in trace.blocks.select(["block_id", "app_pc", "bytes"]).to_pylist():
        at, listed = 0, []
        while at < len(row["bytes"]):
            listed.append(row["app_pc"] + at)
            at += max(len(decoder.decode(row["app_pc"] + at, row["bytes"][at:]).code), 1)
        found[row["block_id"]] = np.array(listed, np.uint64)
    return found


def check_stepped(trace: clew.Trace, stepped: Array) -> int:
    """What is told is what was stepped there, but for the clock's code: how many instructions are told.

    Where the clock took other ways in front of a stretch, numbers of instructions are some less or more: it is where it
    fits, no more in front of it than the clock's code had.
    """
    [clock] = [
        (row["base"], row["base"] + row["size_bytes"]) for row in trace.images.to_pylist() if row["path"] == CLOCK
    ]
    addresses = instruction_addresses(trace)
    expected = stepped[(stepped < clock[0]) | (stepped >= clock[1])]
    most = sum(
        row["executions"] * len(addresses[row["block_id"]])
        for row in trace.counts.to_pylist()
        if row["block_id"] is not None and clock[0] <= addresses[row["block_id"]][0] < clock[1]
    )
    assert summarize_trace(trace)["totals"]["instructions"] - most == len(expected)
    n_told = 0
    for piece in trace.path().iter_pieces():
        found = np.concatenate([addresses[block] for block in piece.block_ids.tolist()])
        n_told += len(found)
        found = found[(found < clock[0]) | (found >= clock[1])]
        first = piece.place.instruction
        assert any(
            np.array_equal(found[:64], expected[start : start + 64][: len(found)])
            and np.array_equal(found, expected[start : start + len(found)])
            for start in range(max(first - most, 0), first + 1)
        ), f"from instruction {first:,} on"
    return n_told


@pytest.mark.timeout(0)
@pytest.mark.parametrize("program", ["python3 -V", "python3", "cc1"])
def test_what_is_told_of_whole_programs_is_what_was_stepped(tmp_path: Path, program: str) -> None:
    """From start to end: the long ones are fifteen and twenty million instructions, which are stepped in minutes."""
    (tmp_path / "empty.c").touch()
    commands: dict[str, list[str | Path]] = {
        "python3 -V": ["/usr/bin/python3", "-S", "-V"],
        "python3": ["/usr/bin/python3", "-S", "-c", "pass"],
        "cc1": [find_compiler(), "-quiet", "-o", "/dev/null", tmp_path / "empty.c"],
    }
    command = commands[program]
    printed, steps = single_step(command, tmp_path, timeout_seconds=7200)
    stepped = stepped_addresses(steps)
    for budget in ("1000", "1"):
        path = tmp_path / f"{budget}.clew"
        assert runs.record(command, path, "--mode", "auto", "--budget", budget, fixed_layout=True) == printed
        runs.read(path)
        n_told = check_stepped(clew.Trace(path), stepped)
        assert n_told > len(stepped) / 20
