"""The processes of a session, those that are probed and those that wait for that.

Runs in the controller.
"""

from __future__ import annotations

import contextlib
import os
import select
from pathlib import Path
from typing import Any

from clew.address import Pid
from clew.errors import ControlError

__all__ = ["Member", "Members"]


class Member:
    """Process `pid`, which descends from `origins`; it stays this one, whoever gets its number later."""

    def __init__(self, pid: Pid, origins: frozenset[Pid]) -> None:
        """Raises ControlError if there is none."""
        self.pid, self.origins = pid, origins | {pid}
        try:
            self._pidfd = os.pidfd_open(pid)
        except OSError as error:
            raise ControlError(f"process {pid}: no such process") from error

    @property
    def has_ended(self) -> bool:
        """Whether it is no more."""
        return bool(select.select([self._pidfd], [], [], 0)[0])

    def describe(self) -> dict[str, Any]:
        """What is told of it: names are the program's."""
        name, executable = b"", ""
        with contextlib.suppress(OSError):
            name = Path(f"/proc/{self.pid}/comm").read_bytes().rstrip(b"\n")
            executable = os.readlink(f"/proc/{self.pid}/exe")
        return {"pid": self.pid, "name": name.decode(errors="backslashreplace"), "executable": executable}

    def close(self) -> None:
        """Let go of it."""
        os.close(self._pidfd)


class Members:
    """Those of a session that have not ended, by their numbers."""

    def __init__(self) -> None:
        self._members: dict[Pid, Member] = {}

    def add(self, pid: Pid, origins: frozenset[Pid] = frozenset()) -> Member:
        """The process as a member, which it may be already. Raises ControlError if there is none."""
        self.forget_ended()
        if pid not in self._members:
            self._members[pid] = Member(pid, origins)
        self._members[pid].origins |= origins
        return self._members[pid]

    def remove(self, pid: Pid) -> None:
        """Have it no more."""
        if pid in self._members:
            self._members.pop(pid).close()

    def forget_ended(self) -> None:
        """Those that have ended are none any more."""
        for pid in [pid for pid, member in self._members.items() if member.has_ended]:
            self.remove(pid)

    def living(self) -> list[Member]:
        """Those that there are."""
        self.forget_ended()
        return list(self._members.values())

    def __contains__(self, pid: Pid) -> bool:
        return pid in self._members
