"""The counters of static probes in processes that are followed: raised where something is captured, lowered behind it.

Runs in the controller. A program comes to such a place only where somebody has raised its counter (`probing.semaphores`
is about processes that run natively).
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, NamedTuple

from clew.address import RemoteAddress
from clew.errors import TargetError
from clew.process.linux import PROT_WRITE
from clew.process.maps import read_maps
from clew.sessions.memory import read_memory, write_memory

if TYPE_CHECKING:
    from clew.recording.following.followed import FollowedProcess

__all__ = ["FollowedSemaphores"]

_BYTES: Final = 2
_MOST: Final = 0xFFFF


class _Counter(NamedTuple):
    followed: FollowedProcess
    address: RemoteAddress


class FollowedSemaphores:
    """Of one session."""

    def __init__(self) -> None:
        self._wanted: dict[_Counter, set[int]] = {}
        """By whom each is, which are raised once for all of them."""

    def want(self, who: object, followed: FollowedProcess, address: RemoteAddress | None) -> None:
        """Have a counter raised for as long as `who` wants that; `None` is none. Raises TargetError."""
        if address is None or not _is_writable(followed, address):
            return
        counter = _Counter(followed, address)
        if counter not in self._wanted:
            _write(counter, min(_read(counter) + 1, _MOST))
        self._wanted.setdefault(counter, set()).add(id(who))

    def inherit(self, child: FollowedProcess) -> None:
        """A child has a copy of its parent's memory, where it does not share that: what was raised there is so here."""
        for counter, wanted in list(self._wanted.items()):
            parent = counter.followed
            if parent.pid == child.who.parent_pid and parent.region is not child.region:
                self._wanted[_Counter(child, counter.address)] = set(wanted)

    def release(self, who: object) -> None:
        """It wants none any more."""
        for counter, wanted in list(self._wanted.items()):
            wanted.discard(id(who))
            if not wanted:
                del self._wanted[counter]
                # It may have ended.
                with contextlib.suppress(TargetError):
                    _write(counter, max(_read(counter) - 1, 0))

    def close(self) -> None:
        """Nobody wants any."""
        for wanted in self._wanted.values():
            wanted.clear()
        self.release(None)


def _is_writable(followed: FollowedProcess, address: RemoteAddress) -> bool:
    with contextlib.suppress(OSError):
        mappings = [one for one in read_maps(followed.memory_pid) if one.protection & PROT_WRITE]
        return any(one.start <= address and address + _BYTES <= one.end for one in mappings)
    return False


def _read(counter: _Counter) -> int:
    return int.from_bytes(read_memory(counter.followed.memory_pid, counter.address, _BYTES), "little")


def _write(counter: _Counter, value: int) -> None:
    write_memory(counter.followed.memory_pid, counter.address, value.to_bytes(_BYTES, "little"))
