"""What a page tells a program that is being recorded: checked, passed on to the recorder, and answered in JSON.

Runs in the controller, in the live viewer's process. The recorder that a page can speak to is the one that started this
viewer, and no other. Who may speak is the business of `clew.server.security`; what a command does, the recorder's.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from clew.address import MAX_PID, Pid
from clew.binary.architectures.architecture import Architecture
from clew.errors import ControlError
from clew.recording.assembly.tables.tables import clean_text
from clew.recording.control.client import COMMAND_ARGUMENTS, TOLD_MODES, ControlClient, architecture_of, pc_of
from clew.server.live_session import LiveSession

__all__ = ["LiveControl", "refuse_control"]

MAX_BODY_BYTES: Final = 16384
MAX_WORD_LENGTH: Final = 4096
MAX_TOLD_THREADS: Final = 200
"""So many threads that are stopped are told of, and so many others; first those with a reason of their own."""
MAX_TOLD_FILTERS: Final = 100
"""The last so many of each kind."""
_MAX_BUDGET: Final = 1 << 53


@dataclass(frozen=True)
class _Question:
    """A command with its arguments; `pid` 0 is the first recorded process, `tid` 0 the thread that moved last."""

    command: str
    pid: int = 0
    tid: int = 0
    place: str = ""
    what: str = ""
    mode: str = ""
    budget: int | None = None


class LiveControl:
    """Passes on to the recorder of `session`, which is process `recorder`, what pages ask."""

    def __init__(self, session: LiveSession, recorder: Pid) -> None:
        self._session = session
        self._recorder = recorder

    async def answer(self, request: Request) -> Response:
        """Answer GET with how a process stands (`pid` in the query), POST with how it stands after a command.

        `status` of the answer is null where the process is not recorded any more, and `reason` may say why; `places` is
        in how many pieces of code a filter holds something, or null. Raises HTTPException and ControlError.
        """
        if request.method == "POST":
            question = _parse(await _read_body(request))
            return JSONResponse(await run_in_threadpool(self._do, question))
        question = _Question("status", _parse_pid(request.query_params.get("pid", "0")))
        return JSONResponse(await run_in_threadpool(self._look, question))

    def _look(self, question: _Question) -> dict[str, Any]:
        """As `_do`. That a program ends while it is looked at is no failure."""
        try:
            return self._do(question)
        except HTTPException as error:
            reason = error.detail
        except ControlError as error:
            reason = error.message
        return {"status": None, "places": None, "reason": reason}

    def _do(self, question: _Question) -> dict[str, Any]:
        if self._session.state != "running":
            raise HTTPException(409, "the program has ended: there is nothing left to control")
        try:
            client = ControlClient.of_recorder(self._recorder, Pid(question.pid))
            answer = client.do(
                question.command,
                tid=question.tid,
                place=question.place,
                what=question.what,
                mode=question.mode,
                budget=question.budget,
            )
            places = answer.get("places")
            if places is not None:
                answer = client.do("status")
        except ControlError as error:
            # Names in it may be the target's.
            raise ControlError(clean_text(error.message)) from error
        return {"status": _tell_status(answer, client.pid), "places": places, "reason": ""}


async def refuse_control(_request: Request) -> Response:
    """The answer of a viewer of finished traces."""
    raise HTTPException(404, "no program is being recorded here; `clew record --view` shows one that is")


async def _read_body(request: Request) -> bytes:
    """All of it; it is not read on when it is too much. Raises HTTPException."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > MAX_BODY_BYTES:
            raise HTTPException(413, f"a command has at most {MAX_BODY_BYTES} bytes")
    return body


