"""Speaks to a running recording, whichever has the process that is meant.

Runs in whoever controls: the command line, the viewer's server. What people name is looked up here, not in the
recording, which waits for nobody's files.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from clew.address import Pid
from clew.binary.architectures.architecture import Architecture
from clew.binary.architectures.known import KNOWN, architecture_named
from clew.errors import ControlError
from clew.recording.control.places import describe_addresses, find_address
from clew.recording.control.sockets import ask, find_sessions
from clew.recording.options.arguments import parse_budget

__all__ = ["COMMAND_ARGUMENTS", "TOLD_MODES", "ControlClient", "architecture_of", "pc_of"]

COMMAND_ARGUMENTS: Final = {
    **dict.fromkeys(("status", "pause", "continue", "detach", "kill"), ""),
    **dict.fromkeys(("step", "next", "step-over"), "tid"),
    **dict.fromkeys(("break", "delete"), "place"),
    **dict.fromkeys(("include", "exclude", "only"), "what"),
    "budget": "budget",
    "mode": "mode",
}
"""By command the argument of `ControlClient.do` that it takes, or nothing."""
TOLD_MODES: Final = ("counts", "full", "auto")
"""The modes that a recording can be told while it runs."""


class ControlClient:
    """Of the recording that listens at `path`; `pid` is the process that commands are for, `executable` its program."""

    def __init__(self, path: Path, pid: Pid, executable: str) -> None:
        self.path = path
        self.pid = pid
        self._executable = executable

    @classmethod
    def find(cls, pid: Pid) -> ControlClient:
        """The recording that has process `pid`, or whose controller is `pid`. Raises ControlError if there is none."""
        for path in find_sessions():
            status = ask(path, {"command": "status"})
            if status is None:
                continue
            executables = _executables(status)
            if pid in executables:
                return cls(path, pid, executables[pid])
            if pid == status["controller_pid"] and executables:
                return cls(path, *next(iter(executables.items())))
        raise ControlError(f"process {pid}: no recording of yours has it; start one with `clew attach {pid}`")

    @classmethod
    def of_recorder(cls, recorder: Pid, pid: Pid) -> ControlClient:
        """The recording whose controller is process `recorder`; a `pid` of 0 is the first of its processes.

        Raises ControlError if it does not listen, or has none.
        """
        for path in find_sessions():
            if path.stem != str(recorder):
                continue
            status = ask(path, {"command": "status"})
            if status is None or status["controller_pid"] != recorder:
                continue
            executables = _executables(status)
            if pid:
                return cls(path, pid, executables.get(pid, ""))
            if executables:
                return cls(path, *next(iter(executables.items())))
            raise ControlError("none of the processes that were recorded runs any more")
        raise ControlError("the recorder listens to no commands; it has ended, or found no place for a socket")

    def do(
        self,
        command: str,
        *,
        tid: int = 0,
        place: str = "",
        what: str = "",
        mode: str = "",
        budget: int | None = None,
    ) -> dict[str, Any]:
        """What the recording answers to `command`, which takes `tid`, `place`, `what`, `mode` or `budget`.

        Mode `auto` is `full` with a budget.

        Raises ControlError.
        """
        question: dict[str, Any] = {"command": command, "pid": self.pid}
        if tid:
            question["tid"] = tid
        if place:
            question["address"] = find_address(self.pid, self._executable, place)
        if what:
            question["what"] = what
        if mode:
            question["mode"] = "full" if mode == "auto" else mode
            budget = parse_budget(None, mode) if budget is None else budget
        if budget is not None:
            question["bytes"] = budget
        answer = ask(self.path, question)
        if answer is None:
            raise ControlError(f"process {self.pid}: its recording has ended")
        for process in answer.get("processes", []):
            _name_places(process)
        return answer


def architecture_of(process: Mapping[str, Any]) -> Architecture:
    """What the code of a process is for, of which a status tells."""
    return architecture_named(str(process.get("architecture", KNOWN[0].name)))


def pc_of(process: Mapping[str, Any], thread: Mapping[str, Any]) -> int:
    """Where a thread of it stands."""
    return int(thread["registers"].get(architecture_of(process).program_counter, 0))


def _executables(status: dict[str, Any]) -> dict[Pid, str]:
    """Of the processes that a status tells of, in its order."""
    return {Pid(process["pid"]): str(process["executable"]) for process in status["processes"]}


def _name_places(process: dict[str, Any]) -> None:
    """Add the symbols of the addresses that are told of a process."""
    breakpoints, threads = process["breakpoints"], process["threads"]
    symbols = describe_addresses(Pid(process["pid"]), [*breakpoints, *(pc_of(process, thread) for thread in threads)])
    process["breakpoints"] = [{"address": address, "symbol": symbols[address]} for address in breakpoints]
    for thread in threads:
        thread["symbol"] = symbols[pc_of(process, thread)]
