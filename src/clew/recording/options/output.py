"""The directory of a trace: its name, how it is made and removed.

Runs in the controller.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from clew.errors import OutputError, OutputExistsError, UsageError

__all__ = ["default_output", "make_directory", "remove_directory"]

MAX_DEFAULT_NAMES: Final = 10_000


def default_output(program: str) -> Path:
    """`PROGRAM.clew` in the working directory, with a number if there is one already."""
    name = os.path.basename(program) or "trace"
    for number in range(1, MAX_DEFAULT_NAMES):
        path = Path(f"{name}.clew" if number == 1 else f"{name}-{number}.clew")
        if not os.path.lexists(path):
            return path
    raise UsageError(f"{name}.clew and {MAX_DEFAULT_NAMES} more names are taken; choose one")


def make_directory(path: Path) -> None:
    """Make the directory of a trace. Raises OutputExistsError, or OutputError with the reason."""
    try:
        path.mkdir()
    except FileExistsError as error:
        raise OutputExistsError(path) from error
    except FileNotFoundError as error:
        if path.parent.is_dir():
            raise OutputError(path, "no directory can be made there; choose another place with -o") from error
        raise OutputError(
            path, f"the directory {path.parent} does not exist; make it, or choose another with -o"
        ) from error
    except OSError as error:
        raise OutputError.from_os_error(path, error) from error


def remove_directory(path: Path) -> None:
    """Remove a directory with all that is in it, as far as that is possible."""
    # Late: it brings three libraries for compression along, and is needed where something failed only.
    import shutil

    shutil.rmtree(path, ignore_errors=True)
