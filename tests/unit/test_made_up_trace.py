"""Made up traces are good ones: nothing that the viewer's tests find is the fault of what they look at."""

from __future__ import annotations

from pathlib import Path

import pytest

from clew.analysis.invariants.check import check_invariants
from clew.analysis.trace import Trace
from tests.web.made_up_trace import write_made_up_trace


@pytest.mark.parametrize(("n_blocks", "n_threads"), [(150, 1), (600, 3), (10_000, 4), (20_000, 1)])
def test_made_up_traces_are_well_formed(tmp_path: Path, n_blocks: int, n_threads: int) -> None:
    made = write_made_up_trace(tmp_path / "t.clew", n_blocks, n_threads=n_threads)
    assert made.n_blocks == n_blocks
    assert made.executions.any(axis=0).all(), "a block that was never executed is none"
    assert check_invariants(Trace(made.directory)) == []


def test_made_up_calls_are_well_formed(tmp_path: Path) -> None:
    made = write_made_up_trace(tmp_path / "t.clew", 600, n_threads=3, n_children=2, n_calls=500)
    trace = Trace(made.directory)
    assert (trace.n_rows("calls"), trace.n_rows("entities")) == (502, 1 + 3 + 5 + 3 + 2)
    for piece_rows in (1, None):
        assert check_invariants(trace, piece_rows=piece_rows) == []


def test_the_same_arguments_make_the_same_trace(tmp_path: Path) -> None:
    made = [write_made_up_trace(tmp_path / name, 800, n_threads=2, seed=5) for name in ("a", "b")]
    assert (made[0].executions == made[1].executions).all()
    other = write_made_up_trace(tmp_path / "c", 800, n_threads=2, seed=6)
    assert other.executions.tolist() != made[0].executions.tolist()


def test_too_few_blocks_for_the_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="too few"):
        write_made_up_trace(tmp_path / "t.clew", 60, names=["name"] * 50)
