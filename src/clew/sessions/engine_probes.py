"""Probes by the engine: the program is followed, and captures are taken in its translated code.

Runs in the controller.
"""

from __future__ import annotations

import contextlib
import math
import signal
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from clew.address import Pid
from clew.errors import ControlError
from clew.export.probes.event_types import EventBatch
from clew.recording.options.record_options import parse_options
from clew.recording.session.attached import Attach
from clew.recording.session.launched import Launch
from clew.sessions.probes.asked import check_spec
from clew.sessions.probes.followed_probes import FollowedProbes
from clew.sessions.session import Session

if TYPE_CHECKING:
    from clew.recording.session.target import Origin
    from clew.sessions.aggregates import Aggregate
    from clew.sessions.probes.event_reader import EventReader
    from clew.sessions.probes.specs import ProbeSpec

__all__ = ["EngineCommand", "EngineSession"]


class EngineSession:
    """The probes `specs`, in one process and all that descends from it. Raises CaptureError where one can't be."""

    def __init__(self, specs: Sequence[ProbeSpec]) -> None:
        for spec in specs:
            check_spec(spec)
        self._specs = list(specs)
        self._session: Session | None = None
        self._probes: FollowedProbes | None = None
        self._told: set[str] = set()
        self.left: list[str] = []
        """Nothing: what is followed is left as it was."""

    def attach(self, pid: Pid) -> None:
        """Probe a process that runs. Raises ClewError."""
        self._begin(lambda: Attach(pid, None), is_spawned=False)

    @property
    def recorded(self) -> None:
        """Nothing is."""

    @property
    def is_recorder(self) -> bool:
        """It is none."""
        return False

    @property
    def reader(self) -> EventReader:
        """What makes the events, once it has begun."""
        assert self._probes is not None
        return self._probes.reader

    def snapshot(self) -> None:
        """Nothing: all events are read."""

    def start(self, command: Sequence[str], ignored: Sequence[signal.Signals] = ()) -> EngineCommand:
        """Start a program with the probes in it; the engine sees to what it ignores. Raises ClewError."""
        try:
            session = self._begin(lambda: Launch(command, pause_seconds=math.inf), is_spawned=True)
        except BaseException:
            if self._session is not None:
                # It has not run, and is not to without the probes.
                self._session.kill()
            raise
        session.resume()
        return EngineCommand(session)

    def _begin(self, make_origin: Callable[[], Origin], *, is_spawned: bool) -> Session:
        # Without a name: the session has a folder of its own.
        session = self._session = Session(make_origin, parse_options(Path()), is_spawned=is_spawned)
        self._probes = session.placed
        self._probes.add(self._specs)
        return session

    def wait(self, seconds: float) -> None:
        """Let time pass: the session's own thread does what is to be done."""
        time.sleep(seconds)

    def read(self) -> EventBatch:
        """The events that have come since. Raises what went wrong with the session."""
        return EventBatch([] if self._probes is None else self._probes.take_all())

    def catch_up(self) -> None:
        """Nobody else has it."""

    def sums(self) -> list[tuple[ProbeSpec, Aggregate]]:
        """What is added up. It can be read when all is over, too."""
        return [] if self._probes is None else self._probes.sums()

    def take_remarks(self) -> list[str]:
        """What there is to tell people that was not told yet."""
        new = [text for text in ([] if self._probes is None else self._probes.remarks()) if text not in self._told]
        self._told.update(new)
        return new

    def missing(self) -> list[str]:
        """Why probes are nowhere, for people."""
        if self._probes is None:
            return []
        return list(dict.fromkeys(filter(None, map(self._probes.missing, range(len(self._specs))))))

    def close(self) -> None:
        """Leave what is followed; it goes on natively."""
        if self._session is not None:
            try:
                self._session.detach()
            finally:
                self._session.close()


class EngineCommand:
    """A program that is followed from its first instruction on."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.pid = Pid(session.pid)

    @property
    def exit_status(self) -> int | None:
        """As a shell says how it ended; None: it has not, or that is not known."""
        code = self._session.exit_code
        return code if code is None or code >= 0 else 128 - code

    def wait(self, seconds: float) -> bool:
        """Whether it has ended, or is followed no more, after so many seconds at most."""
        if self._session.exit_code is None and seconds:
            with contextlib.suppress(TimeoutError, ControlError):
                self._session.wait(seconds)
        return self._session.exit_code is not None or not self._session.is_following
