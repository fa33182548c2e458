"""Traces for the tests of commands."""

from __future__ import annotations

import pytest

from tests.unit.small_trace import MakeTrace, Rows


@pytest.fixture
def trace(make_trace: MakeTrace, rows: Rows) -> str:
    """Where the small trace is."""
    return str(make_trace(rows).directory)
