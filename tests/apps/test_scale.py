"""Reading traces that are large: of a million blocks, and of many processes."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from clew.analysis.invariants.check import check_invariants
from tests.apps.chain_trace import write_chains
from tests.e2e import runs
from tests.programs.load import blocks

pytestmark = [pytest.mark.stress, pytest.mark.timeout(900)]

MAX_SECONDS = 2.0
"""A report of a million blocks takes no more processor time, the start of the command included."""
ROUNDS = 3
"""The machine may be busy: the quickest of so many counts."""
SUBJECTS = ("function", "block", "edge", "line", "image", "thread")

# Not ru_maxrss: that of the process that started it counts there, if it is larger.
MEASURE = """
import json, re, resource, sys
from clew.cli.main import main
status = main(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_SELF)
kib = int(re.search("VmHWM:\\\\s*(\\\\d+)", open("/proc/self/status").read())[1])
print(json.dumps([status, kib, used.ru_utime + used.ru_stime]))
"""


@pytest.fixture(scope="module")
def million(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The trace of a program of a million blocks, with lines."""
    folder = tmp_path_factory.mktemp("million")
    blocks.write_source(folder / "blocks.S", blocks.FUNCTIONS_OF_A_MILLION)
    subprocess.run(["gcc", "-g", "-o", folder / "blocks", folder / "blocks.S"], check=True)
    run = runs.record([folder / "blocks"], folder / "t", timeout_seconds=600.0)
    assert (run.status, run.stderr) == (0, b"")
    return folder / "t"


def quickest(*words: str | Path) -> float:
    """Seconds of processor time of the quickest run of a command of clew."""
    seconds = []
    for _ in range(ROUNDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        run = runs.run(runs.clew_command(*words))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
        assert (run.status, run.stderr) == (0, b"")
    return min(seconds)


def test_a_million_blocks_are_right(million: Path) -> None:
    recorded = runs.read(million)
    assert recorded.totals["blocks"] > 1_000_000
    functions = blocks.FUNCTIONS_OF_A_MILLION
    expected = sum(sum(blocks.expected(function)) for function in range(functions))
    run = runs.run(runs.clew_command("report", "--json", "-n", str(10 * functions), million))
    rows = {row["function"]: row for row in json.loads(run.stdout)["rows"]}
    assert sum(rows[f"function{number}"]["executions"] for number in range(functions)) == expected
    assert all(rows[f"function{number}"]["entries"] == blocks.times(number) for number in range(functions))


@pytest.mark.parametrize("by", SUBJECTS)
def test_report_of_a_million_blocks(by: str, million: Path) -> None:
    assert quickest("report", "--by", by, million) < MAX_SECONDS


@pytest.mark.parametrize("words", [["info"], ["info", "--json"], ["report", "--merge"]])
def test_the_rest_of_a_million_blocks(words: list[str], million: Path) -> None:
    assert quickest(*words, million) < MAX_SECONDS


def measure(*words: str | Path) -> tuple[int, float]:
    """Memory in MiB, and seconds of processor time, that a command of clew needs."""
    run = runs.run([sys.executable, "-c", MEASURE, *words], timeout_seconds=300.0)
    status, kib, seconds = json.loads(run.stdout.splitlines()[-1])
    assert (run.status, status) == (0, 0), run.stderr
    return kib // 1024, seconds


@pytest.mark.parametrize("words", [["verify"], ["info"], ["report"], ["report", "--merge"], ["report", "--by", "line"]])
def test_memory_is_bounded_by_the_largest_process(words: list[str], tmp_path: Path) -> None:
    """Four times as many processes need no more memory, and four times the time."""
    few, many = (write_chains(tmp_path / str(n), n, 40_000).directory for n in (25, 100))
    (few_mib, few_seconds), (many_mib, many_seconds) = measure(*words, few), measure(*words, many)
    assert many_mib < few_mib + 60, (few_mib, many_mib)
    assert many_mib < 500
    assert many_seconds < 4 * 1.5 * few_seconds


def test_thousands_of_small_processes(tmp_path: Path) -> None:
    few, many = (write_chains(tmp_path / str(n), n, 60).directory for n in (1500, 6000))
    for words in (["verify"], ["info"], ["info", "--all"], ["report"], ["report", "--by", "line"]):
        (few_mib, few_seconds), (many_mib, many_seconds) = measure(*words, few), measure(*words, many)
        assert many_mib < few_mib + 100, (words, few_mib, many_mib)
        assert many_seconds < 4 * 1.5 * few_seconds, (words, few_seconds, many_seconds)


def test_a_large_chain_is_good(tmp_path: Path) -> None:
    trace = write_chains(tmp_path / "t", 3, 300_000)
    assert check_invariants(trace) == []
    assert [len(trace.parts(table).groups) for table in ("blocks", "counts")] == [6, 9]
