"""How many examples property tests take: more of them in long searches, fewer where there is little time.

Runs with pytest. Each test keeps what else its settings say.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

import pytest
from hypothesis import is_hypothesis_test, settings

FEWEST = 5

# Hypothesis applies settings by a decorator that may be used once; this is the attribute it leaves on the test.
_SETTINGS = "_hypothesis_internal_use_settings"


def is_property(item: pytest.Item) -> bool:
    """Whether a test takes examples."""
    test = getattr(item, "obj", None)
    return test is not None and is_hypothesis_test(test)


def scale_examples(items: Iterable[pytest.Item], factor: Fraction | int, *, derandomize: bool = True) -> None:
    """Give property tests `factor` times their examples, but no fewer than FEWEST if they have so many.

    Without limits of time for one; the same ones each time, or other ones.
    """
    seen: set[object] = set()  # parametrized tests share their function
    for item in items:
        if not is_property(item):
            continue
        test = item.obj  # type: ignore[attr-defined]
        function = getattr(test, "__func__", test)
        if function in seen:
            continue
        seen.add(function)
        # After @settings the attribute is there; without, the test runs by the profile in force.
        own = getattr(function, _SETTINGS, settings.default)
        assert own is not None
        wanted = max(int(own.max_examples * factor), min(own.max_examples, FEWEST))
        setattr(function, _SETTINGS, settings(own, max_examples=wanted, deadline=None, derandomize=derandomize))
