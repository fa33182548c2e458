"""Has processes again whose session is gone: it was killed, and what it had there is gone soon after it.

Runs in the controller, in the thread that owns the session. Several may want a process: the first one has it, the
others join.
"""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Final

from clew.address import Pid
from clew.dataclass import dataclass
from clew.errors import AttachError, ClewError
from clew.sessions.probes.sharing.joined_target import JoinedTarget

if TYPE_CHECKING:
    from clew.sessions.probes.session_targets import SessionTargets

__all__ = ["Heirs"]

_PATIENCE_SECONDS: Final = 90.0
"""The runtime waits for a minute where it can't see whether the session is there (wait_limit.rs)."""
_TRY_SECONDS: Final = 10.0
_PAUSE_SECONDS: Final = 0.05


@dataclass
class _Lost:
    """A process that nobody has."""

    pid: Pid
    origins: frozenset[Pid]
    since: float
    tried_at: float
    tries_end: float


class Heirs:
    """Of `session`."""

    def __init__(self, session: SessionTargets) -> None:
        self._session = session
        self._lost: list[_Lost] = []

    def advance(self) -> None:
        """Look after those whose sessions are gone."""
        for target in list(self._session.targets):
            if isinstance(target, JoinedTarget) and target.is_lost:
                self._look_at(target)
        for one in list(self._lost):
            if time.monotonic() > one.tried_at + _PAUSE_SECONDS:
                self._try(one)

    def close(self) -> None:
        """Have none of them."""
        self._lost.clear()

    def _look_at(self, target: JoinedTarget) -> None:
        """The session that had this is gone: once nothing of it is in the processes they may be had."""
        lost_at = target.lost_at
        now = time.monotonic()
        assert lost_at is not None
        if not target.is_free and now < lost_at + _PATIENCE_SECONDS:
            return
        # Threads went on writing until their code was what it had been.
        target.take_left()
        # Others look at who has it open, too.
        target.let_memory_go()
        self._session.drain([target])
        self._session.forget(target)
        for pid in target.pids:
            self._lost.append(_Lost(pid, target.origins, now, 0.0, now + _TRY_SECONDS))
        target.release()

    def _try(self, one: _Lost) -> None:
        if not os.path.exists(f"/proc/{one.pid}"):
            self._lost.remove(one)
            return
        try:
            self._session.attach(one.pid, one.origins)
        except AttachError as error:
            # Another session may not have noticed yet, or be about to have it.
            one.tried_at = time.monotonic()
            if one.tried_at < one.tries_end:
                return
            text = f"has no probes any more, since the session ended that had it: {error.message}"
        except (ClewError, OSError) as error:
            text = f"has no probes any more, since the session ended that had it: {error}"
        else:
            seconds = time.monotonic() - one.since
            text = f"nothing was told for {seconds:.1f} s: the session that had it ended"
        self._lost.remove(one)
        self._session.remark(f"process {one.pid}: {text}")
