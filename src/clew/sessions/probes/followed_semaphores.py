"""The counters of static probes in processes that are followed: raised where something is captured, lowered behind it.

Runs in the controller. A program comes to such a place only where somebody has raised its counter (`probing.semaphores`
is about processes that run natively).
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple

from clew.address import RemoteAddress
from clew.errors import TargetError
from clew.process.counter_words import COUNTER_BYTES, add_to_counter, find_counters
from clew.sessions.memory import read_memory, write_memory

if TYPE_CHECKING:
    from clew.recording.following.followed import FollowedProcess

__all__ = ["FollowedSemaphores"]


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
        if address is None or not _is_counter(followed, address):
            return
        counter = _Counter(followed, address)
        if counter not in self._wanted:
            _add(counter, 1)
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
                    _add(counter, -1)

    def close(self) -> None:
        """Nobody wants any."""
        for wanted in self._wanted.values():
            wanted.clear()
        self.release(None)


def _is_counter(followed: FollowedProcess, address: RemoteAddress) -> bool:
    with contextlib.suppress(OSError):
        return bool(find_counters(followed.memory_pid, [address]))
    return False


def _add(counter: _Counter, by: int) -> None:
    pid, address = counter.followed.memory_pid, counter.address
    write_memory(pid, address, add_to_counter(read_memory(pid, address, COUNTER_BYTES), by))
