"""`clew diff` of real recordings, each loaded elsewhere in memory."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import clew
from clew.analysis.comparison.trace_diff import TraceDiff
from tests.e2e import runs

SOURCE = """
#include <stdlib.h>
volatile long sum;
#define NEVER_INLINE __attribute__((noinline))
NEVER_INLINE void each(long i) { sum += i; }
/* With a second argument the loop is entered in the middle of what is otherwise one block. */
NEVER_INLINE void middle(long skip)
{
    __asm__ volatile("test %0, %0; jnz 1f; xor %%eax, %%eax; xor %%ecx, %%ecx; 1: inc %%ecx; inc %%eax"
                     : : "r"(skip) : "eax", "ecx", "cc");
}
NEVER_INLINE void seldom(void) { sum++; }
int main(int argc, char **argv)
{
    long times = strtol(argv[1], 0, 10);
    for (long i = 0; i < times; i++) each(i);
    for (int i = 0; i < 10; i++) middle(argc > 2 && i == 3);
    if (argc > 2) seldom();
    return 0;
}
"""
LISTED = ("each", "middle", "seldom")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("diff")
    (folder / "program.c").write_text(SOURCE)
    flags = ["-O1", "-fno-inline", "-Wl,--build-id"]
    subprocess.run(["gcc", *flags, "-o", folder / "program", folder / "program.c"], check=True)
    return folder / "program"


def record(program: Path, trace: Path, *words: str, options: tuple[str, ...] = ()) -> Path:
    run = runs.record([program, *words], trace, *options)
    assert (run.status, run.stderr) == (0, b"")
    return trace


def of_program(diff: TraceDiff, by: str = "function") -> dict[str, dict[str, object]]:
    """Rows of the program's own functions, of all lists."""
    told = diff.to_dict(by, 10_000)
    rows = [*told["rows"], *told["only_in_a"], *told["only_in_b"]]
    return {row["function"]: row for row in rows if row["function"] in LISTED}


def test_two_runs_with_other_arguments(program: Path, tmp_path: Path) -> None:
    few = record(program, tmp_path / "few", "1000")
    many = record(program, tmp_path / "many", "3000", "x")
    diff = clew.diff(few, many)
    a, b = ({row["path"]: row["base"] for row in clew.Trace(path).images.to_pylist()} for path in (few, many))
    assert a[str(program)] != b[str(program)]
    assert diff.to_dict()["not_comparable"]["a"]["blocks"] == 0
    rows = of_program(diff)
    each, seldom = rows["each"], rows["seldom"]
    assert each["ratio"] == 3.0
    assert (each["a"]["executions"], each["b"]["executions"]) == (1000, 3000)  # type: ignore[index]
    assert (seldom["a"], seldom["only"]["blocks"]) == (None, 1)  # type: ignore[index]
    # One time in ten two instructions less, by a jump of which the other run knows nothing.
    assert rows["middle"]["difference"] == 2
    blocks = [row for row in diff.rows("block", 10_000) if row["symbol"] == "middle"]
    assert [(row["a"]["executions"], row["b"]["executions"], row["a"]["n_instructions"]) for row in blocks] == [
        (10, 9, 2)
    ]
    edges = [
        (row["kind"], row["a"] and row["a"]["executions"], row["b"] and row["b"]["executions"])
        for row in [*diff.rows("edge", 10_000), *diff.rows_only_in("b", "edge", 10_000)]
        if (row["b"] or row["a"])["source"] and (row["b"] or row["a"])["source"]["symbol"] == "middle"
        and (row["b"] or row["a"])["target"]["symbol"] == "middle"
    ]  # fmt: skip
    assert sorted(edges) == [("fall_through", 10, 9), ("not_taken", 10, 9), ("taken", None, 1)]
    run = runs.run(runs.clew_command("diff", "--exit-code", few, many))
    assert (run.status, run.stderr) == (3, b"")
    assert b"each" in run.stdout and b"A and B differ" in run.stdout


def test_the_same_run_twice(program: Path, tmp_path: Path) -> None:
    one, two = (record(program, tmp_path / name, "100", "x") for name in ("one", "two"))
    diff = clew.diff(one, two)
    assert of_program(diff) == {}
    (image,) = [row for row in diff.to_dict()["images"] if row["a"]["image"] == str(program)]
    assert (image["matched_by"], image["differ"], image["a"]["only"]["blocks"]) == ("build_id", 0, 0)
    assert clew.diff(one, one).is_equal


def test_coverage_beside_counts(program: Path, tmp_path: Path) -> None:
    covered = record(program, tmp_path / "covered", "5", options=("--mode", "coverage"))
    counted = record(program, tmp_path / "counted", "500", "x")
    rows = of_program(clew.diff(covered, counted))
    assert set(rows) == {"seldom"}
    assert of_program(clew.diff(covered, record(program, tmp_path / "same", "500"))) == {}


def test_another_build_and_its_processes(program: Path, tmp_path: Path) -> None:
    """The function lies further on in the new build; both are run by a shell."""
    new = tmp_path / "program"
    source = tmp_path / "new.c"
    source.write_text("__attribute__((noinline)) int before(int x) { return x * 3; }\n" + SOURCE)
    subprocess.run(["gcc", "-O1", "-fno-inline", "-Wl,--build-id", "-o", new, source], check=True)
    shell = ("sh", "-c", '"$0" 20; "$0" 30; exit 0')
    traces = []
    for name, file in (("old", program), ("new", new)):
        assert runs.record([*shell, file], tmp_path / name).status == 0
        traces.append(tmp_path / name)
    diff = clew.diff(*traces)
    content = diff.to_dict(n=10_000)
    assert [pair["matched_by"] for pair in content["processes"] if pair["a"] is None or pair["b"] is None] == []
    assert any("another build" in note for note in content["notes"])
    assert of_program(diff) == {}
