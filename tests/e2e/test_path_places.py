"""Mode full: places of a path, found by number, block, address and time, are those that reading all of it finds."""

from __future__ import annotations

import itertools
import json
import subprocess
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest

import clew
from clew.analysis.order.thread_path import PathPlace
from clew.errors import UsageError
from tests.e2e import runs
from tests.programs.build import find


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
#include <stdlib.h>
#include <sys/time.h>
static volatile int stop;
static void on_timer(int number) { stop = number; }
int main(int argc, char **argv)
{
    struct itimerval once = {{0, 0}, {atoi(argv[argc - 1]), 0}};
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
    # Ten samples a second are taken, if nothing else runs.
    for seconds in ("1", "5", "25"):
        assert runs.record([program, seconds], tmp_path / seconds, "--mode", "full").status == 0
        path = clew.Trace(tmp_path / seconds).path()
        samples = path.stretches.file.samples
        if len(samples) > 2:
            break
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
