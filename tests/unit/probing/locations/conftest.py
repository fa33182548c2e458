"""Programs among whose functions places are looked for, compiled once; and what gdb says of them."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from clew.probing.locations.image_file import open_image
from clew.probing.locations.place import Resolution
from clew.probing.locations.resolve import resolve_in_image
from clew.probing.locations.syntax import parse_location
from tests.programs.build import SOURCES

FOLDER = SOURCES / "locations"

Build = Callable[..., Path]


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


def resolve(path: Path, text: str, *, with_inlined: bool = False) -> Resolution:
    """What a place means in a file."""
    with open_image(path) as image:
        return resolve_in_image(image, parse_location(text), with_inlined=with_inlined)


def addresses(path: Path, text: str, *, with_inlined: bool = False) -> list[int]:
    """The link addresses of the places that are meant."""
    return [place.address for place in resolve(path, text, with_inlined=with_inlined).places]


def functions_of(path: Path, *options: str) -> list[tuple[int, str]]:
    """Addresses and names of functions, as nm has them."""
    command = ["nm", "--defined-only", "-f", "sysv", *options, path]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    rows = [[cell.strip() for cell in line.rsplit("|", 6)] for line in done.stdout.splitlines() if line.count("|") > 5]
    # Class W is of weak variables, too; only what is in .text has class T without being told to be a function.
    return [(int(row[1], 16), row[0]) for row in rows if row[2] in "tTi" or (row[2] == "W" and row[3] == "FUNC")]


def ask_gdb(path: Path, *commands: str) -> str:
    """What gdb says of a program that is not started."""
    if shutil.which("gdb") is None:
        pytest.skip("gdb is not here")
    arguments = [part for command in commands for part in ("-ex", command)]
    done = subprocess.run(
        ["gdb", "-nx", "-batch", "-ex", "set width 0", *arguments, path], capture_output=True, text=True, timeout=60
    )
    return done.stdout
