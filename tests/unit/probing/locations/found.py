"""What is found in a file for a place, and what nm and gdb say of that file."""

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

Build = Callable[..., Path]
"""Gives the program that a compiler makes of some sources with some flags (the fixture `build`)."""


def resolve(path: Path, text: str, *, with_inlined: bool = False) -> Resolution:
    """What a place means in a file."""
    with open_image(path) as image:
        return resolve_in_image(image, parse_location(text), with_inlined=with_inlined)


def addresses(path: Path, text: str, *, with_inlined: bool = False) -> list[int]:
    """The link addresses of the places that are meant."""
    return [place.address for place in resolve(path, text, with_inlined=with_inlined).places]


def functions_of(path: Path, *options: str) -> list[tuple[int, str]]:
    """Addresses and names of functions, as nm has them."""
    command = ["nm", "--defined-only", "-f", "sysv", *options, str(path)]
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
