"""The programs and the library of these tests."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from tests.programs.build import SOURCES, build_plain

# What differs is shown.
pytest.register_assert_rewrite("tests.sessions.beside_native")


@pytest.fixture(scope="session")
def called() -> Path:
    """The program of tests/programs/sessions/called.c, with debug information."""
    return build_plain(SOURCES / "sessions/called.c", "-O1", "-g", "-pthread", "-fno-inline", "-fno-ipa-cp")


@pytest.fixture(scope="session")
def library() -> Path:
    """The library of tests/programs/sessions/own_calls.c."""
    return build_plain(
        SOURCES / "sessions/own_calls.c", "-O1", "-g", "-shared", "-fPIC", "-fno-builtin", "-Wl,-Bsymbolic"
    )


@pytest.fixture(scope="session")
def own(library: Path) -> ctypes.CDLL:
    """It, loaded here."""
    return ctypes.CDLL(str(library))
