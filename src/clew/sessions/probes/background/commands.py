"""What a session of probes in the background can be told, as questions and answers of its socket.

Runs in the controller, in its one thread.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from clew.address import MAX_PID, Pid
from clew.errors import ControlError, UsageError
from clew.sessions.probes.background.background_session import BackgroundSession
from clew.sessions.probes.background.wishes import MAX_TEXTS, EventWish

__all__ = ["SessionCommands"]

Answer = dict[str, Any]
_MAX_SIGNALS: Final = 64


class SessionCommands:
    """Of `session`. A question has a `command`, one of COMMANDS, and what that takes; an answer has `told`, lines for
    people, and how everything stands."""

    def __init__(self, session: BackgroundSession) -> None:
        self._session = session

    def do(self, question: dict[str, Any]) -> Iterator[Answer | None]:
        """Do what is asked. Raises ClewError."""
        name = question.get("command")
        make = COMMANDS.get(name) if isinstance(name, str) else None
        if make is None:
            raise ControlError(f"no such command: {name!r}; there is {', '.join(COMMANDS)}")
        yield make(self, question)

    def status(self, _question: dict[str, Any]) -> Answer:
        """How everything stands."""
        return self._answer([])

    def enable(self, question: dict[str, Any]) -> Answer:
        """Have an event, `event`, or one of that `name` again."""
        if "event" in question:
            return self._answer(self._session.enable(EventWish.from_json(question["event"])))
        return self._answer(self._session.enable_known(_text(question, "name")))

    def disable(self, question: dict[str, Any]) -> Answer:
        """Have the event `name` nowhere, or all."""
        return self._answer(self._session.disable(_text(question, "name")))

    def remove(self, question: dict[str, Any]) -> Answer:
        """Have the event `name` no more."""
        return self._answer(self._session.remove(_text(question, "name")))

    def add_contexts(self, question: dict[str, Any]) -> Answer:
        """Have the event `name`, or all, take `contexts` besides."""
        contexts = question.get("contexts")
        if not isinstance(contexts, list) or not 0 < len(contexts) <= MAX_TEXTS:
            raise UsageError("no context is given")
        if not all(isinstance(one, str) for one in contexts):
            raise UsageError("a context is a text")
        return self._answer(self._session.add_contexts(_text(question, "name"), contexts))

    def start(self, question: dict[str, Any]) -> Answer:
        """Begin to write events to `output` as `format`."""
        output, form = Path(_text(question, "output")), _text(question, "format")
        if not output.is_absolute():
            raise UsageError(f"{output}: is no absolute path")
        return self._answer(self._session.start(output, form, is_asked=question.get("is_asked") is True))

    def stop(self, _question: dict[str, Any]) -> Answer:
        """Take the probes out of all processes."""
        return self._answer(self._session.stop())

    def destroy(self, _question: dict[str, Any]) -> Answer:
        """End the session."""
        return self._answer(self._session.destroy())

    def attach(self, question: dict[str, Any]) -> Answer:
        """Have process `pid` in the session."""
        return self._answer(self._session.attach(_pid(question)))

    def detach(self, question: dict[str, Any]) -> Answer:
        """Have process `pid` in the session no more."""
        return self._answer(self._session.detach(_pid(question)))

    def arrive(self, question: dict[str, Any]) -> Answer:
        """Process `pid` executes its program once it has the answer, with the signals `mask` blocked."""
        mask = question.get("mask")
        if not isinstance(mask, list) or len(mask) > _MAX_SIGNALS or not all(type(one) is int for one in mask):
            raise UsageError("a mask of signals was expected")
        return {"is_followed": self._session.arrive(_pid(question), mask)}

    def _answer(self, told: list[str]) -> Answer:
        return self._session.describe() | {"controller_pid": os.getpid(), "told": told}


COMMANDS: Final[dict[str, Callable[[SessionCommands, dict[str, Any]], Answer]]] = {
    "status": SessionCommands.status,
    "enable": SessionCommands.enable,
    "disable": SessionCommands.disable,
    "remove": SessionCommands.remove,
    "add-context": SessionCommands.add_contexts,
    "start": SessionCommands.start,
    "stop": SessionCommands.stop,
    "destroy": SessionCommands.destroy,
    "attach": SessionCommands.attach,
    "detach": SessionCommands.detach,
    "arrive": SessionCommands.arrive,
}


def _text(question: dict[str, Any], key: str) -> str:
    value = question.get(key, "")
    if not isinstance(value, str):
        raise UsageError(f"{key} is a text")
    return value


def _pid(question: dict[str, Any]) -> Pid:
    pid = question.get("pid")
    if type(pid) is not int or not 0 < pid <= MAX_PID:
        raise UsageError("a process is given by its number")
    return Pid(pid)
