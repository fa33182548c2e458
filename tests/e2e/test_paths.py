"""Mode full: what paths say of whole programs is what was counted, whatever becomes of target and controller."""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import clew
from clew.analysis.invariants import check_invariants
from clew.analysis.thread_path import PathPlace
from clew.errors import UsageError
from clew.recording.snapshot import SNAPSHOT_NAME
from tests.e2e import runs
from tests.e2e.attaching import attach, start, wait_for
from tests.e2e.test_transparency import STDIN
from tests.programs.build import BIN, Program, catalogue, find

LIMIT_SECONDS = 60.0
SPIN = """import sys, os
print('ready', flush=True)
while not os.path.exists(sys.argv[1]): sum(i * i % 7 for i in range(1000))
print('done')"""
EACH_TIME = (
    *("code_busy_others", "code_made", "code_moved", "code_shared", "code_toggled", "signal_altstack", "signal_throw"),
    *("threads_mutex", "fork_wait", "coroutines", "vsyscall", "no_address", "seccomp_refused", "seccomp_trap_calls"),
    *("exceptions_deep", "wait_variants", "rseq_shapes", "signal_indirect_calls", "fatal_returning"),
)


def marks_of(program: Program) -> Iterator[pytest.MarkDecorator]:
    # The others, and other builds of the same source, with the long runs.
    if "." in program.name or not program.name.startswith(EACH_TIME):
        yield pytest.mark.stress


