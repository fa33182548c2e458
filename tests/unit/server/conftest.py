"""The traces that the server's tests ask for: made of rows, made up, and recorded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from clew.server.app import make_app
from clew.server.served_trace import ServedTrace
from tests.e2e import runs
from tests.unit.server.asking import LOOPBACK, TOKEN
from tests.web.made_up_trace import write_made_up_trace

if TYPE_CHECKING:
    from starlette.applications import Starlette


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A page as it is built."""
    folder = tmp_path_factory.mktemp("page")
    (folder / "index.html").write_text("the page")
    return folder


@pytest.fixture(scope="session")
def every_mode(tmp_path_factory: pytest.TempPathFactory, page: Path) -> Starlette:
    """Serves as number 0 a made up trace of some threads (mode counts), as 1 and 2 a program recorded in the modes with
    an order, `full` and `region`, and as 3 a made up trace with recorded calls."""
    folder = tmp_path_factory.mktemp("every-mode")
    text = folder / "text"
    text.write_bytes(b"again and again " * 400)
    write_made_up_trace(folder / "counts.clew", 600, n_threads=3)
    write_made_up_trace(folder / "calls.clew", 600, n_threads=2, n_children=2, n_calls=400)
    for mode in ("full", "region"):
        runs.record(["/usr/bin/gzip", "-kc", text], folder / f"{mode}.clew", "--mode", mode)
    names = ("counts.clew", "full.clew", "region.clew", "calls.clew")
    return make_app([ServedTrace(folder / name, index) for index, name in enumerate(names)], TOKEN, LOOPBACK, page)
