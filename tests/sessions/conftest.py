"""The programs of these tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.build import SOURCES, build_plain


@pytest.fixture(scope="session")
def called() -> Path:
    """The program of tests/programs/sessions/called.c, with debug information."""
    return build_plain(SOURCES / "sessions/called.c", "-O1", "-g", "-pthread", "-fno-inline", "-fno-ipa-cp")
