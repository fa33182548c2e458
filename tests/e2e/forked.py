"""Runs clew in a fork of a process that has imported it: most of what a short recording takes is imports.

Runs on the machine that tests. Does not know what is recorded. With CLEW_FORKED=0 every command is started anew.
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.e2e.fork_server import MAX_REQUEST_BYTES

SERVER = Path(__file__).with_name("fork_server.py")


class ForkServer:
    """The process that forks; it ends with this one. Its forks have the environment that it is given."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        ours, its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with its:
            self._process = subprocess.Popen(
                [sys.executable, SERVER, str(its.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env=dict(environ),
                pass_fds=[its.fileno()],
                start_new_session=True,
            )
        self._socket = ours

    def run(
        self, words: Sequence[str], stdin: bytes, folder: Path, timeout_seconds: float, *, fixed_layout: bool
    ) -> tuple[int, bytes, bytes]:
        """Run `clew WORDS` to its end: status as `subprocess` has it, stdout, stderr.

        TimeoutError, with both so far, when it takes too long; its process group is killed then.
        """
        request = json.dumps({"words": words, "folder": os.fspath(folder), "fixed_layout": fixed_layout}).encode()
        answers, its_answers = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pipes = [os.pipe() for _ in range(3)]
        (its_stdin, to_stdin), (from_stdout, its_stdout), (from_stderr, its_stderr) = pipes
        with its_answers:
            fds = [its_stdin, its_stdout, its_stderr]
            socket.send_fds(self._socket, [request], [*fds, its_answers.fileno()])
        for fd in fds:
            os.close(fd)
        output = {from_stdout: bytearray(), from_stderr: bytearray()}
        with answers:
            pid = self._receive(answers)
            is_done = False
            try:
                is_done = _communicate(to_stdin, stdin, output, time.monotonic() + timeout_seconds)
            finally:
                if not is_done:
                    os.killpg(pid, signal.SIGKILL)
                    _communicate(-1, b"", output, time.monotonic() + timeout_seconds)
                for fd in output:
                    os.close(fd)
            status = self._receive(answers)
        stdout, stderr = map(bytes, output.values())
        if not is_done:
            raise TimeoutError(stdout, stderr)
        return status, stdout, stderr

    def end(self) -> None:
        """Fork no more; what was forked has ended."""
        self._socket.close()
        self._process.wait()

    def _receive(self, answers: socket.socket) -> int:
        answer = answers.recv(64)
        if not answer:
            raise RuntimeError(f"the process that forks has ended: {self._process.wait()}")
        return int(answer)


def _communicate(to_stdin: int, stdin: bytes, output: dict[int, bytearray], deadline: float) -> bool:
    """Write all of `stdin`, and add what there is to read to `output`, until its ends; whether it came to them."""
    rest = memoryview(stdin)
    with selectors.DefaultSelector() as selector:
        if to_stdin >= 0:
            os.set_blocking(to_stdin, False)
            selector.register(to_stdin, selectors.EVENT_WRITE)
        for fd in output:
            selector.register(fd, selectors.EVENT_READ)
        try:
            while selector.get_map():
                ready = selector.select(max(deadline - time.monotonic(), 0))
                if not ready and time.monotonic() > deadline:
                    return False
                for key, _ in ready:
                    if key.fd in output:
                        part = os.read(key.fd, 1 << 16)
                        output[key.fd] += part
                        is_over = not part
                    else:
                        try:
                            rest = rest[os.write(key.fd, rest[:4096]) if rest else 0 :]
                        except BrokenPipeError:
                            rest = rest[:0]
                        is_over = not rest
                    if is_over:
                        selector.unregister(key.fd)
                    if is_over and key.fd == to_stdin:
                        os.close(to_stdin)
                        to_stdin = -1
        finally:
            if to_stdin >= 0:
                os.close(to_stdin)
    return True


_servers: dict[tuple[tuple[str, str], ...], ForkServer] = {}


def end_servers() -> None:
    """End the processes that fork, of which none is at work."""
    while _servers:
        _servers.popitem()[1].end()


def find_server(words: Sequence[str], environ: Mapping[str, str]) -> ForkServer | None:
    """Who runs these words of clew's; None where they have to be started anew."""
    if os.environ.get("CLEW_FORKED") == "0" or sum(map(len, words)) > MAX_REQUEST_BYTES // 8:
        return None
    key = tuple(environ.items())
    if key not in _servers:
        _servers[key] = ForkServer(environ)
    return _servers[key]
