"""What the recorder tells a live viewer: which processes it follows, and what became of the recording.

Runs in the controller, in the recording's own thread, which must never wait for the viewer: what finds no room in the
socket is left out and counted, and a viewer that is gone is told of once. What is recorded goes into the journal,
whoever looks; the viewer reads it there, and the counters of what runs out of the shared memory, whose descriptor it is
given. Nothing heavy is imported here: the target is not running yet when this is.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
from typing import TYPE_CHECKING, Any, Final

from clew.dataclass import dataclass
from clew.recording.sinks.sink import ProcessSink, ProcessStart, Sink

if TYPE_CHECKING:
    from collections.abc import Iterator

    from clew.process.shared_memory import SharedMemory

__all__ = ["LiveFeed", "Told", "iter_told"]

MAX_MESSAGE_BYTES: Final = 1 << 16
MAX_DELAY_SECONDS: Final = 0.02
"""New code is to be seen soon where somebody looks."""
LAST_WORDS_SECONDS: Final = 2.0
"""How long the recorder waits to tell what became of the recording; the target has ended by then."""


class LiveFeed(Sink):
    """The recorder's end of a socket (AF_UNIX, SOCK_SEQPACKET) whose other end a live viewer has."""

    max_delay_seconds = MAX_DELAY_SECONDS

    def __init__(self, connection: socket.socket) -> None:
        self._connection: socket.socket | None = connection
        connection.setblocking(False)
        self.warnings: list[str] = []
        """Lines for people."""
        self.n_untold = 0
        """Processes that the viewer was not told of, because it was too slow."""

    def open_process(self, number: int) -> ProcessSink:
        return _ToldProcess(self, number)

    def end(self) -> None:
        self.tell_end("ended")

    def follow(self, number: int, shared: SharedMemory) -> None:
        """Process `number` of the journal is followed, and speaks through `shared`."""
        layout = shared.layout
        told = self._send(
            {
                "what": "process",
                "number": number,
                "offset": shared.offset,
                "max_threads": layout.max_threads,
                "ring_bytes": layout.ring_bytes,
                "counter_bytes": layout.counter_bytes,
            },
            [shared.fd],
        )
        self.n_untold += not told

    def tell_end(self, outcome: str, reason: str = "") -> None:
        """The recording has ended; or, later, its trace is `published`, or there is none (`failed`), and why."""
        if self._connection is not None:
            self._connection.settimeout(LAST_WORDS_SECONDS)
        self._send({"what": outcome, "reason": reason[:1000]}, [])
        if self.n_untold:
            self.warnings.append(f"the live view was too slow to be told of {self.n_untold} processes")
            self.n_untold = 0

    def close(self) -> None:
        """Let the viewer go on by itself."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _send(self, message: dict[str, Any], descriptors: list[int]) -> bool:
        """Whether the message was sent, or nobody is there any more to whom it could be."""
        if self._connection is None:
            return True
        try:
            socket.send_fds(self._connection, [json.dumps(message).encode("ascii")], descriptors)
        except (BlockingIOError, TimeoutError):
            return False
        except OSError as error:
            # ETOOMANYREFS: so many descriptors are on their way that the kernel takes no more.
            if self._is_gone(error):
                self.warnings.append("the live view ended before the recording did")
                self.close()
                return True
            return False
        return True

    @staticmethod
    def _is_gone(error: OSError) -> bool:
        return isinstance(error, (BrokenPipeError, ConnectionError))


class _ToldProcess(ProcessSink):
    """The viewer is told of a process as soon as there is something to read."""

    def __init__(self, feed: LiveFeed, number: int) -> None:
        self._feed, self._number = feed, number

    def begin(self, start: ProcessStart) -> None:
        if start.shared is not None:
            self._feed.follow(self._number, start.shared)


@dataclass(frozen=True)
class Told:
    """One message. `descriptor` is the shared memory of a `process`, the receiver's to close; -1 for others."""

    what: str
    content: dict[str, Any]
    descriptor: int = -1


def iter_told(connection: socket.socket) -> Iterator[Told]:
    """What the recorder tells, as it comes, until it is gone."""
    while True:
        try:
            data, descriptors, _, _ = socket.recv_fds(connection, MAX_MESSAGE_BYTES, 1)
        except OSError:
            return
        if not data:
            return
        for fd in descriptors[1:]:
            os.close(fd)
        content = json.loads(data)
        yield Told(content["what"], content, _reopen(descriptors[0]) if descriptors else -1)


def _reopen(fd: int) -> int:
    """The same file to be read only, in place of a descriptor that writes; that one where the kernel refuses."""
    with contextlib.suppress(OSError):
        read_only = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)
        os.close(fd)
        return read_only
    return fd
