"""A few random programs of each kind, and what the fuzzer itself promises."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fuzz import corruption, elf_headers
from tests.fuzz.differential import find_failure, machine_features
from tests.fuzz.frame import assembly
from tests.fuzz.program import Program, Variant, make_program, make_stepped_program
from tests.fuzz.shrink import shrink

SEEDS = (1,)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("variant", Variant, ids=lambda variant: variant.value)
def test_random_program_recorded_like_native(variant: Variant, seed: int, tmp_path: Path) -> None:
    assert find_failure(make_program(seed, machine_features(), 20, variant), tmp_path) is None


def test_random_program_counted_like_stepped(tmp_path: Path) -> None:
    assert find_failure(make_stepped_program(1, 10), tmp_path) is None


@pytest.mark.long
def test_damaged_traces_are_told_of(tmp_path: Path) -> None:
    corruption.make_traces(tmp_path)
    wrong = {seed: corruption.fuzz_one(seed, tmp_path, tmp_path / "failures") for seed in range(1, 9)}
    assert not any(wrong.values()), wrong


def test_damaged_programs_end_like_native(tmp_path: Path) -> None:
    driver = elf_headers.build_driver(tmp_path)
    batch = elf_headers.make_batch(tmp_path, elf_headers.make_bases(tmp_path), driver, range(1, 13))
    assert not elf_headers.find_differences(driver, batch, tmp_path)


@pytest.mark.parametrize("variant", Variant, ids=lambda variant: variant.value)
def test_programs_come_from_their_seed(variant: Variant) -> None:
    features = frozenset({"bmi", "avx", "avx512"})
    first, again, other = (assembly(make_program(seed, features, 5, variant)) for seed in (7, 7, 8))
    assert first == again != other


def test_shrinking_leaves_what_fails() -> None:
    program = make_program(3, frozenset(), 10, Variant.PLAIN)
    wanted = next(piece for function in program.functions[5:] for block in function.blocks for piece in block.body)

    def pieces(candidate: Program) -> list[tuple[str, ...]]:
        return [piece for function in candidate.functions for block in function.blocks for piece in block.body]

    small = shrink(program, lambda candidate: wanted in pieces(candidate), limit_seconds=10)
    assert pieces(small) == [wanted]
    assert small.repetitions == 1
    assert all(label in assembly(small) for label in ("function5:", "function9:"))
