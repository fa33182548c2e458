"""What the tests of attaching share: the built programs of tests/programs/attach."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e import runs
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
