"""Property tests take as many examples as they are told to."""

from __future__ import annotations

from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checks.examples import FEWEST, is_property, scale_examples


def properties(*, max_examples: int) -> tuple[list[Any], list[int]]:
    """A property test, twice, as if it had parameters; and the examples that it is given."""
    given_to_it: list[int] = []

    @settings(max_examples=max_examples, deadline=None, database=None)
    @given(st.integers(0, 10**9))
    def test(value: int) -> None:
        given_to_it.append(value)

    return [SimpleNamespace(obj=test), SimpleNamespace(obj=test)], given_to_it


@pytest.mark.parametrize(
    ("before", "factor", "after"),
    [(40, Fraction(1, 4), 10), (40, 3, 120), (12, Fraction(1, 4), FEWEST), (3, Fraction(1, 4), 3)],
)
def test_there_are_so_many(before: int, factor: Fraction | int, after: int) -> None:
    items, given_to_it = properties(max_examples=before)
    scale_examples(items, factor)
    items[0].obj()
    assert len(given_to_it) == after


def test_other_tests_are_let_be() -> None:
    plain: Any = SimpleNamespace(obj=lambda: None)
    assert not is_property(plain) and not is_property(SimpleNamespace())  # type: ignore[arg-type]
    scale_examples([plain], 50)
