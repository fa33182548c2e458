"""Trees of processes made in every way, whose members end in any order: each is in the trace, with who made it."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e import runs
from tests.programs.build import SOURCES

TREES = int(os.environ.get("CLEW_TREES", "200"))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("tree") / "tree"
    subprocess.run(["gcc", "-O1", "-pthread", "-o", program, SOURCES / "load" / "tree.c"], check=True)
    return program


def compare(tree: Path, seed: int, depth: int, trace: Path) -> None:
    run = runs.record([tree, str(seed), str(depth)], trace)
    recorded = runs.read(trace)
    made: dict[int, tuple[int, int | None]] = {}
    for row in recorded.summary["processes"]:
        first = made.get(row["pid"])
        made[row["pid"]] = (row["parent_pid"] if first is None else first[0], row["exit"].get("code"))
    told: dict[int, tuple[int, int]] = {}
    for line in run.stdout.splitlines():
        pid, maker, code = map(int, line.split())
        told[pid] = (maker or made[pid][0], code)
    assert made == told, f"tree {seed} of depth {depth}"


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_each_process_of_a_tree(tree: Path, tmp_path: Path, seed: int) -> None:
    compare(tree, seed, 4, tmp_path / "t")


@pytest.mark.stress
@pytest.mark.timeout(0)
def test_each_process_of_many_trees(tree: Path, tmp_path: Path) -> None:
    for seed in range(1, TREES + 1):
        compare(tree, seed, 3 + seed % 3, tmp_path / str(seed))
