"""What the tests of attaching share: the built programs of tests/programs/attach."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.programs.build import SOURCES, parse_head


@pytest.fixture(scope="session")
def programs_to_attach(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the built programs of tests/programs/attach."""
    folder = tmp_path_factory.mktemp("attach")
    folder.chmod(0o755)
    for source in sorted((SOURCES / "attach").glob("*.c")):
        for program in parse_head(source):
            files = ["-o", str(folder / program.name), str(source)]
            subprocess.run(["gcc", "-Wall", "-Wextra", "-Werror", *program.flags, *files], check=True)
    return folder
