"""Speaks to sessions of probes in the background, and starts their controllers.

Runs in whoever controls: the command line.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import Any, Final

from clew.errors import ClewError, ControlError
from clew.process.launch import restore_signals
from clew.recording.control.sockets import ask
from clew.sessions.probes.background.controller import READY, TAKEN
from clew.sessions.probes.background.state_folder import SessionPlace, find_names, place_of

__all__ = ["CONTROLLER_COMMAND", "ask_session", "ask_started", "iter_sessions"]

CONTROLLER_COMMAND: Final = "probe-controller"
"""Of the command line: it is told a descriptor, and the session's name."""
_ANSWER_SECONDS: Final = 120.0
"""Thousands of places take seconds, and so may a process that can't be stopped."""
_LISTEN_SECONDS: Final = 20.0
_PAUSE_SECONDS: Final = 0.01


def ask_session(name: str, question: dict[str, Any]) -> dict[str, Any]:
    """What the session of that name answers. Raises ControlError."""
    place = place_of(name)
    answer = _ask(place, question)
    if answer is None:
        raise ControlError(f"there is no session {name}; `clew enable-event` makes one{_explain_end(place)}")
    return answer


def ask_started(name: str, question: dict[str, Any]) -> tuple[dict[str, Any], bool]:
    """The same of one that is made if it is not there, and whether it was; it is no more if it refuses then."""
    place = place_of(name)
    deadline = time.monotonic() + _LISTEN_SECONDS
    while True:
        answer = _ask(place, question)
        if answer is not None:
            return answer, False
        if _start_controller(place):
            break
        # Another one of that name is about to listen, or to end.
        if time.monotonic() > deadline:
            raise ControlError(f"session {name}: its controller does not answer{_explain_end(place)}")
        time.sleep(_PAUSE_SECONDS)
    try:
        answer = _ask(place, question)
    except ClewError:
        _ask(place, {"command": "destroy"})
        raise
    if answer is None:
        raise ControlError(f"session {name}: its controller has ended{_explain_end(place)}")
    return answer, True


def iter_sessions() -> tuple[list[dict[str, Any]], list[str]]:
    """How all sessions stand; and what is to be told of those that are gone."""
    found, gone = [], []
    for name in find_names():
        place = place_of(name)
        try:
            answer = _ask(place, {"command": "status"})
        except ControlError as error:
            gone.append(f"session {name}: {error.message}")
            continue
        if answer is not None:
            found.append(answer)
        elif place.log.exists():
            gone.append(f"session {name} has ended without being destroyed{_explain_end(place)}")
    return found, gone


def _ask(place: SessionPlace, question: dict[str, Any]) -> dict[str, Any] | None:
    return ask(place.socket, question, _ANSWER_SECONDS, f"session {place.name}")


def _explain_end(place: SessionPlace) -> str:
    return f"; the log of the last one is {place.log}" if place.log.exists() else ""


def _start_controller(place: SessionPlace) -> bool:
    """Start one that goes on when this process ends; it listens then. False: there is another one. Raises
    ControlError."""
    read, write = os.pipe()
    with os.fdopen(read, "rb") as told:
        try:
            subprocess.Popen(
                [sys.executable, "-m", "clew", CONTROLLER_COMMAND, "--ready", str(write), place.name],
                pass_fds=(write,),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
                preexec_fn=lambda: restore_signals((), ()),
            )
        except OSError as error:
            raise ControlError(f"session {place.name}: can't be made: {error.strerror or error}") from error
        finally:
            os.close(write)
        text = told.read().decode(errors="replace")
    if text not in (READY, TAKEN):
        raise ControlError(f"session {place.name}: can't be made: {text or 'its controller did not start'}")
    return text == READY
