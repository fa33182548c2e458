"""How much of the order may be recorded in a second, in mode full: each process has its part of it.

Runs in the controller, in its one thread. The runtimes keep to it by themselves.
"""

from __future__ import annotations

from collections.abc import Collection

from clew.protocol._constants import PATH_UNLIMITED
from clew.recording.following.followed import FollowedProcess

__all__ = ["Budget"]


class Budget:
    """Bytes of paths a second, of all processes together; PATH_UNLIMITED: as many as there are."""

    def __init__(self, n_bytes: int) -> None:
        self._bytes = n_bytes
        self._sharing: list[int] = []
        """The numbers of those that have a part."""

    @property
    def bytes(self) -> int | None:
        """How many there may be; None: all."""
        return None if self._bytes == PATH_UNLIMITED else self._bytes

    def set(self, n_bytes: int, live: Collection[FollowedProcess]) -> None:
        """From now on the processes `live` share so many."""
        self._bytes = n_bytes
        self._give_out(live)

    def share(self, live: Collection[FollowedProcess]) -> None:
        """Give each process its part anew, where they are others than before."""
        if [followed.number for followed in live] != self._sharing:
            self._give_out(live)

    def _give_out(self, live: Collection[FollowedProcess]) -> None:
        self._sharing = [followed.number for followed in live]
        part = self._bytes if self._bytes == PATH_UNLIMITED else self._bytes // max(len(live), 1)
        for followed in live:
            followed.shared.set_budget(part)
