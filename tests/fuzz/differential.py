"""Runs one random program natively and recorded, and says what differs.

Runs on the machine that tests, with the compiler's assembler. Knows clew by its command and its traces only.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from clew.store.trace import Trace
from tests.e2e import runs
from tests.fuzz.frame import assembly
from tests.fuzz.program import Program
from tests.oracle.compare import find_differences
from tests.oracle.steps import single_step
from tests.oracle.truth import Truth
from tests.programs.build import processor_features

MODES = ("counts", "coverage")
_NEEDED = {
    "bmi": {"bmi1", "bmi2", "adx"},
    "avx": {"avx2", "fma", "f16c", "gfni", "vaes", "vpclmulqdq"},
    "avx512": {
        "avx512f",
        "avx512bw",
        "avx512dq",
        "avx512vl",
        "avx512cd",
        "avx512_vbmi2",
        "avx512_vnni",
        "avx512_vpopcntdq",
    }
    | {"avx512_bf16", "avx512ifma", "avx512vbmi"},
}


class BadProgramError(Exception):
    """The program is wrong by itself: it does not assemble, or ends badly when nothing records it."""


@dataclass(frozen=True)
class Failure:
    """`kind` is one of output, trace, hang, counts; `details` say where."""

    kind: str
    mode: str
    details: str


@dataclass
class Executed:
    """How many instructions of random functions ran recorded in mode counts, the frame around them left out."""

    instructions: int = 0

    def add(self, recorded: runs.Recorded, binary: Path) -> None:
        images = recorded.trace.images.select(["image_id", "path"]).to_pylist()
        own = {row["image_id"] for row in images if row["path"] == str(binary)}
        rows = recorded.trace.blocks.select(["image_id", "symbol"]).to_pylist()
        is_random = np.array([row["image_id"] in own and row["symbol"] is None for row in rows], bool)
        executed = recorded.arrays.block_executions * recorded.arrays.n_instructions
        self.instructions += int(executed[is_random].sum())


def machine_features() -> frozenset[str]:
    """What this machine's processor can run of the instructions: any of "bmi", "avx", "avx512"."""
    return frozenset(feature for feature, names in _NEEDED.items() if names <= processor_features())


def build(program: Program, folder: Path) -> Path:
    """Assemble and link; BadProgramError with the assembler's words."""
    source, binary = folder / "program.S", folder / "program"
    source.write_text(assembly(program))
    link = ("-static", "-no-pie") if program.is_fixed else ("-pie",)
    done = subprocess.run(
        ["gcc", "-nostdlib", "-Wl,-z,noexecstack", *link, "-o", binary, source], capture_output=True, text=True
    )
    if done.returncode != 0:
        raise BadProgramError(done.stderr[:2000])
    return binary


def _compare(native: runs.Run, recorded: runs.Run) -> str:
    differing = [
        f"#{n}"
        for n in range(max(len(native.stdout), len(recorded.stdout)) // 8)
        if native.stdout[8 * n : 8 * n + 8] != recorded.stdout[8 * n : 8 * n + 8]
    ]
    told = recorded.stderr.decode(errors="replace")[-300:]
    return f"status {native.status} and {recorded.status}; hashes that differ: {' '.join(differing[:20])}; {told}"


def find_failure(
    program: Program, folder: Path, modes: Sequence[str] = MODES, executed: Executed | None = None
) -> Failure | None:
    """Build and run; the first failure, or None. BadProgramError when the native run is not as it should be."""
    binary = build(program, folder)
    if program.is_stepped:
        return _find_wrong_count(binary, folder)
    try:
        native = runs.run([*runs.FIXED_LAYOUT, binary], timeout_seconds=20)
    except TimeoutError as error:
        raise BadProgramError(str(error)) from None
    if native.status != 0 or native.stderr:
        raise BadProgramError(f"status {native.status} natively, {len(native.stdout)} bytes")
    for mode in modes:
        trace = folder / f"{mode}.clew"
        try:
            recorded = runs.record([binary], trace, "--mode", mode, fixed_layout=True, timeout_seconds=120)
        except TimeoutError as error:
            return Failure("hang", mode, str(error))
        if recorded != native:
            again = runs.run([*runs.FIXED_LAYOUT, binary], timeout_seconds=20)
            if again != native:
                raise BadProgramError("two native runs differ")
            return Failure("output", mode, _compare(native, recorded))
        try:
            read = runs.read(trace)
        except Exception as error:
            return Failure("trace", mode, f"{type(error).__name__}: {error}")
        if executed is not None and mode == "counts":
            executed.add(read, binary)
    return None


def _find_wrong_count(binary: Path, folder: Path) -> Failure | None:
    """Record in mode counts and single-step."""
    try:
        stepped, steps = single_step([binary], folder, timeout_seconds=120)
        truth = Truth(steps)
    except (TimeoutError, ValueError) as error:
        raise BadProgramError(f"single-stepping: {error}") from None
    if stepped.status != 0:
        raise BadProgramError(f"status {stepped.status} single-stepped")
    path = folder / "stepped.clew"
    recorded = runs.record([binary], path, fixed_layout=True)
    if recorded != stepped:
        return Failure("output", "counts", _compare(stepped, recorded))
    differences = find_differences(truth, Trace(path))
    if differences:
        return Failure("counts", "counts", f"{len(differences)} differences: {'; '.join(differences[:6])}")
    return None
