"""What several folders of tests share: the built test programs, no limit of time for examples, nothing left behind."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import settings

from checks.examples import scale_examples
from tests import left_behind
from tests.e2e.forked import end_servers
from tests.programs import build

# Hypothesis gives each example 200 ms otherwise: on a busy machine that is luck. The same examples each time, for a
# test says the same twice; other ones are searched for by `make fuzz`.
settings.register_profile("any-machine", deadline=None, derandomize=True)
settings.load_profile("any-machine")


FEW_EXAMPLES = Fraction(1, 4)
"""Of property tests, where what takes long is left out."""


def pytest_configure(config: pytest.Config) -> None:
    """What a run leaves behind is looked for at its end."""
    config.pluginmanager.register(left_behind)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Property tests are quicker in `make test`; the long runs, and whoever names no marks, try all their examples."""
    if "not long" in config.getoption("markexpr"):
        scale_examples(items, FEW_EXAMPLES)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish() -> None:
    """Ends what this process shares among its tests without a fixture."""
    end_servers()


@pytest.fixture(scope="session")
def programs() -> None:
    """Builds the test programs that are not up to date."""
    build.build_all()
