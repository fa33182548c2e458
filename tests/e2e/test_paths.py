"""Mode full: what paths say of whole programs is what was counted, whatever becomes of target and controller."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import clew
from clew.analysis.invariants.check import check_invariants
from clew.errors import UsageError
from clew.protocol._generated import PathEventKind
from clew.recording.following.snapshot import SNAPSHOT_NAME
from clew.store.path_file import PathFile
from tests.e2e import runs
from tests.e2e.attaching import attach, start, user_ticks, wait_for
from tests.e2e.forked import Process
from tests.e2e.test_transparency import STDIN
from tests.programs.build import BIN, Program, catalogue, find

LIMIT_SECONDS = 60.0
SPIN = """import sys, os
print('ready', flush=True)
while not os.path.exists(sys.argv[1]): sum(i * i % 7 for i in range(1000))
print('done')"""
EACH_TIME = (
    *("code_busy_others", "code_made", "code_moved", "code_toggled", "signal_altstack", "signal_throw"),
    *("threads_mutex", "fork_wait", "fork_returns", "coroutines", "no_address", "rseq_shapes", "fatal_returning"),
    "single_step_hot",
)
SELDOM = (
    *("code_shared", "vsyscall", "seccomp_refused", "seccomp_trap_calls", "exceptions_deep", "signal_fibers"),
    *("wait_variants", "signal_indirect_calls", "mode_32bit"),
)
"""Of those that were wrong once what takes longer, or is like another: begins of names."""


def marks_of(program: Program) -> Iterator[pytest.MarkDecorator]:
    # The others, and other builds of the same source, with the long runs.
    if "." in program.name or not program.name.startswith(EACH_TIME + SELDOM):
        yield pytest.mark.stress
    elif program.name.startswith(SELDOM):
        yield pytest.mark.long


PROGRAMS = [pytest.param(program, id=program.name, marks=list(marks_of(program))) for program in catalogue()]


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("program", PROGRAMS)
def test_paths_lead_where_was_counted(program: Program, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if program.differs:
        request.applymarker(pytest.mark.xfail(reason=program.differs, raises=AssertionError, strict=True))
    if program.missing:
        pytest.skip(f"this machine has no {', '.join(program.missing)}")
    words = ["first argument", "second"] if program.name == "environment" else []
    command: runs.Command = [program.path, *words]
    fixed_layout = "addresses" in program.traits
    native = runs.run([*(runs.FIXED_LAYOUT if fixed_layout else ()), *command], stdin=STDIN)
    trace = tmp_path / "trace.clew"
    recorded = runs.record(command, trace, "--mode", "full", fixed_layout=fixed_layout, stdin=STDIN)
    if "unordered" in program.traits:
        native, recorded = native.sorted_lines(), recorded.sorted_lines()
    assert recorded == native
    runs.read(trace, program.lost)


@pytest.mark.long
@pytest.mark.usefixtures("programs")
def test_paths_of_short_threads_share_files(tmp_path: Path) -> None:
    trace = tmp_path / "trace.clew"
    assert runs.record([find("thread_churn").path], trace, "--mode", "full").status == 0
    paths = runs.read(trace).trace.paths.to_pylist()
    assert len({row["file"] for row in paths}) == len(paths) == 241
    files = {row["file"].partition("#")[0] for row in paths}
    # Those that were seen while they ran have files of their own.
    assert len(files) < len(paths)
    folder = trace / "paths"
    stored = [path for path in folder.iterdir() if path.suffix != ".parquet"]
    assert {f"paths/{path.name}" for path in stored} == files
    assert sum(row["stored_bytes"] for row in paths) == sum(path.stat().st_size for path in stored)
    # Re-coded, those stay in it.
    compact = tmp_path / "compact.clew"
    assert runs.run(runs.clew_command("compact", "-q", trace, "-o", compact)).status == 0
    runs.read(compact)
    assert (compact / "paths" / "0.paths").read_bytes() == (folder / "0.paths").read_bytes()


@contextmanager
def spinning(folder: Path, *options: str) -> Iterator[tuple[Process, Path]]:
    """A recording in mode full of a program that is busy until a file is there; and that file."""
    stop = folder / "stop"
    target = ("/usr/bin/python3", "-I", "-S", "-c", SPIN, str(stop))
    command = runs.clew_command("record", "-q", "-o", folder / "t", "--mode", "full", *options, "--", *target)
    process = runs.start(command, stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        yield process, stop
    finally:
        stop.touch()
        process.kill()
        process.communicate()


def find_child(pid: int) -> int:
    """The one process that `pid` made and that goes on."""
    found = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return int(found[-1])


def prove(trace: Path) -> clew.Trace:
    """A trace whose invariants hold, be something lost or not."""
    opened = clew.Trace(trace)
    told = [(finding.invariant, finding.examples) for finding in check_invariants(opened)]
    assert not told, told
    return opened


@pytest.mark.long
def test_a_killed_target_leaves_a_prefix(tmp_path: Path) -> None:
    with spinning(tmp_path) as (process, _):
        child = find_child(process.pid)
        # Some milliseconds of it are more blocks than are asked for below.
        ticks = user_ticks(child)
        wait_for(lambda: user_ticks(child) >= ticks + 10)
        os.kill(child, signal.SIGKILL)
        assert process.wait(LIMIT_SECONDS) == 128 + signal.SIGKILL
    trace = prove(tmp_path / "t")
    assert trace.threads["end"].to_pylist() == ["killed"]
    path = trace.path()
    read = sum(len(piece.block_ids) for piece in path.iter_pieces())
    # Between its last two decisions nobody knows.
    assert read > 100_000 and abs(read - path.block_executions) < 100


def path_bytes(trace: Path) -> int:
    return sum(file.stat().st_size for file in (trace / "paths").glob("*.path"))


def test_programs_of_one_process_have_paths_of_their_own(tmp_path: Path) -> None:
    runs.record(["/bin/sh", "-c", "exec /bin/true"], tmp_path / "t", "--mode", "full")
    trace = clew.Trace(tmp_path / "t")
    shell, program = sorted(trace.paths.to_pylist(), key=lambda row: row["process_id"])
    assert (shell["pid"], shell["tid"]) == (program["pid"], program["tid"])
    for row in (shell, program):
        path = trace.path(row["tid"], process_id=row["process_id"])
        assert path.process_id == row["process_id"]
        assert len(path.blocks()) == row["block_executions"]
    assert trace.path().process_id == trace.paths["process_id"][0].as_py()
    assert trace.path(shell["tid"]).process_id == program["process_id"]
    assert trace.path(pid=shell["pid"]).process_id == program["process_id"]
    with pytest.raises(UsageError, match="no path"):
        trace.path(process_id=1000)


def recover_without(process: Process, trace: Path) -> None:
    """What a clew that was killed wrote is made whole, while its target goes on."""
    process.wait()
    recovered = runs.run(runs.clew_command("recover", trace))
    assert recovered.status == 0, recovered


@pytest.mark.parametrize("victim", ["clew", pytest.param("group", marks=pytest.mark.stress)])
@pytest.mark.long
def test_what_a_killed_controller_wrote(tmp_path: Path, victim: str) -> None:
    trace_path = tmp_path / "t"
    with spinning(tmp_path) as (process, stop):
        wait_for((trace_path / SNAPSHOT_NAME).exists)
        # What is written now was not saved with the counters: events that belong to it are still in memory.
        saved = path_bytes(trace_path)
        wait_for(lambda: path_bytes(trace_path) > saved)
        if victim == "group":
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        recover_without(process, trace_path)
        stop.touch()
    trace = prove(trace_path)
    assert trace.path().blocks(0, 10_000).size == 10_000
    assert sum(len(piece.block_ids) for piece in trace.path().iter_pieces()) > 100_000


@pytest.mark.long
def test_a_controller_killed_before_it_kept_counters(tmp_path: Path) -> None:
    trace_path = tmp_path / "t"
    with spinning(tmp_path) as (process, stop):
        wait_for(lambda: path_bytes(trace_path) > 0)
        process.kill()
        recover_without(process, trace_path)
        stop.touch()
    # On a slow day it had kept some.
    trace = prove(trace_path)
    assert trace.paths.num_rows == sum(thread["instructions"] > 0 for thread in trace.threads.to_pylist())


@pytest.mark.stress
def test_losses_are_told_in_their_place(programs_to_attach: Path, tmp_path: Path) -> None:
    """A controller that is stopped, and a target that does not wait: some of its path is lost, none of its code."""
    options = ("record", "-q", "-o", tmp_path / "t", "--mode", "full", "--on-full", "drop")
    with start(*runs.clew_command(*options, "--", programs_to_attach / "busy"), env=runs.environment()) as recorder:
        time.sleep(1)
        for _ in range(2):
            os.kill(recorder.pid, signal.SIGSTOP)
            time.sleep(1)
            os.kill(recorder.pid, signal.SIGCONT)
            time.sleep(0.5)
        os.kill(find_child(recorder.pid), signal.SIGTERM)
        recorder.process.wait(LIMIT_SECONDS)
    trace = prove(tmp_path / "t")
    assert trace.manifest.losses["dropped_records"] > 0
    stretches = trace.path().stretches
    lost = [stretch.number for stretch in stretches if stretch.is_after_loss]
    assert lost and lost[-1] < len(stretches) - 1
    for number in lost:
        read = stretches.open(number - 1).skip()
        assert read[1] < stretches[number].executions - stretches[number - 1].executions
        # Behind it all is there again.
        read = stretches.open(number).skip()
        assert number + 1 in lost or stretches[number].executions + read[1] == stretches[number + 1].executions


@pytest.mark.parametrize("name", ["busy", pytest.param("threads", marks=pytest.mark.stress)])
def test_attach_and_leave(programs_to_attach: Path, tmp_path: Path, name: str) -> None:
    with start(programs_to_attach / name) as target:
        before = target.look() if name == "busy" else None
        run = attach(target.pid, tmp_path / "t", "--mode", "full")
        assert run.status == 0, run.stderr
        assert before is None or target.look() == before
        assert target.end(number=signal.SIGTERM)[0] == 0
    trace = runs.read(tmp_path / "t").trace
    paths = trace.paths.to_pylist()
    places: dict[int, list[int]] = {}
    for event in trace.events.to_pylist():
        if event["kind"] in ("thread_start", "released"):
            places.setdefault(event["tid"], []).append(event["block_id"])
    # Some are left where they were born.
    empty = [row["tid"] for row in paths if row["instructions"] == 0]
    assert len(empty) < len(paths)
    assert all(places[tid] == [places[tid][0]] * 2 for tid in empty)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("name", ["fork_threads", pytest.param("exec_chain", marks=pytest.mark.stress)])
def test_each_process_has_its_paths(name: str, tmp_path: Path) -> None:
    runs.record([find(name).path], tmp_path / "t", "--mode", "full")
    recorded = runs.read(tmp_path / "t")
    threads = recorded.trace.threads.select(["process_id", "tid", "instructions"]).to_pylist()
    paths = recorded.trace.paths.select(["process_id", "tid", "instructions"]).to_pylist()
    ran = [row for row in threads if row["instructions"]]
    assert sorted(map(str, ran)) == sorted(map(str, paths)) and len(paths) > 1


def test_nested_loops_take_little_room(tmp_path: Path) -> None:
    program = tmp_path / "nested_loops"
    source = BIN.parents[2] / "bench" / "programs" / "nested_loops.c"
    subprocess.run(["gcc", "-O1", "-static", "-o", program, source], check=True)
    # As it is by default: in tests nearly all code counts as hot.
    environ = {name: value for name, value in runs.environment().items() if name != "CLEW_RELAYOUT"}
    assert runs.record([program], tmp_path / "t", "--mode", "full", environ=environ).stdout == b"68658\n"
    told = runs.run(runs.clew_command("info", "--json", tmp_path / "t"))
    (thread,) = json.loads(told.stdout)["processes"][0]["threads"]
    assert 0 < thread["stored_bytes"] <= 4096


@pytest.mark.usefixtures("programs")
def test_returns_that_often_lead_elsewhere_are_symbols(tmp_path: Path) -> None:
    run = runs.record([find("returns_elsewhere").path], tmp_path / "t", "--mode", "full", "--stats")
    trace = runs.read(tmp_path / "t").trace
    (name,) = trace.paths["file"].to_pylist()
    file = PathFile(tmp_path / "t", name)
    events = file.read_events(0, file.facts.events)
    n_events = int(np.count_nonzero(events["event_kind"] == PathEventKind.ELSEWHERE))
    # Sixteen of each return, and a few that pop other calls than before.
    assert n_events < 300 and file.facts.symbol_bytes > 600
    # Nor does the dispatcher make them.
    found = re.search(rb"^clew: +entries_indirect +(\d+) ", run.stderr, re.MULTILINE)
    assert found is not None and int(found[1]) < 260, run.stderr


@pytest.mark.usefixtures("programs")
def test_verify_finds_a_path_that_leads_elsewhere(tmp_path: Path) -> None:
    runs.record([find("calls").path], tmp_path / "t", "--mode", "full")
    assert runs.run(runs.clew_command("verify", tmp_path / "t")).status == 0
    trace = clew.Trace(tmp_path / "t")
    path = tmp_path / "t" / trace.paths["file"].to_pylist()[0]
    content = bytearray(path.read_bytes())
    content[60] ^= 1
    path.write_bytes(content)
    run = runs.run(runs.clew_command("verify", tmp_path / "t"))
    assert run.status == 1
    assert b"paths lead through blocks as often as was counted" in run.stdout
