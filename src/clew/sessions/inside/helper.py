"""The process that follows a thread of the one that started it: `python -m clew.sessions.inside.helper SOCKET FILE`.

Runs as a process of its own, started by `helping`. It ends when it is told to, when that process ends or executes
another program, and when nobody holds the other socket any more.
"""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import numpy.typing as npt

    from clew.sessions.events.event_stream import EventStream
    from clew.sessions.inside.own_rows import Ranges
    from clew.sessions.session import Session

__all__ = ["main"]

_MESSAGE_BYTES: Final = 1 << 20
_LIBRARY_NAMES: Final = ("libc.", "libc-", "libpthread", "libdl.", "libdl-", "librt", "libutil", "ld-")


def main(arguments: list[str]) -> int:
    """Do as the other side of the socket asks, once; the exit status."""
    channel_fd, events_fd = map(int, arguments)
    # Not as the other process has them: whoever traces has to be told of what ends.
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    if os.fork():
        # Whoever started it shall have no child that it does not know of.
        return 0
    channel = socket.socket(fileno=channel_fd)
    _send(channel, {"pid": os.getpid()})
    request = _receive(channel)
    if request is not None:
        _Helper(channel, request, events_fd).run()
    return 0


def _send(channel: socket.socket, message: dict[str, Any]) -> None:
    try:
        channel.send(json.dumps(message).encode("ascii"), socket.MSG_NOSIGNAL)
    except ConnectionError:
        return


def _receive(channel: socket.socket) -> dict[str, Any] | None:
    """The next message; None if nobody is there any more."""
    try:
        data = channel.recv(_MESSAGE_BYTES)
    except ConnectionError:
        return None
    message: dict[str, Any] | None = json.loads(data) if data else None
    return message


class _Helper:
    """Follows what `request` asks for; events go to the file `events`."""

    def __init__(self, channel: socket.socket, request: dict[str, Any], events: int) -> None:
        self._channel, self._request, self._events = channel, request, events
        self._pid = int(request["pid"])
        self._n_left = int(request["limit"])
        self._n_dropped = 0
        self._is_marked = False
        self._failure = ""

    def run(self) -> None:
        """Follow until it is over, and tell how it went."""
        from clew.errors import ClewError

        parent = os.pidfd_open(self._pid)
        try:
            session = self._attach()
        except ClewError as error:
            _send(self._channel, {"error": error.message})
            return
        try:
            stream = self._follow(session)
        except ClewError as error:
            session.close()
            _send(self._channel, {"error": error.message})
            return
        writer = threading.Thread(target=self._write_all, args=(stream,), name="clew-write")
        writer.start()
        _send(self._channel, {"error": ""})
        polled = select.poll()
        polled.register(parent, select.POLLIN)
        polled.register(self._channel, select.POLLIN)
        while not polled.poll():
            pass
        told = _receive(self._channel) if _is_readable(self._channel) else None
        self._is_marked = told is not None and bool(told["is_marked"])
        session.detach(wait=False)
        writer.join()
        if told is None:
            session.close()
            shutil.rmtree(os.environ["TMPDIR"], ignore_errors=True)
            return
        _send(
            self._channel,
            {
                "dropped": self._n_dropped + stream.n_dropped,
                "gaps": stream.n_gaps,
                "damaged": stream.n_damaged,
                "warning": self._failure,
            },
        )
        # Nobody reads the trace of it, which is made now; its folder goes with that of the other side.
        os._exit(0)

    def _attach(self) -> Session:
        from pathlib import Path

        from clew.address import Pid
        from clew.recording.options.record_options import parse_options
        from clew.recording.session.attached import Attach
        from clew.sessions.session import Session

        include, exclude = self._request["include"], self._request["exclude"]
        options = parse_options(Path(), mode="full", include=include, exclude=exclude, follow=False)
        return Session(lambda: Attach(Pid(self._pid), None), options, is_spawned=False)

    def _follow(self, session: Session) -> EventStream:
        # The system calls at the body's ends are among the events, whoever wants them.
        events = {*self._request["events"], "syscall"}
        if self._request["interpreter"] and not events & {"block", "exec"}:
            # They tell whose code it is.
            events |= {"call", "ret"}
        return session.follow(int(self._request["tid"]), events=events, time=bool(self._request["time"]))

    def _write_all(self, stream: EventStream) -> None:
        """Write what is told until nothing more is."""
        from clew.process.linux import number_of_call
        from clew.sessions.events.event_stream import parse_kinds
        from clew.sessions.inside.own_rows import OwnRows

        rows = OwnRows(parse_kinds(self._request["events"]), number_of_call("getppid"), *self._ranges())
        try:
            for batch in stream:
                self._write(rows.take(batch))
            self._write(rows.end(is_marked=self._is_marked))
        except Exception as error:
            self._failure = f"events are missing: {type(error).__name__}: {error}"
            stream.close()

    def _ranges(self) -> tuple[Ranges, Ranges]:
        """Where the interpreter's code is, that of the file in which one of its objects lies, and the C library's.
        None: nothing is left out."""
        from clew.address import Pid
        from clew.process.linux import PROT_EXEC
        from clew.process.maps import read_maps

        mappings, within = read_maps(Pid(self._pid)), int(self._request["interpreter"])
        path = next((one.path for one in mappings if one.start <= within < one.end), "")
        if not path:
            return [], []
        code = [one for one in mappings if one.protection & PROT_EXEC]
        return (
            [(one.start, one.end) for one in code if one.path == path],
            [(one.start, one.end) for one in code if one.path != path and _is_of_library(one.path)],
        )

    def _write(self, pieces: Iterable[npt.NDArray[Any]]) -> None:
        for rows in pieces:
            kept = rows[: self._n_left]
            self._n_left -= len(kept)
            self._n_dropped += len(rows) - len(kept)
            if not _write_whole(self._events, kept.data.cast("B")):
                self._n_left = 0
                self._n_dropped += len(kept)


def _is_of_library(path: str) -> bool:
    """Whether a file is of the C library, or what it calls of the kernel's; that of mathematics is none of it."""
    return path == "[vdso]" or path.rsplit("/", 1)[-1].startswith(_LIBRARY_NAMES)


def _is_readable(channel: socket.socket) -> bool:
    polled = select.poll()
    polled.register(channel, select.POLLIN)
    return bool(polled.poll(0))


def _write_whole(descriptor: int, data: memoryview) -> bool:
    """Append all of `data` to a file, or nothing of it where there is no room."""
    start = os.lseek(descriptor, 0, os.SEEK_CUR)
    n_written = 0
    try:
        while n_written < len(data):
            n_written += os.write(descriptor, data[n_written:])
    except OSError:
        os.ftruncate(descriptor, start)
        os.lseek(descriptor, start, os.SEEK_SET)
        return False
    return True


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
