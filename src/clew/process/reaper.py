"""Who adopts orphans among the descendants of this process, as long as it does not do so itself."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from clew.address import Pid
from clew.process.identity import read_parent

__all__ = ["find_reaper"]

_FIRST: Final = Pid(1)
_ADOPTERS: Final = frozenset({b"systemd"})
"""Names of those that are known to ask for orphans: the kernel does not tell who does (prctl(2))."""


def find_reaper(pid: Pid) -> Pid:
    """The process that descendants of process `pid` get for a parent when theirs has ended.

    It is the nearest ancestor that asked for it: of a session or user, systemd does. Else it is the first process.
    """
    try:
        while pid > _FIRST:
            pid = read_parent(pid)
            if Path(f"/proc/{pid}/comm").read_bytes().strip() in _ADOPTERS:
                return pid
    except OSError:
        pass
    return _FIRST
