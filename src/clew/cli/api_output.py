"""The file that `clew api` writes to.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TextIO

from clew.errors import OutputError

__all__ = ["open_output"]


@contextmanager
def open_output(path: Path) -> Iterator[TextIO]:
    """A file to write text to. Raises OutputError where it can't be opened, or what is written finds no room."""
    try:
        out = path.open("w", encoding="utf-8")
    except OSError as error:
        raise OutputError.from_os_error(path, error) from error
    try:
        yield out
        out.close()
    except OSError as error:
        # Others name the file that they are about; a pipe that nobody reads is none's business.
        if error.filename is not None or isinstance(error, BrokenPipeError):
            raise
        raise OutputError.from_os_error(path, error) from error
    finally:
        # What found no room is tried once more.
        with suppress(OSError):
            out.close()
