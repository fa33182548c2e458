"""Trees of processes made in every way, whose members end in any order: each is in the trace, with who made it."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.e2e import runs
from tests.programs.build import SOURCES, find

TREES = int(os.environ.get("CLEW_TREES", "200"))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("tree") / "tree"
    subprocess.run(["gcc", "-O1", "-pthread", "-o", program, SOURCES / "load" / "tree.c"], check=True)
    return program


def compare(tree: Path, seed: int, depth: int, trace: Path, *, kills: bool = False) -> None:
    environ = runs.environment() | ({"TREE_KILLS": "1"} if kills else {})
    run = runs.record([tree, str(seed), str(depth)], trace, environ=environ)
    recorded = runs.read(trace)
    made: dict[int, tuple[int, int | None]] = {}
    for row in recorded.summary["processes"]:
        first = made.get(row["pid"])
        code = -row["exit"]["signal"] if "signal" in row["exit"] else row["exit"]["code"]
        made[row["pid"]] = (row["parent_pid"] if first is None else first[0], code)
    lines = [line.split() for line in run.stdout.splitlines()]
    killed = {int(words[0]) for words in lines if words[1] == b"killed"}
    told = {int(words[0]): (int(words[1]), int(words[2])) for words in lines if words[1] != b"killed"}
    for pid, (maker, code) in told.items():
        ends = {code, -signal.SIGKILL} if pid in killed else {code}
        assert made[pid][1] in ends, f"tree {seed}: process {pid}"
        assert maker in (0, made[pid][0]), f"tree {seed}: process {pid}"
    # Who was killed may not have come to say anything, not even to the recorder.
    assert made.keys() - told.keys() <= killed <= made.keys(), f"tree {seed}"


@pytest.mark.parametrize("kills", [pytest.param(False, marks=pytest.mark.long), True])
@pytest.mark.parametrize("seed", [1, *(pytest.param(seed, marks=pytest.mark.long) for seed in (2, 3))])
def test_each_process_of_a_tree(tree: Path, tmp_path: Path, seed: int, *, kills: bool) -> None:
    compare(tree, seed, 4, tmp_path / "t", kills=kills)


@pytest.mark.usefixtures("programs")
@pytest.mark.parametrize("mode", ["counts", pytest.param("full", marks=pytest.mark.long)])
def test_children_that_are_killed_at_their_birth(tmp_path: Path, mode: str) -> None:
    run = runs.record([find("children_killed").path, "15"], tmp_path / "t", "--mode", mode)
    recorded = runs.read(tmp_path / "t")
    first, *children = recorded.summary["processes"]
    assert len(children) == int(run.stdout.splitlines()[-1]) - 1 == 60
    assert {child["parent_pid"] for child in children} == {first["pid"]}
    assert [child["exit"] for child in children] == [{"signal": signal.SIGKILL}] * 60
    assert not recorded.trace.manifest.warnings


@pytest.mark.stress
@pytest.mark.timeout(0)
@pytest.mark.parametrize("kills", [False, True])
def test_each_process_of_many_trees(tree: Path, tmp_path: Path, *, kills: bool) -> None:
    for seed in range(1, TREES + 1):
        compare(tree, seed, 3 + seed % 3, tmp_path / str(seed), kills=kills)
