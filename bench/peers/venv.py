"""The virtual environment that `make bench-peers` makes for peers out of PyPI, apart from clew's own.

Knows where it is and which versions it has; installs nothing.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

VENV = Path(__file__).resolve().parents[2] / "build" / "peers-venv"
PYTHON = VENV / "bin" / "python"
INSIDE = Path(__file__).resolve().parent / "inside"


@cache
def find_version(package: str) -> str:
    """The installed version of a package. FileNotFoundError, told to people, where it is not installed."""
    for found in VENV.glob("lib/python3*/site-packages/*.dist-info"):
        name, _, version = found.name.removesuffix(".dist-info").partition("-")
        if name.lower() == package.lower():
            return version
    raise FileNotFoundError("not installed: `make bench-peers` does it")
