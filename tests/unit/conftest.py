"""A small good trace, for the tests of everything that reads traces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from clew.store.trace import Trace
from tests.unit.small_trace import MakeTrace, Rows, small_trace, write_trace


@pytest.fixture
def rows() -> Rows:
    """The rows of a small good trace, by table; change them, then `make_trace`."""
    return small_trace()


@pytest.fixture
def make_trace(tmp_path: Path) -> MakeTrace:
    """Writes rows as a trace and opens it. Keywords replace fields of the manifest."""

    def make(tables: Rows, name: str = "t.clew", **fields: Any) -> Trace:
        return write_trace(tables, tmp_path / name, **fields)

    return make
