"""What is followed of a region: who takes what is written there, and whether that can go on.

Runs in the controller, in one thread. A fork's child has a region before it speaks, and until then nothing else is
known of it; who speaks through a region is a `FollowedProcess`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from clew.process.injection_plan import InjectionPlan
from clew.process.shared_memory import SharedMemory
from clew.recording.sinks.sink import ProcessSink

if TYPE_CHECKING:
    from clew.recording.drain.drain import Drain
    from clew.recording.following.followed import FollowedProcess
    from clew.recording.journal.sink import ProcessJournal

__all__ = ["FollowedRegion"]


class FollowedRegion:
    """A region and its drain. What comes of it goes to `sink`: to its `journal`, and maybe to others, too."""

    def __init__(
        self, journal: ProcessJournal, sink: ProcessSink, shared: SharedMemory, plan: InjectionPlan, mode: int
    ) -> None:
        self.journal = journal
        self.sink = sink
        self.shared = shared
        self.plan = plan
        self.mode = mode
        self.process: FollowedProcess | None = None
        """Who speaks through it; None: nobody did yet."""
        self.drain: Drain | None = None
        """None: nobody asked yet what is in it."""
        self.failure: Exception | None = None
        """What made its drain unusable."""

    def close_drain(self) -> None:
        """Nothing more is taken of it. Nobody has the drain any more, which knows this: a collection of garbage may
        be far."""
        if self.drain is not None:
            self.drain.close()
            self.drain = None

    def attempt(self, action: Callable[[Drain], int | None]) -> int:
        """What `action` makes of its drain, 0 for nothing or if that fails: then it is noted as its `failure`.

        The drain works on what the target writes. What goes wrong there is this process' loss, and no other's.
        """
        if self.drain is None or self.failure is not None:
            return 0
        try:
            return action(self.drain) or 0
        except Exception as error:
            self.failure = error
            return 0
