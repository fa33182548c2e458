"""What the tests of attaching share: the built programs of tests/programs/attach."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs import build


@pytest.fixture(scope="session")
def programs_to_attach() -> Path:
    """The folder of the built programs of tests/programs/attach."""
    folder = build.BIN / "attach"
    folder.mkdir(parents=True, exist_ok=True)
    build.build_all(build.programs_to_attach())
    return folder
