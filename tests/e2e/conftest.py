"""What tests share: the built programs of tests/programs/attach; a place for sessions of probes."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import runs
from tests.e2e.probe_sessions import Sessions
from tests.programs import build


@pytest.fixture(scope="session")
def programs_to_attach() -> Path:
    """The folder of the built programs of tests/programs/attach."""
    folder = build.BIN / "attach"
    folder.mkdir(parents=True, exist_ok=True)
    build.build_all(build.programs_to_attach())
    # Who forks is begun by its first command: programs that compute all the time need not do so meanwhile.
    assert runs.run(runs.clew_command("--version")).status == 0
    return folder


@pytest.fixture
def sessions(tmp_path: Path) -> Iterator[Sessions]:
    """A place for sessions, none of which is left at the end."""
    # A path of a socket is short.
    with tempfile.TemporaryDirectory() as state:
        one = Sessions(Path(state), tmp_path)
        try:
            yield one
        finally:
            one.destroy_all()
