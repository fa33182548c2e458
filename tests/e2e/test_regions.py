"""Mode region from end to end: tags account for every instruction of every thread, and for nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from clew.store.trace import Trace
from tests.e2e import runs
from tests.programs.build import catalogue

Owner = tuple[int, int]
"""process_id and tid."""


def record(name: str, path: Path, *options: str) -> Trace:
    (program,) = (program for program in catalogue() if program.name == name)
    runs.record([program.path], path, "--mode", "region", *options)
    return runs.read(path).trace


class Blocks:
    """The blocks of a trace; those of tags last to the next branch."""

    def __init__(self, trace: Trace) -> None:
        columns = ["block_id", "process_id", "app_pc", "code_version", "size_bytes", "n_instructions", "exit_kind"]
        rows = trace.blocks.select([*columns, "is_recorded"]).to_pylist()
        self.by_id = {row["block_id"]: row for row in rows}
        self._by_start = {(row["process_id"], row["app_pc"], row["code_version"]): row for row in rows}

    def n_instructions(self, block_id: int) -> int:
        row = self.by_id[block_id]
        n = row["n_instructions"]
        while row is not None and row["exit_kind"] == "fall_through":
            behind = row["process_id"], row["app_pc"] + row["size_bytes"], row["code_version"]
            row = self._by_start.get(behind)
            n += row["n_instructions"] if row is not None else 0
        return int(n)


def instructions_by_tags(trace: Trace) -> Counter[Owner]:
    blocks = Blocks(trace)
    found: Counter[Owner] = Counter()
    for row in trace.tags.to_pylist():
        if row["kind"] in ("executed", "counts"):
            times = row["executions"] if row["kind"] == "counts" else 1
            found[row["process_id"], row["tid"]] += times * blocks.n_instructions(row["block_id"])
    return found


def instructions(trace: Trace) -> Counter[Owner]:
    found: Counter[Owner] = Counter()
    for row in trace.threads.to_pylist():
        found[row["process_id"], row["tid"]] += row["instructions"]
    return found


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    "name",
    [
        "threads_mutex",
        pytest.param("thread_churn", marks=pytest.mark.long),
        "exec_chain",
        pytest.param("fork_threads", marks=pytest.mark.stress),
        pytest.param("large_code", marks=pytest.mark.stress),
    ],
)
def test_tags_account_for_all_instructions(name: str, tmp_path: Path) -> None:
    trace = record(name, tmp_path / "trace.clew")
    assert instructions_by_tags(trace) == +instructions(trace)


SPECIAL = [
    *("code_made", "fault_instructions", "code_busy", "code_busy_others", "code_patched_call", "code_rewritten"),
    *("code_rewritten_faults", "code_rewritten_thread", "code_unreadable", "fatal_stack", "proc_code"),
    *("rseq_getcpu", "rseq_shapes"),
]
"""Programs of which not every execution runs through: they write code, fault, or have restartable sequences."""


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in SPECIAL[:2] else pytest.mark.stress) for name in SPECIAL]
)
def test_tags_of_what_does_not_run_through(name: str, tmp_path: Path) -> None:
    assert record(name, tmp_path / "trace.clew").n_rows("tags")


@pytest.mark.usefixtures("programs")
def test_totals_are_those_of_counts(tmp_path: Path) -> None:
    (program,) = (program for program in catalogue() if program.name == "calls")
    totals = []
    for mode in ("counts", "region"):
        path = tmp_path / f"{mode}.clew"
        runs.record([program.path], path, "--mode", mode, fixed_layout=True)
        totals.append(runs.read(path).totals)
    assert totals[0] == totals[1]


@pytest.mark.usefixtures("programs")
def test_each_busy_stretch_is_whole(tmp_path: Path) -> None:
    busy: dict[Owner, list[int]] = {}
    for row in record("threads_mutex", tmp_path / "trace.clew").tags.to_pylist():
        counted = busy.setdefault((row["process_id"], row["tid"]), [])
        if row["kind"] == "became_busy":
            counted.append(row["block_id"])
        elif row["kind"] == "counts":
            assert row["block_id"] in counted
        elif row["kind"] == "left_busy":
            assert len(set(counted)) == len(counted) > 0
            counted.clear()
        elif row["kind"] == "executed":
            assert not counted
    assert not any(busy.values())


@pytest.mark.usefixtures("programs")
def test_what_a_filter_leaves_out_is_not_tagged(tmp_path: Path) -> None:
    trace = record("threads_mutex", tmp_path / "trace.clew", "--include", "threads_mutex")
    blocks = Blocks(trace).by_id
    tagged = [row["block_id"] for row in trace.tags.to_pylist() if row["block_id"] is not None]
    assert tagged
    assert all(blocks[block_id]["is_recorded"] for block_id in tagged)
    assert instructions_by_tags(trace) == +instructions(trace)


def test_a_killed_program_keeps_what_it_wrote(tmp_path: Path) -> None:
    source, program, path = tmp_path / "spin.c", tmp_path / "spin", tmp_path / "trace.clew"
    source.write_text(
        "#include <signal.h>\n#include <unistd.h>\n"
        "int main(void) { volatile int n = 0; for (int i = 0; i < 1000; i++) n += i; kill(getpid(), SIGKILL); }\n"
    )
    subprocess.run(["gcc", "-O1", "-o", program, source], check=True)
    assert runs.record([program], path, "--mode", "region").status == 128 + signal.SIGKILL
    trace = runs.read(path).trace
    kinds = [row["kind"] for row in trace.tags.to_pylist()]
    assert kinds[-1] == "syscall"
    assert {"executed", "became_busy", "counts", "left_busy"} <= set(kinds)
    summary = runs.read(path).summary
    assert summary["processes"][0]["threads"][0]["tags"] == len({row["tag"] for row in trace.tags.to_pylist()})


SPIN = """#include <pthread.h>
#include <signal.h>
#include <unistd.h>
static volatile int n;
static __attribute__((noinline)) void step(unsigned i) { if (i % 3) n++; }
static void *run(void *unused) { for (unsigned i = 0;; i++) step(i); }
int main(void) {
    pthread_t thread;
    pthread_create(&thread, 0, run, 0);
    while (n < 1000000) ;
    END;
}
"""


def compile_spin(folder: Path, end: str) -> Path:
    """A program with a thread that is busy when it `end`s."""
    source, program = folder / "spin.c", folder / "spin"
    source.write_text(SPIN.replace("END", end))
    subprocess.run(["gcc", "-O1", "-pthread", "-o", program, source], check=True)
    return program


def check_what_was_not_told(trace: Trace) -> None:
    """The second thread, which was busy at its end, has the counts of all that it was busy with."""
    (tid,) = (row["tid"] for row in trace.threads.to_pylist() if row["parent_tid"])
    rows = [row for row in trace.tags.to_pylist() if row["tid"] == tid]
    assert [row["tag"] for row in rows] == sorted(row["tag"] for row in rows)
    last_left = max((at for at, row in enumerate(rows) if row["kind"] == "left_busy"), default=-1)
    busy = [row["block_id"] for row in rows[last_left + 1 :] if row["kind"] == "became_busy"]
    counted = [row for row in rows[last_left + 1 :] if row["kind"] == "counts"]
    assert busy and rows[-1]["kind"] == "counts"
    assert list(dict.fromkeys(row["block_id"] for row in counted)) == busy
    by_tags, by_counters = instructions_by_tags(trace), instructions(trace)
    largest = max(trace.blocks["n_instructions"].to_pylist())
    for thread, n in by_counters.items():
        assert 0 <= by_tags[thread] - n <= largest  # The block that it was killed in.
    blocks = Blocks(trace).by_id
    n_ways = {"jump": 1, "call": 1, "conditional": 2}
    for block_id in busy:
        targets = [row["target_block_id"] for row in counted if row["block_id"] == block_id]
        n_known = n_ways.get(blocks[block_id]["exit_kind"])
        assert n_known is None or (len(targets) == n_known and None not in targets)


@pytest.mark.parametrize("end", ["kill(getpid(), SIGKILL)", "_exit(0)"])
def test_what_a_busy_thread_could_not_tell(end: str, tmp_path: Path) -> None:
    runs.record([compile_spin(tmp_path, end)], tmp_path / "trace.clew", "--mode", "region")
    check_what_was_not_told(runs.read(tmp_path / "trace.clew").trace)


@pytest.mark.long
def test_what_a_busy_thread_did_until_clew_was_killed_too(tmp_path: Path) -> None:
    path = tmp_path / "trace.clew"
    program = compile_spin(tmp_path, "pause()")
    command = runs.clew_command("record", "-q", "-o", path, "--mode", "region", "--", program)
    process = runs.start(command)
    limit = time.monotonic() + 60
    try:
        # The second one was begun when the thread was long busy.
        for _ in range(2):
            now_ns = time.time_ns()
            while not (snapshot := path / "counters.journal").exists() or snapshot.stat().st_mtime_ns <= now_ns:
                assert time.monotonic() < limit
                time.sleep(0.02)
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert runs.run(runs.clew_command("recover", path)).status == 0
    check_what_was_not_told(runs.read(path).trace)


def test_code_longer_than_a_fragment_is_one_block(tmp_path: Path) -> None:
    source, program = tmp_path / "long.c", tmp_path / "long"
    source.write_text(
        "int main(void) {\n for (int i = 0; i < 30; i++)\n"
        '  __asm__ volatile(".rept 3000; add $1, %%eax; .endr" : : : "eax", "cc");\n return 0;\n}\n'
    )
    subprocess.run(["gcc", "-O1", "-o", program, source], check=True)
    runs.record([program], tmp_path / "trace.clew", "--mode", "region")
    trace = runs.read(tmp_path / "trace.clew").trace
    blocks = Blocks(trace)
    long = [
        (row["kind"], row["executions"])
        for row in trace.tags.to_pylist()
        if row["block_id"] is not None and blocks.n_instructions(row["block_id"]) > 2900
    ]
    # The first turn begins with what is in front of the loop; then levels rise by one each turn.
    assert Counter(kind for kind, _ in long) == {"executed": 11, "became_busy": 1, "counts": 1}
    assert instructions_by_tags(trace) == +instructions(trace)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--busy-limit", "5"), "busy limit 5: only for mode region"),
        (("--mode", "region", "--busy-limit", "0"), "--busy-limit"),
        (("--mode", "region", "--busy-limit", "255"), "--busy-limit"),
    ],
)
def test_limits_that_can_not_be(options: tuple[str, ...], told: str, tmp_path: Path) -> None:
    ran = runs.record(["true"], tmp_path / "trace.clew", *options)
    assert ran.status == 2
    assert told in ran.stderr.decode()
    assert not (tmp_path / "trace.clew").exists()
