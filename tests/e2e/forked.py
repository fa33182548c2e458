"""Runs clew in a fork of a process that has imported it: most of what a short recording takes is imports.

Runs on the machine that tests. Does not know what is recorded. With CLEW_FORKED=0 every command is started anew.
"""

from __future__ import annotations

import io
import json
import os
import select
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any

from tests.e2e.fork_server import BEGUN, ENDED, MAX_REQUEST_BYTES

SERVER = Path(__file__).with_name("fork_server.py")
READ_LATE = ("CLEW_", "TREE_")
"""How variables begin that only clew reads, when it does what they are about, or only the programs that it records."""

Stream = int | IO[Any] | None
"""What a process is given for a standard stream, as `subprocess` has it."""


class ForkedProcess:
    """A command of clew's in a fork, in a session of its own, with what tests use of `subprocess.Popen`.

    `returncode`, `stdin`, `stdout` and `stderr` are as that has them. It is no child of this process.
    """

    def __init__(self, words: Sequence[str], answers: socket.socket, streams: Sequence[IO[bytes] | None]) -> None:
        self.returncode: int | Any = None
        self.stdin, self.stdout, self.stderr = streams
        self._words = words
        self._answers = answers
        self._output = {stream.fileno(): bytearray() for stream in streams[1:] if stream is not None}
        self.pid = self._receive(BEGUN)

    def poll(self) -> int | None:
        """Its status, if it has ended."""
        return self._look(0.0)

    def wait(self, timeout: float | None = None) -> int:
        """Its status, when it has ended. subprocess.TimeoutExpired when that takes too long."""
        status = self._look(timeout)
        if status is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self._words, timeout)
        return status

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it has not ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it with SIGKILL."""
        self.send_signal(signal.SIGKILL)

    def communicate(self, input: bytes | None = None, timeout: float | None = None) -> tuple[bytes, bytes]:
        """Write all of `input`, read stdout and stderr to their ends, wait for its end: what it wrote to both.

        subprocess.TimeoutExpired when that takes too long; what was read till then is given the next time.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        is_done = self._exchange(input or b"", deadline)
        left = None if deadline is None else max(deadline - time.monotonic(), 0.0)
        if not is_done or self._look(left) is None:
            assert timeout is not None
            raise subprocess.TimeoutExpired(self._words, timeout)
        found = [b"" if stream is None else self._take(stream) for stream in (self.stdout, self.stderr)]
        return found[0], found[1]

    def __enter__(self) -> ForkedProcess:
        return self

    def __exit__(self, *_: object) -> None:
        for stream in (self.stdout, self.stderr, self.stdin):
            if stream is not None:
                with suppress(BrokenPipeError):
                    stream.close()
        self.wait()

    def _take(self, stream: IO[bytes]) -> bytes:
        if stream.closed:
            return b""
        output = self._output.pop(stream.fileno())
        stream.close()
        return bytes(output)

    def _look(self, timeout: float | None) -> int | None:
        if self.returncode is None and select.select([self._answers], [], [], timeout)[0]:
            self.returncode = self._receive(ENDED)
            self._answers.close()
        return self.returncode

    def _receive(self, what: str) -> int:
        answer = self._answers.recv(64).decode()
        if not answer.startswith(what):
            raise RuntimeError(f"clew {' '.join(self._words)}: told {answer!r} by its fork, and not that it has {what}")
        return int(answer.removeprefix(what))

    def _exchange(self, input: bytes, deadline: float | None) -> bool:
        """Write all of `input`, and read what there is to read, until its ends; whether it came to them."""
        rest = memoryview(input)
        with selectors.DefaultSelector() as selector:
            if self.stdin is not None and not self.stdin.closed:
                with suppress(BrokenPipeError):
                    self.stdin.flush()
                os.set_blocking(self.stdin.fileno(), False)
                selector.register(self.stdin, selectors.EVENT_WRITE)
            for stream in (self.stdout, self.stderr):
                if stream is not None and not stream.closed:
                    selector.register(stream, selectors.EVENT_READ)
            while selector.get_map():
                ready = selector.select(None if deadline is None else max(deadline - time.monotonic(), 0.0))
                if not ready and deadline is not None and time.monotonic() > deadline:
                    return False
                for key, _ in ready:
                    if key.fd in self._output:
                        assert isinstance(key.fileobj, io.BufferedReader)
                        # What is in its buffer is given first.
                        part = key.fileobj.read1(1 << 16)
                        self._output[key.fd] += part
                        if not part:
                            selector.unregister(key.fileobj)
                        continue
                    try:
                        rest = rest[os.write(key.fd, rest[:4096]) if rest else 0 :]
                    except BrokenPipeError:
                        rest = rest[:0]
                    if not rest:
                        selector.unregister(key.fileobj)
                        assert self.stdin is not None
                        with suppress(BrokenPipeError):
                            self.stdin.close()
        return True


