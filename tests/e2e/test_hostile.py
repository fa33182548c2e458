"""What a target writes over the memory it shares with clew costs its trace, and nothing else."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.e2e import runs
from tests.programs.build import SOURCES

SEEDS = int(os.environ.get("CLEW_SCRIBBLES", "6"))
TIMEOUT_SECONDS = 60.0


def build_scribble(folder: Path, name: str = "scribble") -> Path:
    """A program that writes over what it, or its parent, shares with clew."""
    path = folder / name
    subprocess.run(["gcc", "-O1", "-o", path, SOURCES / "hostile" / f"{name}.c"], check=True)
    return path


def check_scribbles(scribble: Path, folder: Path, seed: int, n_words: int) -> None:
    """However the target fares by it: clew ends, says what it knows in lines, and shows no traceback."""
    trace = folder / "t"
    command = runs.clew_command("record", "-o", trace, "--", scribble, str(seed), str(n_words))
    run = runs.run(command, timeout_seconds=TIMEOUT_SECONDS)
    assert b"Traceback" not in run.stderr and b"internal error" not in run.stderr, run.stderr
    assert run.status not in (3, 4), "the program did not find the shared memory"
    if (trace / "manifest.json").exists():
        for subcommand in ("info", "verify", "report"):
            shown = runs.run(runs.clew_command(subcommand, trace), timeout_seconds=TIMEOUT_SECONDS)
            assert b"Traceback" not in shown.stderr and b"internal error" not in shown.stderr, shown.stderr


@pytest.fixture(scope="session")
def outlives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program whose memory a task shares that outlives it."""
    path = tmp_path_factory.mktemp("outlives") / "outlives"
    subprocess.run(["gcc", "-O1", "-o", path, SOURCES / "hostile" / "outlives.c"], check=True)
    return path


@pytest.mark.parametrize(
    ("how", "turns"),
    [
        ("vfork", 1000),
        ("execve", 1010),
        *(pytest.param(how, 1010, marks=pytest.mark.long) for how in ("exit", "killed")),
    ],
)
def test_a_task_that_outlives_its_process_is_followed_to_its_end(
    outlives: Path, tmp_path: Path, how: str, turns: int
) -> None:
    native = runs.run([outlives, how])
    assert native.stdout == b"done\n"
    assert runs.record([outlives, how], tmp_path / "t") == native
    recorded = runs.read(tmp_path / "t")
    symbols = recorded.trace.blocks.select(["symbol", "symbol_offset"]).to_pylist()
    (row,) = (n for n, symbol in enumerate(symbols) if symbol == {"symbol": "turn", "symbol_offset": 0})
    assert recorded.arrays.block_executions[row] == turns
    assert recorded.summary["processes"][0]["threads"][1]["end"] == "exit"


@pytest.fixture(scope="session")
def scribble(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_scribble(tmp_path_factory.mktemp("hostile"))


@pytest.mark.parametrize("n_words", [3, 300])
@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=pytest.mark.long if seed > 1 else ()) for seed in range(SEEDS)]
)
def test_scribbles_over_shared_memory(scribble: Path, tmp_path: Path, seed: int, n_words: int) -> None:
    check_scribbles(scribble, tmp_path, seed, n_words)


@pytest.fixture(scope="session")
def scribble_parent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_scribble(tmp_path_factory.mktemp("hostile"), "scribble_parent")


# After 2000 words clew waits 20 seconds for processes that it can't make sense of any more: for the long runs.
@pytest.mark.parametrize("n_words", [20, pytest.param(2000, marks=pytest.mark.stress)])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.stress)])
def test_children_that_scribble_over_what_their_parent_shares(
    scribble_parent: Path, tmp_path: Path, seed: int, n_words: int
) -> None:
    """All processes of a family share one file, so that a child can map its parent's rings."""
    check_scribbles(scribble_parent, tmp_path, seed, n_words)