PROGRAMS = [pytest.param(program, id=program.name, marks=list(marks_of(program))) for program in catalogue()]


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("program", PROGRAMS)
def test_paths_lead_where_was_counted(program: Program, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    if program.differs:
        request.applymarker(pytest.mark.xfail(reason=program.differs, strict=True))
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
    runs.read(trace)


@contextmanager
def spinning(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """A recording in mode full of a program that is busy until a file is there; and that file."""
    stop = folder / "stop"
    target = ("/usr/bin/python3", "-I", "-S", "-c", SPIN, str(stop))
    command = runs.clew_command("record", "-q", "-o", folder / "t", "--mode", "full", *options, "--", *target)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, env=runs.environment(), start_new_session=True)
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


def test_a_killed_target_leaves_a_prefix(tmp_path: Path) -> None:
    with spinning(tmp_path) as (process, _):
        time.sleep(0.2)
        os.kill(find_child(process.pid), signal.SIGKILL)
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


def recover_without(process: subprocess.Popen[bytes], trace: Path) -> None:
    """What a clew that was killed wrote is made whole, while its target goes on."""
    process.wait()
    recovered = runs.run(runs.clew_command("recover", trace))
    assert recovered.status == 0, recovered


@pytest.mark.parametrize("victim", ["clew", pytest.param("group", marks=pytest.mark.stress)])
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
    """A controller that stands still, and a target that does not wait: some of its path is lost, none of its code."""
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


@pytest.fixture(scope="module")
def exact(programs: None, tmp_path_factory: pytest.TempPathFactory) -> clew.Trace:
    """A trace whose path is long enough for several checkpoints."""
    path = tmp_path_factory.mktemp("paths") / "t"
    script = "x = 0\nfor i in range(4000): x += len(str(i)) * 3 % 7\nprint(x)"
    assert runs.record(["/usr/bin/python3", "-I", "-S", "-c", script], path, "--mode", "full").status == 0
    return clew.Trace(path)


@pytest.fixture(scope="module")
def everything(exact: clew.Trace) -> npt.NDArray[np.int64]:
    """The blocks of the whole path, read once for all tests."""
    return exact.path().blocks()


def test_seeks_find_what_reading_all_finds(exact: clew.Trace, everything: npt.NDArray[np.int64]) -> None:
    path = exact.path()
    assert len(path.stretches) > 2
    assert len(everything) == path.block_executions
    sizes = dict(zip(*(exact.blocks[name].to_pylist() for name in ("block_id", "n_instructions")), strict=True))
    ends = np.cumsum(np.array([sizes[block] for block in everything.tolist()], np.int64))
    assert ends[-1] == path.instructions
    chance = np.random.default_rng(1)
    borders = [stretch.executions for stretch in path.stretches][1:3]
    starts = [*chance.integers(0, len(everything), 6).tolist(), *borders, *(b - 1 for b in borders), 0]
    for start_at in starts:
        assert path.blocks(start_at, 50).tolist() == everything[start_at : start_at + 50].tolist()
    for number in [*chance.integers(0, path.instructions, 6).tolist(), 0, path.instructions - 1]:
        place = path.find_instruction(number)
        execution = int(np.searchsorted(ends, number, "right"))
        assert (place.execution, place.instruction) == (execution, int(ends[execution - 1]) if execution else 0)
    for block in chance.choice(everything, 4).tolist():
        hits = np.flatnonzero(everything == block)
        for n in {0, len(hits) // 2, len(hits) - 1}:
            found = path.find_execution(block, n)
            assert found is not None and found.execution == hits[n]
        assert path.find_execution(block, len(hits)) is None


def test_addresses_are_found_forwards_and_backwards(exact: clew.Trace, everything: npt.NDArray[np.int64]) -> None:
    path = exact.path()
    rows = exact.blocks.select(["block_id", "app_pc", "size_bytes"]).to_pylist()
    extent = {row["block_id"]: (row["app_pc"], row["app_pc"] + row["size_bytes"]) for row in rows}
    chance = np.random.default_rng(2)
    seldom = [int(everything[0]), int(everything[-1])]
    for block in [*chance.choice(everything, 2).tolist(), *seldom]:
        pc = extent[block][0]
        holding = [other for other, (start, end) in extent.items() if start <= pc < end]
        hits = np.flatnonzero(np.isin(everything, holding))
        for number in [*chance.integers(0, len(everything), 2).tolist(), 0, int(hits[0]), len(everything)]:
            after, before = hits[hits >= number], hits[hits < number]
            later, earlier = path.find_next(pc, number), path.find_previous(pc, number)
            assert (None if later is None else later.execution) == (int(after[0]) if len(after) else None)
            assert (None if earlier is None else earlier.execution) == (int(before[-1]) if len(before) else None)
    assert path.find_next(1) is None and path.find_previous(1) is None


def test_a_path_is_read_backwards(exact: clew.Trace, everything: npt.NDArray[np.int64]) -> None:
    path = exact.path()
    assert list(itertools.islice(reversed(path), 200_000)) == everything[:-200_001:-1].tolist()
    pieces = list(path.iter_pieces_back(1000, 300))
    starts = [piece.place.execution for piece in pieces]
    assert {700, 400, 100, 0} <= set(starts) and starts == sorted(starts, reverse=True)
    assert np.concatenate([piece.block_ids for piece in reversed(pieces)]).tolist() == everything[:1000].tolist()


def test_times_rise_along_a_path(exact: clew.Trace) -> None:
    path = exact.path()
    row = exact.threads.to_pylist()[0]
    times = np.linspace(row["start_ns"], row["end_ns"], 9).astype(np.int64).tolist()
    found = [path.find_time(time_ns).execution for time_ns in times]
    assert found == sorted(found)
    assert path.find_time(0).execution == 0
    assert 0 < found[-1] <= path.block_executions


def test_times_of_places_rise_up_to_the_end(exact: clew.Trace) -> None:
    path = exact.path()
    row = exact.threads.to_pylist()[0]
    last = path.stretches[len(path.stretches) - 1]
    inside_last = (last.instructions + path.instructions) // 2
    numbers = sorted([*(path.instructions * part // 20 for part in range(21)), inside_last])
    places = [path.find_instruction(number) for number in numbers]
    times = [path.time_at(place) for place in places]
    assert times == sorted(times)
    # The last stretch, too, begins at a time, and has calls that tell it.
    assert last.executions < places[-2].execution < places[-1].execution
    assert row["start_ns"] < times[1] < times[-2] < times[-1] <= row["end_ns"]
    for place, time_ns in zip(places, times, strict=True):
        assert path.find_time(time_ns).execution <= place.execution


SILENT = """
#include <signal.h>
#include <sys/time.h>
static volatile int stop;
static void on_timer(int number) { stop = number; }
int main(void)
{
    struct itimerval once = {{0, 0}, {1, 0}};
    signal(SIGALRM, on_timer);
    setitimer(ITIMER_REAL, &once, 0);
    while (!stop);
    return 0;
}
"""


def test_places_of_a_thread_that_tells_nothing_have_times(tmp_path: Path) -> None:
    source, program = tmp_path / "silent.c", tmp_path / "silent"
    source.write_text(SILENT)
    subprocess.run(["gcc", "-O1", "-o", program, source], check=True)
    assert runs.record([program], tmp_path / "t", "--mode", "full").status == 0
    trace = clew.Trace(tmp_path / "t")
    path = trace.path()
    samples = path.stretches.file.samples
    # Ten a second are taken, if nothing else runs.
    assert len(samples) > 2
    places = [path.find_time(int(ns)) for ns in samples["ns"]]
    executions = [place.execution for place in places]
    assert executions == sorted(set(executions))
    assert path.block_executions >= executions[-1] > executions[0] > 1000
    times = [path.time_at(place) for place in places]
    # The last ones may have been taken while the thread ended, which takes a while where much else runs: at one place.
    at = list(zip(samples["surprise_bytes"].tolist(), samples["decisions"].tolist(), strict=True))
    n_inside = at.index(at[-1])
    assert n_inside
    assert times[:n_inside] == samples["ns"][:n_inside].tolist()
    # Where it did not run on until the signal came, that is the later one of both.
    assert times[n_inside - 1] < times[-1]
    before = places[0].execution - 1
    assert path.time_at(PathPlace(before, 0)) < int(samples["ns"][0])
    # What was sampled is what runs: the loop.
    assert len(set(path.blocks(executions[0], 1000).tolist())) == 1


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


def dump(trace: clew.Trace, *words: str) -> runs.Run:
    return runs.run(runs.clew_command("dump", trace.directory, *words))


def test_dump(exact: clew.Trace) -> None:
    path = exact.path()
    pcs = dict(zip(*(exact.blocks[name].to_pylist() for name in ("block_id", "app_pc")), strict=True))
    wanted = [hex(pcs[block]) for block in path.blocks(5000, 7).tolist()]
    rows = [json.loads(line) for line in dump(exact, "--start", "5000", "--count", "7", "--json").stdout.splitlines()]
    assert [(row["index"], row["block"]) for row in rows] == list(enumerate(wanted, 5000))
    lines = dump(exact, "--start", "5000", "--count", "7").stdout.decode().splitlines()
    assert [line.split()[:2] for line in lines] == [[f"{number:,}", pc] for number, pc in enumerate(wanted, 5000)]
    listed = dump(exact, "--start", "5000", "--count", "9", "--json", "--instructions").stdout.splitlines()
    assert [json.loads(line)["index"] for line in listed] == list(range(5000, 5009))
    assert all({"instruction", "text"} <= json.loads(line).keys() for line in listed)


@pytest.mark.usefixtures("programs")
def test_what_can_not_be_dumped(exact: clew.Trace, tmp_path: Path) -> None:
    runs.record([find("bare_exit").path], tmp_path / "t")
    counted = clew.Trace(tmp_path / "t")
    for run, told in ((dump(counted), "mode counts"), (dump(exact, "--thread", "1"), "thread 1")):
        assert (run.status, run.stdout, run.stderr.count(b"\n")) == (2, b"", 1)
        assert run.stderr.startswith(b"clew: ") and told in run.stderr.decode()
    with pytest.raises(UsageError):
        counted.path()
