"""Who records a trace that is not finished.

Runs in whoever wants to read it, beside the controller that writes it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from pathlib import Path
from typing import Final

from clew.address import Pid
from clew.store.names import JOURNAL_NAME

__all__ = ["find_recorder", "is_being_recorded"]

_LOCK: Final = re.compile(r"^lock:\s.*\bFLOCK +ADVISORY +WRITE +([1-9][0-9]*) ", re.MULTILINE)


def is_being_recorded(directory: Path) -> bool:
    """Whether somebody writes the trace in `directory`: whoever does has its journal locked."""
    try:
        with open(directory / JOURNAL_NAME, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        pass
    return False


def find_recorder(directory: Path) -> Pid | None:
    """The process that records into `directory`; None if there is none, or none that can be seen from here."""
    with contextlib.suppress(OSError):
        journal = (directory / JOURNAL_NAME).stat()
        for descriptor in Path("/proc").glob("[0-9]*/fd/*"):
            # The numbers in /proc/locks are not those of stat on every file system.
            with contextlib.suppress(OSError):
                if os.path.samestat(descriptor.stat(), journal) and (pid := _find_locker(descriptor)):
                    return pid
    return None


def _find_locker(descriptor: Path) -> Pid | None:
    """Who has locked what is open as `descriptor`, a path in /proc, for itself alone: one that inherited it has not."""
    text = (descriptor.parent.with_name("fdinfo") / descriptor.name).read_text()
    found = _LOCK.search(text)
    return Pid(int(found[1])) if found is not None else None
