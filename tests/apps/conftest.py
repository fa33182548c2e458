"""Inputs of the whole programs that are recorded: made once, the same everywhere."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench import inputs


@pytest.fixture(scope="session")
def text() -> Path:
    """Three megabytes of words."""
    return inputs.make_text(3 * inputs.MEGABYTE)


@pytest.fixture(scope="session")
def c_source() -> Path:
    """A preprocessed C file of 60 functions."""
    return inputs.make_c_source(60)


@pytest.fixture(scope="session")
def sql() -> Path:
    """A script that fills, joins and changes tables of 20,000 rows."""
    return inputs.make_sql(20_000)
