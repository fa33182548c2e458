"""A pytest plugin that makes property tests search much longer: `pytest -p checks.fuzz_profile`, used by `make fuzz`.

Each test keeps its own settings but runs FACTOR times its examples, from another seed each time, without deadlines.
"""

from __future__ import annotations

import os

import pytest

from checks.examples import is_property, scale_examples

FACTOR = int(os.environ.get("CLEW_FUZZ_FACTOR", "50"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the property tests only, and stretch them."""
    others = [item for item in items if not is_property(item)]
    items[:] = [item for item in items if is_property(item)]
    scale_examples(items, FACTOR, derandomize=False)
    config.hook.pytest_deselected(items=others)
