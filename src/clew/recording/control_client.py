"""Speaks to a running recording, whichever has the process that is meant.

Runs in whoever controls: the command line, the viewer's server. What people name is looked up here, not in the
recording, which waits for nobody's files.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from clew.address import Pid
from clew.errors import ControlError
from clew.recording.arguments import parse_budget
from clew.recording.control_sockets import ask, find_sessions
from clew.recording.targets import describe_address, find_address

__all__ = ["COMMAND_ARGUMENTS", "ControlClient"]

COMMAND_ARGUMENTS: Final = {
    **dict.fromkeys(("status", "pause", "continue", "detach", "kill"), ""),
    **dict.fromkeys(("step", "next"), "tid"),
    **dict.fromkeys(("break", "delete"), "place"),
    **dict.fromkeys(("include", "exclude", "only"), "what"),
    "budget": "budget",
    "mode": "mode",
}
"""By command the argument of `ControlClient.do` that it takes, or nothing."""


class ControlClient:
    """Of the recording that listens at `path`; `pid` is the process that commands are for."""

    def __init__(self, path: Path, pid: Pid) -> None:
        self.path = path
        self.pid = pid

    @classmethod
    def find(cls, pid: Pid) -> ControlClient:
        """The recording that has process `pid`, or whose controller is `pid`. Raises ControlError if there is none."""
        for path in find_sessions():
            status = ask(path, {"command": "status"})
            if status is None:
                continue
            pids = [process["pid"] for process in status["processes"]]
            if pid in pids:
                return cls(path, pid)
            if pid == status["controller_pid"] and pids:
                return cls(path, Pid(pids[0]))
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
            if pid or status["processes"]:
                return cls(path, pid or Pid(status["processes"][0]["pid"]))
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
            question["address"] = find_address(self.pid, self._executable(), place)
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
        self._name_places(answer)
        return answer

    def _executable(self) -> str:
        answer = ask(self.path, {"command": "status"}) or {"processes": []}
        return next((str(one["executable"]) for one in answer["processes"] if one["pid"] == self.pid), "")

    def _name_places(self, answer: dict[str, Any]) -> None:
        """Add the symbols of the addresses in an answer."""
        for process in answer.get("processes", []):
            pid = Pid(process["pid"])
            process["breakpoints"] = [
                {"address": address, "symbol": describe_address(pid, address)} for address in process["breakpoints"]
            ]
            for thread in process["threads"]:
                thread["symbol"] = describe_address(pid, thread["registers"]["rip"])
