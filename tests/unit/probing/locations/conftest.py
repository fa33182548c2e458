"""Programs among whose functions places are looked for, compiled once."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.programs.build import SOURCES
from tests.unit.probing.locations.found import Build

FOLDER = SOURCES / "locations"


@pytest.fixture(scope="session")
def build(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Gives the program that a compiler makes of some sources with some flags."""
    folder = tmp_path_factory.mktemp("locations")
    made: dict[tuple[str, ...], Path] = {}

    def make(compiler: str, *arguments: str) -> Path:
        key = (compiler, *arguments)
        if key not in made:
            if shutil.which(compiler) is None:
                pytest.skip(f"{compiler} is not here")
            path = folder / f"program-{len(made)}"
            sources = [str(FOLDER / one) if (FOLDER / one).exists() else one for one in arguments]
            subprocess.run([compiler, *sources, "-o", path], check=True, capture_output=True)
            made[key] = path
        return made[key]

    return make
