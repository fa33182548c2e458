"""The controller of a session in the background: one thread that does what is told, and what goes on in processes.

Runs in the controller, a process of its own. It ends when the session is destroyed; at SIGTERM, SIGINT or SIGHUP it
destroys that itself.
"""

from __future__ import annotations

import contextlib
import os
import resource
import select
import signal
import sys
import time
import traceback
from typing import Final

from clew.errors import ClewError, ControlError
from clew.recording.control.server import ControlServer
from clew.sessions.probes.background.background_session import BackgroundSession, OpenWriter
from clew.sessions.probes.background.commands import SessionCommands
from clew.sessions.probes.background.state_folder import SessionPlace

__all__ = ["READY", "TAKEN", "run_controller"]

READY: Final = "ready"
TAKEN: Final = "taken"
"""What whoever starts a controller is told: it listens; another one of that name does."""
_POLL_SECONDS: Final = 0.02
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def run_controller(place: SessionPlace, open_writer: OpenWriter, ready: int) -> None:
    """Be the controller of the session at `place` until it is destroyed. `ready` is written what became of it, and
    closed. Raises ClewError, OSError."""
    log = place.take()
    if log is None:
        _tell_ready(ready, TAKEN)
        return
    for number in (1, 2):
        os.dup2(log, number)
    os.chdir("/")
    # Each process takes some descriptors: its memory, its files.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    try:
        _Controller(place, open_writer).run(ready)
    finally:
        place.log.unlink(missing_ok=True)
        os.close(log)


class _Controller:
    def __init__(self, place: SessionPlace, open_writer: OpenWriter) -> None:
        self._session = BackgroundSession(place.name, open_writer, _log)
        self._watched: set[int] = set()
        do = SessionCommands(self._session).do
        self._server = ControlServer(do, self._session.has, self._watched.add, self._watched.discard, place.socket)
        self._woken, self._waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)

    def run(self, ready: int) -> None:
        """Until the session is destroyed, or a signal comes."""
        if self._server.path is None:
            raise ControlError("no socket can be made")
        is_told = False

        def leave(_number: int, _frame: object) -> None:
            nonlocal is_told
            is_told = True

        for number in _SIGNALS:
            signal.signal(number, leave)
        signal.set_wakeup_fd(self._waker, warn_on_full_buffer=False)
        _tell_ready(ready, READY)
        _log("listening")
        try:
            while not self._session.is_destroyed and not is_told:
                self._wait()
                if self._is_asked():
                    # What has happened before somebody asks is in the answer.
                    self._go_on()
                self._server.advance()
                self._go_on()
            if not self._session.is_destroyed:
                self._session.destroy()
        finally:
            self._server.close()

    def _go_on(self) -> None:
        try:
            self._session.advance()
        except Exception as error:
            # Whatever it is: processes are left as they were, and who asks is told.
            traceback.print_exc()
            text = error.message if isinstance(error, ClewError) else f"{type(error).__name__}: {error}"
            self._session.fail(text)

    def _is_asked(self) -> bool:
        return bool(self._poll(0))

    def _poll(self, milliseconds: int | None) -> list[tuple[int, int]]:
        """Wait until somebody asks, or a signal comes."""
        poll = select.poll()
        for descriptor in (*self._watched, self._woken):
            poll.register(descriptor, select.POLLIN)
        return poll.poll(milliseconds)

    def _wait(self) -> None:
        if self._session.has_processes:
            self._session.wait(_POLL_SECONDS)
            return
        if not self._server.is_busy:
            self._poll(None)
        with contextlib.suppress(BlockingIOError):
            os.read(self._woken, 64)


def _tell_ready(ready: int, text: str) -> None:
    with contextlib.suppress(OSError):
        os.write(ready, text.encode())
    os.close(ready)


def _log(text: str) -> None:
    sys.stderr.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {text.encode('unicode_escape').decode()}\n")
    sys.stderr.flush()
