"""Asks the session that has a process to have another one's probes there, too.

Runs in the controller of the session that joins.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from clew.address import Pid
from clew.errors import AttachError
from clew.sessions.probes.backends import BackendChoice
from clew.sessions.probes.sharing.channel import Channel, Message
from clew.sessions.probes.sharing.guests import VERSION_TOLD
from clew.sessions.probes.sharing.meeting import connect_to_owners
from clew.sessions.probes.sharing.told_specs import choice_to_json

__all__ = ["find_owner", "has_owner"]

_ANSWER_SECONDS: Final = 120.0
"""Its own probes come first: thousands of places take seconds."""
_STEP_SECONDS: Final = 0.01


def find_owner(pid: Pid, choice: BackendChoice, meanwhile: Callable[[], None]) -> tuple[Channel, Message] | None:
    """Where to speak to the session that has process `pid`, and what it has said; None: none has it. `meanwhile` is
    called while that does not answer. Raises AttachError: it refuses."""
    for connection, is_here in connect_to_owners(pid):
        channel = Channel(connection)
        if is_here:
            channel.close()
            raise AttachError(pid, f"process {pid}: has probes of another session in this very thread")
        channel.send({"do": "join", "pid": pid, "version": VERSION_TOLD, "choice": choice_to_json(choice)})
        message = _hear(channel, meanwhile)
        if message is not None and message.do == "joined":
            return channel, message
        channel.close()
        reason = None if message is None else message.told.get("reason")
        if reason:
            raise AttachError(pid, f"process {pid}: {reason}")
    return None


def has_owner(pid: Pid) -> bool:
    """Whether another session has process `pid`, and can be asked to have more probes there."""
    for connection, _ in connect_to_owners(pid):
        connection.close()
        return True
    return False


def _hear(channel: Channel, meanwhile: Callable[[], None]) -> Message | None:
    """The first thing that is said; None: nothing."""
    deadline = time.monotonic() + _ANSWER_SECONDS
    while not channel.is_closed and time.monotonic() < deadline:
        channel.wait(_STEP_SECONDS)
        message = channel.receive_one()
        if message is not None:
            return message
        meanwhile()
    return None