def _parse(body: bytes) -> _Question:
    """The command that a body is. Raises HTTPException."""
    try:
        said = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise HTTPException(400, "a command is an object in JSON") from error
    if not isinstance(said, dict):
        raise HTTPException(400, "a command is an object in JSON")
    command = said.get("command")
    wanted = COMMAND_ARGUMENTS.get(command) if isinstance(command, str) else None
    if wanted is None:
        raise HTTPException(400, f"no such command; there is {', '.join(COMMAND_ARGUMENTS)}")
    unknown = said.keys() - {"command", "pid", wanted}
    if unknown:
        raise HTTPException(400, f"{command} takes {wanted or 'no argument'} and pid, and nothing else")
    pid = _take_number(said, "pid", 0, MAX_PID)
    if wanted == "tid":
        return _Question(str(command), pid, tid=_take_number(said, "tid", 0, MAX_PID))
    if wanted == "place":
        return _Question(str(command), pid, place=_take_word(said, "place"))
    if wanted == "what":
        return _Question(str(command), pid, what=_take_word(said, "what"))
    if wanted == "mode":
        mode = _take_word(said, "mode")
        if mode not in TOLD_MODES:
            raise HTTPException(400, f"mode: give one of {', '.join(TOLD_MODES)}")
        return _Question(str(command), pid, mode=mode)
    if wanted == "budget":
        if "budget" not in said:
            raise HTTPException(400, "budget: give bytes a second, or -1 for all")
        return _Question(str(command), pid, budget=_take_number(said, "budget", -1, _MAX_BUDGET))
    return _Question(str(command), pid)


def _parse_pid(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= 7 and int(text) <= MAX_PID):
        raise HTTPException(400, f"pid: a number from 0 to {MAX_PID}")
    return int(text)


def _take_number(said: Mapping[str, Any], name: str, least: int, most: int) -> int:
    value = said.get(name, 0)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise HTTPException(400, f"{name}: a whole number from {least} to {most}")
    return value


def _take_word(said: Mapping[str, Any], name: str) -> str:
    value = said.get(name)
    if not isinstance(value, str) or not value.strip() or len(value) > MAX_WORD_LENGTH or not value.isprintable():
        raise HTTPException(400, f"{name}: a word of at most {MAX_WORD_LENGTH} characters that can be printed")
    return value.strip()


def _tell_status(answer: Mapping[str, Any], pid: Pid) -> dict[str, Any] | None:
    """What the page is told of process `pid`; None if it is not among those that are recorded.

    Addresses and registers are hexadecimal, since JavaScript's numbers do not hold them.
    """
    process = next((one for one in answer.get("processes", ()) if one["pid"] == pid), None)
    if process is None:
        return None
    architecture = architecture_of(process)
    stopped = sorted(process["threads"], key=lambda thread: (thread["reason"] == "asked", thread["tid"]))
    elsewhere = sorted(process["elsewhere"], key=lambda thread: int(thread["tid"]))
    return {
        "pid": pid,
        "mode": answer["mode"],
        "budget": answer["budget"],
        "is_paused": answer["is_paused"],
        "include": [clean_text(text) for text in answer["include"][-MAX_TOLD_FILTERS:]],
        "exclude": [clean_text(text) for text in answer["exclude"][-MAX_TOLD_FILTERS:]],
        "executable": clean_text(process["executable"]),
        "is_held": process["is_held"],
        "breakpoints": [
            {"address": f"{one['address']:#x}", "symbol": clean_text(one["symbol"])} for one in process["breakpoints"]
        ],
        "stopped": [
            {
                "tid": thread["tid"],
                "reason": thread["reason"],
                "address": f"{pc_of(process, thread):#x}",
                "symbol": clean_text(thread["symbol"]),
                "registers": {name: f"{value:#x}" for name, value in thread["registers"].items()},
            }
            for thread in stopped[:MAX_TOLD_THREADS]
        ],
        "elsewhere": [
            {"tid": thread["tid"], "system_call": _name_call(thread["system_call"], architecture)}
            for thread in elsewhere[:MAX_TOLD_THREADS]
        ],
        "n_stopped": len(stopped),
        "n_elsewhere": len(elsewhere),
    }


def _name_call(number: int | None, architecture: Architecture) -> str | None:
    """The system call that a thread waits in; None where it runs."""
    return None if number is None or number < 0 else architecture.name_wait(number)
