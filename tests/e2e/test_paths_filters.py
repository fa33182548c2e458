"""Mode full with filters: the order leads through all code, and what filters leave out is not counted."""

from __future__ import annotations

from pathlib import Path

import pytest

import clew
from clew.store.trace import Trace
from tests.e2e import runs

COMMAND = ("/bin/ls", "/")


def executed_places(path: Path, count: int) -> list[bytes]:
    """The first instructions' addresses."""
    run = runs.run(runs.clew_command("dump", "--instructions", "--json", "--count", str(count), path))
    assert run.status == 0, run.stderr
    return [line.split(b'"')[5] for line in run.stdout.splitlines()]


@pytest.mark.parametrize("options", [("--exclude", "libc.so*"), ("--exclude", "ls"), ("--include", "ls")])
@pytest.mark.long
def test_the_order_leads_through_what_is_left_out(tmp_path: Path, options: tuple[str, ...]) -> None:
    paths = {name: tmp_path / f"{name}.clew" for name in ("whole", "full", "counts")}
    assert runs.record(COMMAND, paths["whole"], "--mode", "full", fixed_layout=True).status == 0
    assert runs.record(COMMAND, paths["full"], "--mode", "full", *options, fixed_layout=True).status == 0
    assert runs.record(COMMAND, paths["counts"], "--mode", "counts", *options, fixed_layout=True).status == 0
    for path in paths.values():
        runs.read(path)
    assert runs.counts_by_place(paths["full"]) == runs.counts_by_place(paths["counts"])
    whole, full = clew.Trace(paths["whole"]).path(), clew.Trace(paths["full"]).path()
    assert full.instructions == whole.instructions
    assert executed_places(paths["full"], 5000) == executed_places(paths["whole"], 5000)
    recorded = {row["block_id"]: row["is_recorded"] for row in Trace(paths["full"]).blocks.to_pylist()}
    assert {recorded[block] for block in set(full)} == {True, False}
