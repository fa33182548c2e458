"""A file that is written whole.

Runs in the controller. What the file is is not known here.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

__all__ = ["new_file"]


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write that becomes `path` when all of it is there. Raises OSError."""
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if path.exists() and not path.is_file():
        # A device or a pipe: a rename would put a file in its place.
        with path.open("wb") as file:
            yield file
        return
    # What a link leads to is replaced, not the link.
    whole = path.resolve()
    unfinished = whole.with_name(f".{whole.name}.unfinished")
    try:
        with unfinished.open("wb") as file:
            yield file
        os.replace(unfinished, whole)
    except BaseException:
        with contextlib.suppress(OSError):
            unfinished.unlink(missing_ok=True)
        raise
