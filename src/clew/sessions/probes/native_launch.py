"""How a program gets probes that is started from Python, or runs already.

Runs in the controller, in the thread that owns it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from clew.address import Pid
from clew.process.launch import launch_stopped
from clew.process.program import find_program
from clew.sessions.probes.native_worker import Begun

if TYPE_CHECKING:
    from clew.sessions.probes.probe_session import ProbeSession
    from clew.sessions.streams import Streams

__all__ = ["attach_to", "start"]


def attach_to(pid: Pid) -> Callable[[ProbeSession], Begun]:
    """What attaches to a process that runs."""

    def begin(session: ProbeSession) -> Begun:
        session.attach(pid)
        return Begun(int(pid), os.pidfd_open(pid), None, None)

    return begin


def start(
    words: Sequence[str], environment: Sequence[bytes] | None, streams: Streams, directory: str | None
) -> Callable[[ProbeSession], Begun]:
    """What starts a program, which stays in front of its first instruction. Raises CommandNotFoundError,
    NotExecutableError."""
    # As it is called from here, wherever it begins.
    program = find_program(os.path.abspath(words[0]) if directory and "/" in words[0] else words[0])

    def begin(session: ProbeSession) -> Begun:
        arguments = [os.fsencode(word) for word in words]
        variables = environment
        if variables is None:
            variables = [name + b"=" + value for name, value in os.environb.items()]
        process = launch_stopped(program, arguments, variables, streams=streams.by_number, directory=directory)
        with process:
            target = session.enter_stopped(process)
            return Begun(int(process.pid), os.pidfd_open(process.pid), target, process)

    return begin
