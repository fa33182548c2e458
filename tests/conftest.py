"""What several folders of tests share: the built test programs, and that no example has a limit of time."""

from __future__ import annotations

import pytest
from hypothesis import settings

from tests.programs import build

# Hypothesis gives each example 200 ms otherwise: on a busy machine that is luck. The same examples each time, for a
# test says the same twice; other ones are searched for by `make fuzz`.
settings.register_profile("any-machine", deadline=None, derandomize=True)
settings.load_profile("any-machine")


@pytest.fixture(scope="session")
def programs() -> None:
    """Builds the test programs that are not up to date."""
    build.build_all()
