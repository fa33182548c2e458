"""What clew does when a thread has come to a place that asks for it (`--on`).

Runs in the controller, in the thread that owns the session. The thread of the program waits meanwhile.
"""

from __future__ import annotations

import contextlib
import os
import signal
from typing import TYPE_CHECKING

from clew.errors import TargetGoneError
from clew.process.linux import send_to_thread
from clew.sessions.probes.specs import Trigger, TriggerAction

if TYPE_CHECKING:
    from clew.sessions.probes.probe_session import ProbeSession
    from clew.sessions.probes.waiting import Waiting

__all__ = ["pull"]


def pull(session: ProbeSession, trigger: Trigger, waiting: Waiting) -> None:
    """Do what a trigger is for, as far as the process is there still. Raises TargetError, UsageError."""
    with contextlib.suppress(TargetGoneError, ProcessLookupError):
        match trigger.action:
            case TriggerAction.SNAPSHOT:
                session.snapshot()
            case TriggerAction.START:
                session.enable(session.event_indices)
            case TriggerAction.STOP:
                session.remove(session.event_indices)
            case TriggerAction.RECORD:
                session.follow_on(waiting)
            case TriggerAction.PAUSE:
                os.kill(waiting.real_pid, signal.SIGSTOP)
            case TriggerAction.SIGNAL if waiting.target.has_own_numbers:
                os.kill(waiting.real_pid, trigger.signal)
            case TriggerAction.SIGNAL:
                send_to_thread(waiting.pid, waiting.tid, trigger.signal)
