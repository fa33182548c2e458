"""From measurements to ratios and means."""

from __future__ import annotations

import pytest

from bench.engine import find_ns_per_instruction
from bench.ratios import geometric_mean, ratios, spread


def test_a_ratio_is_without_the_tools_own_start_and_divided_by_the_median_native_run() -> None:
    assert ratios([1.3, 2.3], [0.5, 1.0, 9.0], base_seconds=0.3) == pytest.approx([1.0, 2.0])


def test_a_ratio_is_never_negative() -> None:
    assert ratios([0.2], [0.1], base_seconds=0.3) == [0.0]


def test_spread_keeps_the_ends() -> None:
    assert spread([3.0, 1.0, 2.0]).to_json() == {"median": 2.0, "least": 1.0, "greatest": 3.0}


def test_there_is_no_geometric_mean_of_nothing_or_of_zero() -> None:
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)
    assert geometric_mean([]) is None
    assert geometric_mean([1.0, 0.0]) is None


def test_translation_is_timed_above_native() -> None:
    assert find_ns_per_instruction(1_000_000, target_seconds=0.35, native_seconds=0.1) == pytest.approx(250.0)
    assert find_ns_per_instruction(10, target_seconds=0.1, native_seconds=0.2) == 0.0
