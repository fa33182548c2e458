"""Mode full: the path of a thread, unfolded, is the sequence of single-stepping, instruction by instruction."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import pytest

import clew
from tests.e2e import runs
from tests.oracle.steps import SteppedOnce
from tests.oracle.test_exact import cases, programs_with
from tests.oracle.truth import Decoder, Instruction, Truth
from tests.programs.build import Program, build_one

# Each way in which control goes on, and code that changes: the others are stress, as is `rep`, which takes long.
QUICK = {
    *("recursion.static", "virtual_calls.static", "loop_instructions", "changed_return"),
    *("long_jumps", "signal_return", "fatal_segv", "code_rewritten", "code_returned_to", "returns_elsewhere"),
}


def stepped_instructions(truth: Truth) -> Iterator[tuple[int, bytes]]:
    """Address and bytes of what ran, in order; what only waited for a handler, or faulted, did not."""
    for instruction, has_run, _ in truth.path:
        if has_run:
            yield instruction.pc, instruction.code


def recorded_instructions(trace: clew.Trace) -> Iterator[tuple[int, bytes]]:
    """The same of a trace's first thread."""
    decoder = Decoder()
    blocks: dict[int, list[Instruction]] = {}
    for row in trace.blocks.select(["block_id", "app_pc", "bytes"]).to_pylist():
        listed = blocks[row["block_id"]] = []
        at = 0
        while at < len(row["bytes"]):
            listed.append(decoder.decode(row["app_pc"] + at, row["bytes"][at:]))
            at += max(len(listed[-1].code), 1)
    for block_id in trace.path():
        for instruction in blocks[block_id]:
            yield instruction.pc, instruction.code


def check(command: runs.Command, step: SteppedOnce, folder: Path) -> None:
    """Step and record a command; the orders of execution must be the same."""
    stepped, steps = step(command)
    trace = folder / "trace.clew"
    assert runs.record(command, trace, "--mode", "full", fixed_layout=True) == stepped
    runs.read(trace)
    pairs = zip_longest(stepped_instructions(Truth(steps)), recorded_instructions(clew.Trace(trace)))
    for number, (expected, found) in enumerate(pairs):
        assert expected == found, f"instruction {number}: stepped {_tell(expected)}, recorded {_tell(found)}"


def _tell(instruction: tuple[int, bytes] | None) -> str:
    return "nothing" if instruction is None else f"{instruction[0]:#x} {instruction[1].hex()}"


PROGRAMS = [
    case
    for trait in ("oracle", "oracle-instructions", "oracle-long")
    for program in programs_with(trait)
    for case in cases(program, is_stress=program.name not in QUICK)
]


@pytest.mark.usefixtures("programs")
@pytest.mark.timeout(1000)
@pytest.mark.parametrize("program", PROGRAMS)
def test_program(program: Program, step_once: SteppedOnce, tmp_path: Path) -> None:
    if program.missing:
        pytest.skip(f"this machine has no {', '.join(program.missing)}")
    build_one(program)
    check([program.path], step_once, tmp_path)