Process = subprocess.Popen[bytes] | ForkedProcess


class ForkServer:
    """The process that forks; it ends with this one. Its forks have the environment that it is given, or another."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.environ = dict(environ)
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            self._process = subprocess.Popen(
                [sys.executable, SERVER, str(its.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=self.environ,
                pass_fds=[its.fileno()],
                start_new_session=True,
            )
        self._socket = ours

    def start(
        self,
        words: Sequence[str],
        folder: Path,
        streams: Sequence[Stream],
        environ: Mapping[str, str],
        *,
        fixed_layout: bool,
    ) -> ForkedProcess:
        """Begin `clew WORDS`, with what it has for stdin, stdout and stderr, and its environment."""
        other = None if list(environ.items()) == list(self.environ.items()) else dict(environ)
        request = {"words": words, "folder": os.fspath(folder), "fixed_layout": fixed_layout, "environ": other}
        answers, its_answers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours: list[IO[bytes] | None] = []
        with its_answers, ExitStack() as its_streams:
            fds = []
            for number, stream in enumerate(streams):
                ours.append(None)
                if stream == subprocess.PIPE:
                    reading, writing = os.pipe()
                    ours[-1] = open(reading, "rb") if number else open(writing, "wb")  # noqa: SIM115
                    fds.append(writing if number else reading)
                    its_streams.callback(os.close, fds[-1])
                elif stream == subprocess.DEVNULL:
                    fds.append(os.open(os.devnull, os.O_RDWR))
                    its_streams.callback(os.close, fds[-1])
                else:
                    assert not isinstance(stream, int), stream
                    fds.append(number if stream is None else stream.fileno())
            socket.send_fds(self._socket, [json.dumps(request).encode()], [*fds, its_answers.fileno()])
        return ForkedProcess(words, answers, ours)

    def end(self) -> None:
        """Fork no more."""
        self._socket.close()
        self._process.wait()


_servers: dict[tuple[tuple[str, str], ...], ForkServer] = {}


def end_servers() -> None:
    """End the processes that fork, of which none is at work."""
    while _servers:
        _servers.popitem()[1].end()


def is_read_late(name: str) -> bool:
    """Whether nothing reads a variable of this name at the start of a process, or while modules are imported."""
    return name.startswith(READ_LATE)


def find_server(words: Sequence[str], environ: Mapping[str, str]) -> ForkServer | None:
    """Who runs these words of clew's; None where they have to be started anew."""
    if os.environ.get("CLEW_FORKED") == "0" or sum(map(len, words)) > MAX_REQUEST_BYTES // 8:
        return None
    # What is ignored is inherited, and by forks of another process is not.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        return None
    # All that forks can be given afterwards is left to them, so that few processes have to import clew.
    key = tuple((name, value) for name, value in environ.items() if not is_read_late(name))
    if key not in _servers:
        _servers[key] = ForkServer(environ)
    return _servers[key]
