"""A folder of files that is written whole: what formats of several files go to.

Runs in the controller. What the files are is not known here.
"""

from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from clew.errors import OutputExistsError

__all__ = ["Written", "new_folder"]


@dataclass(frozen=True)
class Written:
    """What was written: `count` of what `things` names (plural), and lines for people about what is missing."""

    count: int
    things: str
    warnings: list[str] = field(default_factory=list)


@contextlib.contextmanager
def new_folder(path: Path, *, may_add: bool) -> Iterator[Path]:
    """A folder to write files into, which are in `path` once all are written; nothing is there otherwise.

    With `may_add` the folder may be there already: files of the same names are replaced then, one by one, and all else
    stays. Raises OutputExistsError if it is there and has something in it, and OSError.
    """
    # What a link leads to is filled, not replaced.
    whole = path.resolve()
    is_there = whole.exists()
    if is_there and not may_add and next(whole.iterdir(), None) is not None:
        raise OutputExistsError(path, "choose another name with -o, or write into it with --force")
    whole.parent.mkdir(parents=True, exist_ok=True)
    # Beside it or in it: what is moved stays on one file system.
    unfinished = whole / ".unfinished" if is_there else whole.with_name(f".{whole.name}.unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    try:
        yield unfinished
        if is_there:
            for file in sorted(unfinished.iterdir()):
                os.replace(file, whole / file.name)
            unfinished.rmdir()
        else:
            os.rename(unfinished, whole)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
