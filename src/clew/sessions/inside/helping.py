"""The process that follows this one: how it is started, told, waited for, and what of it is removed.

Runs in the process that is followed. Events come by a file in memory that both have, all else by a pair of sockets, one
message of JSON at a time.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt

from clew.address import Pid
from clew.dataclass import dataclass
from clew.errors import AttachError, ControlError
from clew.process.linux import allow_tracer, punch_hole
from clew.protocol.codec_layouts import FLOW_EVENT

if TYPE_CHECKING:
    from clew.sessions.inside.own_events import OwnRequest

__all__ = ["Helping", "Left"]

Array = npt.NDArray[Any]

_MESSAGE_BYTES: Final = 1 << 20
_READ_BYTES: Final = 1 << 26
_KEPT: Final = ("PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "PYTHONPYCACHEPREFIX")
"""Variables that say where Python finds and leaves its own; others may make it do anything when it starts."""
_MODULE: Final = "clew.sessions.inside.helper"


@dataclass(frozen=True)
class Left:
    """How it went, as the helper told it; `warning` is for people, or empty."""

    n_dropped: int
    n_gaps: int
    n_damaged: int
    warning: str


class Helping:
    """Thread `tid` of this process is followed from when this is made, until `leave`. Raises AttachError, ControlError,
    and nothing is left then."""

    def __init__(self, tid: int, request: OwnRequest) -> None:
        self._open = contextlib.ExitStack()
        try:
            self._start(tid, request)
        except BaseException as error:
            self.close()
            if isinstance(error, OSError):
                raise ControlError(f"the process that follows this one can't be started: {error.strerror}") from error
            raise

    def _start(self, tid: int, request: OwnRequest) -> None:
        folder = Path(tempfile.mkdtemp(prefix="clew-follow-"))
        self._open.callback(shutil.rmtree, folder, ignore_errors=True)
        self._events = os.memfd_create("clew-events", os.MFD_CLOEXEC)
        self._open.callback(os.close, self._events)
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._open.callback(self._socket.close)
        with theirs:
            _launch(theirs.fileno(), self._events, folder)
        met = self._receive()
        if met is None:
            raise ControlError(f"the process that follows this one could not start: {_last_line(folder / 'errors')}")
        if allow_tracer(int(met["pid"])):
            # Undone when the helper has ended: to leave it attaches again.
            self._open.callback(allow_tracer, 0)
        self._wait_for_end_of(int(met["pid"]))
        self._send(
            {
                "pid": os.getpid(),
                "tid": tid,
                "events": request.events,
                "include": request.include,
                "exclude": request.exclude,
                # An object that lies in the interpreter's image.
                "interpreter": 0 if request.interpreter else id(object),
                "time": request.time,
                "limit": request.limit,
            }
        )
        answer = self._receive()
        if answer is None:
            raise ControlError(f"the process that follows this one has ended: {_last_line(folder / 'errors')}")
        if answer["error"]:
            raise AttachError(Pid(os.getpid()), str(answer["error"]))

    def leave(self, *, is_marked: bool) -> Left | None:
        """Have this process left; how it went, or None if the helper has ended before. Where `is_marked` the thread
        has made the system call at which its events end."""
        self._send({"is_marked": is_marked})
        answer = self._receive()
        if answer is None:
            return None
        return Left(int(answer["dropped"]), int(answer["gaps"]), int(answer["damaged"]), str(answer["warning"]))

    def read_events(self) -> Array:
        """All events that the helper has told, once: what is read is given back, so that nothing is there twice."""
        n_rows = os.fstat(self._events).st_size // FLOW_EVENT.itemsize
        rows = np.empty(n_rows, FLOW_EVENT)
        into, n_read = rows.view(np.uint8).data, 0
        while n_read < len(into):
            n_more = os.preadv(self._events, [into[n_read : n_read + _READ_BYTES]], n_read)
            if n_more == 0:
                break
            punch_hole(self._events, n_read, n_more)
            n_read += n_more
        return rows[: n_read // FLOW_EVENT.itemsize]

    def close(self) -> None:
        """End it: nothing of it is left. Should it follow still, it leaves first."""
        self._open.close()

    def forget(self) -> None:
        """Let go of it in a process that has only inherited it."""
        self._open.pop_all()
        self._socket.close()
        for descriptor in (self._events, self._end):
            os.close(descriptor)

    def _wait_for_end_of(self, helper: int) -> None:
        """From now on closing waits until the helper has ended. It ends when it hears that nobody is there."""
        self._end = os.pidfd_open(helper)

        def wait() -> None:
            self._socket.close()
            ends = select.poll()
            ends.register(self._end, select.POLLIN)
            ends.poll()
            # It was adopted: by this process, if that is the first of its container or asked for it.
            with contextlib.suppress(ChildProcessError):
                os.waitpid(helper, os.WNOHANG)

        self._open.callback(os.close, self._end)
        self._open.callback(wait)

    def _send(self, message: dict[str, Any]) -> None:
        # Whoever has ended is met when the answer is to be read.
        with contextlib.suppress(BrokenPipeError, ConnectionError):
            self._socket.send(json.dumps(message).encode("ascii"), socket.MSG_NOSIGNAL)

    def _receive(self) -> dict[str, Any] | None:
        """The next message; None if the helper has ended."""
        try:
            data = self._socket.recv(_MESSAGE_BYTES)
        except ConnectionError:
            return None
        message: dict[str, Any] | None = json.loads(data) if data else None
        return message


def _launch(channel: int, events: int, folder: Path) -> None:
    """Start the helper, which becomes nobody's child: this process may wait for any of its own. Raises ControlError."""
    if not sys.executable:
        raise ControlError("this Python does not know its own executable (sys.executable), which has to follow it")
    environment = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    environment |= {name: os.environ[name] for name in _KEPT if name in os.environ}
    # What can be imported here can be there, wherever it was found.
    own = str(Path(__file__).resolve().parents[3])
    environment["PYTHONPATH"] = os.pathsep.join([own, *(os.path.abspath(path) for path in sys.path)])
    # What a session makes there goes with the folder, should it be killed.
    environment["TMPDIR"] = str(folder)
    try:
        with (folder / "errors").open("wb") as errors:
            subprocess.run(
                [sys.executable, "-P", "-S", "-m", _MODULE, str(channel), str(events)],
                pass_fds=(channel, events),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=environment,
                cwd="/",
                # Ctrl-C is this process's business.
                start_new_session=True,
            )
    except OSError as error:
        raise ControlError(f"{sys.executable}: can't be started: {error.strerror}") from error


def _last_line(path: Path) -> str:
    """What it said at last."""
    with contextlib.suppress(OSError):
        lines = path.read_text(errors="replace").strip().splitlines()
        if lines:
            return lines[-1]
    return "it was killed"
