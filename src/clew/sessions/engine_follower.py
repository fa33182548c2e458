"""How a session of probes has the engine follow a process on: what that takes is imported when it is asked for.

Runs in the controller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from clew.sessions.following_on import FollowingOn
    from clew.sessions.memory import Images
    from clew.sessions.probes.event_reader import EventReader
    from clew.sessions.probes.specs import ProbeSpec, RecordWish
    from clew.sessions.probes.waiting import Waiting

__all__ = ["EngineFollower"]


class EngineFollower:
    """Follows processes on by the engine."""

    def prepare(self) -> None:
        """Import what it takes, before threads are held for it."""
        from clew.sessions.following_on import prepare

        prepare()

    def follow(
        self,
        wish: RecordWish,
        waiting: Waiting,
        specs: Sequence[tuple[int, ProbeSpec]],
        reader: EventReader,
        images: Images,
    ) -> FollowingOn:
        """What will follow the process of a thread that waits."""
        from clew.sessions.following_on import FollowingOn

        return FollowingOn(wish, waiting, specs, reader, images)
