"""A pytest plugin that makes property tests search much longer: `pytest -p checks.fuzz_profile`, used by `make fuzz`.

Each test keeps its own settings but runs FACTOR times its examples, from another seed each time, without deadlines.
"""

from __future__ import annotations

import os

import pytest
from hypothesis import is_hypothesis_test, settings

FACTOR = int(os.environ.get("CLEW_FUZZ_FACTOR", "50"))

# Hypothesis applies settings by a decorator that may be used once; this is the attribute it leaves on the test.
_SETTINGS = "_hypothesis_internal_use_settings"


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the property tests only, and stretch them."""
    stretched: list[pytest.Item] = []
    seen: set[object] = set()  # parametrized tests share their function
    others: list[pytest.Item] = []
    for item in items:
        test = getattr(item, "obj", None)
        if test is None or not is_hypothesis_test(test):
            others.append(item)
            continue
        function = getattr(test, "__func__", test)
        stretched.append(item)
        if function in seen:
            continue
        seen.add(function)
        # After @settings the attribute is there; without, the test runs by the profile in force.
        own = getattr(function, _SETTINGS, settings.default)
        assert own is not None
        longer = settings(own, max_examples=own.max_examples * FACTOR, deadline=None, derandomize=False)
        setattr(function, _SETTINGS, longer)
    items[:] = stretched
    config.hook.pytest_deselected(items=others)
