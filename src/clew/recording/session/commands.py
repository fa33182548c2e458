"""Listens to whoever controls a recording, and has it done.

Runs in the controller, in the recording's one thread. Imported when the target runs already: sockets are much to
import.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clew.recording.control.server import ControlServer
from clew.recording.following.processes import Processes

if TYPE_CHECKING:
    from clew.recording.control.command_queue import CommandQueue
    from clew.recording.control.commands import Control
    from clew.recording.options.filters import FilterSet

__all__ = ["Commands"]


class Commands:
    """Hears who controls the recording of `processes` into `output`: by a socket, and by `queue`, if there is one.

    `end_pause` lets a first process go that waits at its start, as `is_paused` says.
    """

    def __init__(
        self,
        processes: Processes,
        filters: FilterSet,
        output: Path,
        is_paused: Callable[[], bool],
        end_pause: Callable[[], None],
        queue: CommandQueue | None = None,
    ) -> None:
        self._processes, self._filters, self._output = processes, filters, output
        self._is_paused, self._end_pause = is_paused, end_pause
        self._control: Control | None = None
        self._server = ControlServer(self._do, processes.is_running, processes.watch, processes.forget)
        self._queue = queue
        if queue is not None:
            queue.open(self._controlled(), processes.watch, processes.forget)

    @property
    def is_busy(self) -> bool:
        """Whether somebody waits for an answer."""
        return self._server.is_busy or (self._queue is not None and self._queue.is_busy)

    def advance(self) -> None:
        """Hear who asks, go on with what is asked, answer."""
        self._server.advance()
        if self._queue is not None:
            self._queue.advance()

    def close(self) -> None:
        """Hear nobody any more."""
        self._server.close()
        if self._queue is not None:
            self._queue.close()

    def _do(self, command: dict[str, Any]) -> Iterator[dict[str, Any] | None]:
        return self._controlled().do(command)

    def _controlled(self) -> Control:
        """Most recordings are controlled by nobody."""
        if self._control is None:
            from clew.recording.control.commands import Control

            self._control = Control(self._processes, self._describe, self._end_pause)
        return self._control

    def _describe(self) -> dict[str, Any]:
        """What people who control it are told of the recording."""
        include, exclude = self._filters.texts
        return {
            "controller_pid": os.getpid(),
            "output": str(self._output),
            "mode": self._processes.mode.name.lower(),
            "budget": self._processes.budget,
            "is_paused": self._is_paused(),
            "include": include,
            "exclude": exclude,
        }
