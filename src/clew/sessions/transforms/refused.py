"""Blocks whose changes the runtime could not take, though nothing here spoke against them: which ones those were.

Runs in the controller. The runtime only counts them, when the thread that asked has gone on: what it was given
meanwhile is what may have been refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from clew.recording.following.followed import FollowedProcess

__all__ = ["Refused"]


class _Given(NamedTuple):
    tid: int
    address: int
    size_bytes: int
    errors: list[list[str]]


class Refused:
    """Of one session. Not for several threads at once."""

    def __init__(self) -> None:
        self._given: dict[FollowedProcess, list[_Given]] = {}
        self._n_told: dict[FollowedProcess, int] = {}
        self._known: set[tuple[int, int]] = set()

    def give(self, followed: FollowedProcess, tid: int, address: int, changes: bytes, errors: list[list[str]]) -> None:
        """A thread goes on with changes to the block at `address`; each of `errors` gets an entry if they were
        refused."""
        if changes:
            self._given.setdefault(followed, []).append(_Given(tid, address, len(changes), errors))

    def look(self, followed: FollowedProcess, tid: int = 0) -> None:
        """See what the runtime of a process refused by now. Thread `tid` is known to have taken what it was given."""
        given = self._given.get(followed, [])
        if not given:
            return
        try:
            n_refused = followed.shared.status_u32("blocks_refused") - self._n_told.get(followed, 0)
        except ValueError:
            # It has ended: its number is told at the end of all.
            return
        if n_refused > 0:
            self._tell(followed, n_refused)
        else:
            self._given[followed] = [one for one in given if one.tid != tid]

    def look_at_all(self) -> None:
        """The same of all processes."""
        for followed in list(self._given):
            self.look(followed)

    def finish(self, n_refused: int) -> int:
        """So many were refused by all processes together, which have ended; of how many nobody was told."""
        left = n_refused - sum(self._n_told.values())
        waiting = [followed for followed, given in self._given.items() if given]
        if left > 0 and len(waiting) == 1:
            self._tell(waiting[0], left)
            left = 0
        return max(left, 0)

    def _tell(self, followed: FollowedProcess, n_refused: int) -> None:
        given = self._given.pop(followed)
        self._n_told[followed] = self._n_told.get(followed, 0) + n_refused
        among = "" if len(given) <= n_refused else f", or another one of {len(given)} blocks"
        for one in given:
            if (followed.pid, one.address) not in self._known:
                self._known.add((followed.pid, one.address))
                reason = f"the runtime could not take {one.size_bytes} bytes of changes"
                for errors in one.errors:
                    errors.append(f"block {one.address:#x}{among}: {reason}")
