"""Runs `clew view` for the tests: as whoever uses it does, in a process of its own.

Runs on the machine that tests. Knows what the command prints; does not know the page.
"""

from __future__ import annotations

import http.client
import json
import re
import select
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from clew.server.container import decode_container
from clew.store.columns import Array
from tests.e2e.runs import clew_command, start

__all__ = ["Answer", "Server"]

_START_SECONDS: Final = 30.0
_STOP_SECONDS: Final = 20.0
_ADDRESS: Final = re.compile(r"http://127\.0\.0\.1:(\d+)/#token=([\w-]{20,})\n")


class Answer:
    """What the server answered."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.content = response.read()

    def json(self) -> Any:
        """What it says, as JSON."""
        return json.loads(self.content)

    def arrays(self) -> dict[str, Array]:
        """The arrays of the container that it is."""
        return decode_container(self.content)[2]


class Server:
    """A running `clew view`. `origin` and `url` are its addresses, `url` with the token; `names` its traces, in order.

    Raises RuntimeError, with what it said, when it does not begin.
    """

    def __init__(self, traces: Sequence[Path], *options: str) -> None:
        self.names = [trace.stem for trace in traces]
        # Not a pipe: nobody reads what it says while it runs.
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        command = clew_command("view", "--port", "0", "--no-browser", *options, *traces)
        self.process = start(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self._said)
        found = _ADDRESS.fullmatch(self._read_line())
        if found is None:
            self.stop(signal.SIGKILL)
            raise RuntimeError(f"`clew view` printed no address; it said: {self.said}")
        self.port, self.token = int(found[1]), found[2]
        self.origin = f"http://127.0.0.1:{self.port}"
        self.url = f"{self.origin}/#token={self.token}"

    @property
    def said(self) -> str:
        """All that it has written to stderr."""
        self._said.seek(0)
        return self._said.read().decode(errors="replace")

    def get(
        self, path: str, headers: Mapping[str, str] | None = None, *, token: str | None = None, method: str = "GET"
    ) -> Answer:
        """Ask for `path`, with the right token or with `token`; `headers` are added, and replace others."""
        known = {"Authorization": f"Bearer {self.token if token is None else token}", **(headers or {})}
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.putrequest(method, path, skip_host="Host" in known)
            for name, value in known.items():
                connection.putheader(name, value)
            connection.endheaders()
            return Answer(connection.getresponse())
        finally:
            connection.close()

    def stop(self, with_signal: signal.Signals = signal.SIGINT) -> int:
        """End it, and give its exit status."""
        if self.process.poll() is None:
            self.process.send_signal(with_signal)
        try:
            return self.process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise
        finally:
            assert self.process.stdout is not None
            self.process.stdout.close()

    def _read_line(self) -> str:
        assert self.process.stdout is not None
        line, limit = b"", time.monotonic() + _START_SECONDS
        while not line.endswith(b"\n") and time.monotonic() < limit:
            if select.select([self.process.stdout], [], [], 0.5)[0]:
                content = self.process.stdout.read1(4096)  # type: ignore[attr-defined]
                if not content:
                    break
                line += content
        return line.decode(errors="replace")
