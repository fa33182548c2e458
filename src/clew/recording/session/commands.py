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
    from clew.recording.control.commands import Control
    from clew.recording.options.filters import FilterSet

__all__ = ["listen"]


def listen(
    processes: Processes,
    filters: FilterSet,
    output: Path,
    is_paused: Callable[[], bool],
    end_pause: Callable[[], None],
) -> ControlServer:
    """A server for the recording of `processes` into `output`; it listens from now on."""
    control: Control | None = None

    def describe() -> dict[str, Any]:
        """What people who control it are told of the recording."""
        include, exclude = filters.texts
        return {
            "controller_pid": os.getpid(),
            "output": str(output),
            "mode": processes.mode.name.lower(),
            "budget": processes.budget,
            "is_paused": is_paused(),
            "include": include,
            "exclude": exclude,
        }

    def do(command: dict[str, Any]) -> Iterator[dict[str, Any] | None]:
        """Do what somebody asks who controls the recording: most are controlled by nobody."""
        nonlocal control
        if control is None:
            from clew.recording.control.commands import Control

            control = Control(processes, describe, end_pause)
        return control.do(command)

    return ControlServer(do, processes.is_running, processes.watch, processes.forget)
