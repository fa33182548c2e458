"""What several folders of tests share: the built test programs."""

from __future__ import annotations

import pytest

from tests.programs import build


@pytest.fixture(scope="session")
def programs() -> None:
    """Builds the test programs that are not up to date."""
    build.build_all()
