"""What is translated before it is executed does as what is translated when it is: of whole programs, in any order."""

from __future__ import annotations

import subprocess
from pathlib import Path
from random import Random

import pytest

import clew
from tests.programs.build import BIN, build_one, catalogue

PROGRAMS = ("rseq_shapes", "rseq_abort", "code_rewritten", "overlapping", "signal_faults", "fork_threads", "recursion")
EACH_TIME = ("rseq_shapes", "code_rewritten", "overlapping")


def run_session(path: Path, mode: str, offsets: list[int] | None) -> tuple[bytes, int, list[int], int]:
    """What it prints and ends with; its own blocks, as distances; how many of `offsets` were translated ahead."""
    with clew.spawn([path], mode=mode, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as session:
        own = [image for image in session.images if image.path == str(path)]
        base = min(image.base for image in own)
        if offsets is not None:
            session.prefetch([base + offset for offset in offsets])
        session.resume()
        assert session.stdout is not None
        try:
            exit_code = session.wait(60)
        except TimeoutError:
            session.kill()
            raise
        blocks = {row["app_pc"] for row in session.trace.blocks.to_pylist()}
        inside = [pc - base for pc in blocks if any(image.start <= pc < image.end for image in own)]
        assert not session.trace.verify()
        return session.stdout.read(), exit_code, sorted(inside), session.statistics["prefetched"]


@pytest.mark.parametrize("mode", ["counts", pytest.param("full", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name in EACH_TIME else pytest.mark.long) for name in PROGRAMS]
)
def test_programs_do_as_natively(name: str, mode: str) -> None:
    build_one(next(program for program in catalogue() if program.name == name))
    path = BIN / name
    native = subprocess.run([path], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=60, check=False)
    *plain, offsets, _ = run_session(path, mode, None)
    Random(3).shuffle(offsets)
    *ahead, _, n_ahead = run_session(path, mode, offsets)
    assert ahead == plain == [native.stdout, native.returncode]
    assert n_ahead > len(offsets) // 2
