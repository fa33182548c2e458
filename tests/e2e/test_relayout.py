"""Hot code that is laid out anew while a program runs is counted as if it had stayed where it was."""

from __future__ import annotations

import re
import resource
import subprocess
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clew.analysis.tables.arrays import TraceArrays
from clew.analysis.trace import Trace
from clew.protocol._constants import ExitKind
from clew.recording.assembly.records.records import ParsedRecords, parse_records
from clew.recording.reading.journal_reader import JournalReader
from clew.store.names import JOURNAL_NAME
from tests.e2e import runs
from tests.programs.build import find

# Equally long: the dynamic linker reads the environment, byte by byte.
NEVER = "00000"
ALWAYS = "00001"
EARLY = "00004"
OFTEN = "00040"
TIMED = "01024"
EACH_TIME = ("virtual_calls", "recursion_in_loop")
SELDOM = ("calls", "versions_of_callee")
PROGRAMS = (*EACH_TIME, *SELDOM, "tail_calls", "coroutines")


def record_with(relayout: str, program: str, trace: Path) -> int:
    """Record a test program; how many fragments were laid out anew."""
    environ = runs.environment() | {"CLEW_RELAYOUT": relayout}
    run = runs.record([find(program).path], trace, "--stats", fixed_layout=True, environ=environ)
    assert run.status == 0, run.stderr
    relaid = re.search(rb"^clew: +relaid +(\d+) ", run.stderr, re.MULTILINE)
    assert relaid is not None, run.stderr
    runs.read(trace)
    return int(relaid[1])


def counts_of(path: Path) -> dict[Any, int]:
    """Executions by block, and by edge, of the trace's own tables: what reports make of those is tested elsewhere."""
    trace = Trace(path)
    arrays = TraceArrays(trace)
    blocks = {row["block_id"]: (row["app_pc"], row["code_version"]) for row in trace.blocks.to_pylist()}
    counts: Counter[Any] = Counter()
    for block, executions in zip(arrays.block_id.tolist(), arrays.block_executions.tolist(), strict=True):
        counts[blocks[block]] += executions
    for row, executions in zip(trace.edges.to_pylist(), arrays.edge_executions.tolist(), strict=True):
        counts[blocks.get(row["source_block_id"]), blocks[row["target_block_id"]], row["kind"]] += executions
    return dict(counts)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    "program",
    [
        *EACH_TIME,
        *(pytest.param(name, marks=pytest.mark.long) for name in SELDOM),
        *(pytest.param(name, marks=pytest.mark.stress) for name in PROGRAMS[4:]),
    ],
)
def test_counts_stay_the_same(program: str, tmp_path: Path) -> None:
    assert record_with(NEVER, program, tmp_path / "never.clew") == 0
    expected = counts_of(tmp_path / "never.clew")
    for relayout in (ALWAYS, OFTEN):
        assert record_with(relayout, program, tmp_path / f"{relayout}.clew") > 0
        assert counts_of(tmp_path / f"{relayout}.clew") == expected, relayout


@pytest.mark.usefixtures("programs")
def test_what_runs_seldom_is_left_where_it_is(tmp_path: Path) -> None:
    program = "loops_uneven"
    assert record_with(NEVER, program, tmp_path / "never.clew") == 0
    n_often = record_with(OFTEN, program, tmp_path / "often.clew")
    assert 0 < record_with(TIMED, program, tmp_path / "timed.clew") < n_often
    assert counts_of(tmp_path / "timed.clew") == counts_of(tmp_path / "never.clew")


def record_keeping_records(relayout: str, program: str, trace: Path) -> ParsedRecords:
    """Record a test program with one thread: what the runtime announced of it."""
    kept = trace.with_suffix(".kept")
    # The recorder is about to remove the journal; the shell's process goes on as the program's.
    shell: list[str | Path] = ["sh", "-c", 'ln "$0" "$1" && exec "$2"', trace / JOURNAL_NAME, kept, find(program).path]
    run = runs.record(shell, trace, environ=runs.environment() | {"CLEW_RELAYOUT": relayout})
    assert run.status == 0, run.stderr
    *_, process = JournalReader(kept)
    return parse_records(process.records, 1 << 32)


@pytest.mark.usefixtures("programs")
def test_a_hot_call_is_in_one_fragment(tmp_path: Path) -> None:
    """Returns come to one copy of a call, and the processor predicts those that were called from that copy."""
    records = record_keeping_records(EARLY, "recursion_in_loop", tmp_path / "trace.clew")
    code = records.fragments
    is_gone = np.isin(code.fragment_id, records.invalidates["fragment_id"])
    is_hot = ~is_gone & np.isin(code.app_pc, code.app_pc[is_gone])
    ends, n_copies = np.unique(code.end_pc[is_hot & (code.exit_kind == ExitKind.CALL)], return_counts=True)
    assert len(ends) > 0 and max(n_copies) == 1, [hex(end) for end in ends[n_copies > 1]]


@pytest.mark.parametrize("text", ["", "1,2", "-1", "65536", "one", "1.5"])
def test_what_is_no_number_of_executions_is_refused(text: str, tmp_path: Path) -> None:
    environ = runs.environment() | {"CLEW_RELAYOUT": text}
    run = runs.record(["true"], tmp_path / "trace.clew", environ=environ)
    assert run.status == 2
    assert b"CLEW_RELAYOUT" in run.stderr
    assert not (tmp_path / "trace.clew").exists()


NESTED = """
#include <stdio.h>
int main(void)
{
    unsigned long sum = 0;
    __asm__ volatile(".nops %d");
    for (unsigned i = 0; i < 60; i++)
        for (unsigned j = 0; j < 47; j++)
            for (unsigned k = 0; k < 347; k++) {
                unsigned long x = i + j + k;
                for (unsigned l = 0; l < 997; l++) {
                    sum ^= x;
                    x += l;
                }
            }
    printf("%%lu\\n", sum);
}
"""


@pytest.mark.timing
@pytest.mark.parametrize("mode", ["coverage", "counts"])
@pytest.mark.parametrize("shift_bytes", [1, 17, 33, 49])
def test_a_loop_in_a_loop_takes_hardly_longer_than_natively(tmp_path: Path, shift_bytes: int, mode: str) -> None:
    """It took twice as long where the inner loop crossed a line of code, as it did with one of the shifts while it was
    laid out as if it seldom went back; and where its counter was slow at first each time it was entered."""
    program, source = tmp_path / "nested", tmp_path / "nested.c"
    source.write_text(NESTED % shift_bytes)
    subprocess.run(["gcc", "-O1", "-o", program, source], check=True)
    native_seconds, recorded_seconds = [], []
    for turn in range(9):
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        subprocess.run([program], check=True, stdout=subprocess.DEVNULL)
        native_seconds.append(resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)
        environ = runs.environment() | {"CLEW_RELAYOUT": TIMED}
        run = runs.record([program], tmp_path / f"{turn}.clew", "--mode", mode, environ=environ)
        assert run.status == 0, run.stderr
        recorded_seconds.append(Trace(tmp_path / f"{turn}.clew").manifest.cpu["target_seconds"])
        # What else the processor does adds to either, and takes nothing away: more turns come nearer to each.
        if turn >= 2 and min(recorded_seconds) < 1.75 * min(native_seconds):
            return
    raise AssertionError(f"{recorded_seconds} recorded, {native_seconds} natively")
