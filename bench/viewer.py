"""`clew view` in a process of its own, asked over HTTP as the page does, with the time that each answer took.

Runs on the machine that measures. Knows addresses and no program.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import Any

from bench.tools import ROOT, make_environment
from clew.server.container import decode_container

__all__ = ["Viewer"]

_ADDRESS = re.compile(rb"http://127\.0\.0\.1:(\d+)/#token=([\w-]+)\n")
_LIMIT_SECONDS = 600.0
_STOP_SECONDS = 20.0
_LOOK_SECONDS = 0.2


class Viewer:
    """A server of one trace, until it is left. Raises RuntimeError where it does not begin or refuses to answer."""

    def __init__(self, trace: Path) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "clew", "view", "--port", "0", "--no-browser", str(trace)],
            stdout=subprocess.PIPE,
            env=make_environment(PYTHONPATH=str(ROOT / "src")),
        )
        assert self._process.stdout is not None
        found = _ADDRESS.fullmatch(self._process.stdout.readline())
        if found is None:
            self._stop()
            raise RuntimeError("`clew view` printed no address")
        self._token = found[2].decode()
        self._port = int(found[1])

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stop()

    def ask(self, path: str) -> tuple[Any, float]:
        """What is answered for a path behind the trace's, an object or the arrays of a container, and after how many
        milliseconds it was there whole."""
        start_ns = time.perf_counter_ns()
        # One for each question: the server ends those that nothing was asked over for some seconds.
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=_LIMIT_SECONDS)
        try:
            connection.request("GET", f"/api/traces/0{path}", headers={"Authorization": f"Bearer {self._token}"})
            response = connection.getresponse()
            content = response.read()
        finally:
            connection.close()
        milliseconds = (time.perf_counter_ns() - start_ns) / 1e6
        if response.status != http.client.OK:
            raise RuntimeError(f"{path}: {response.status} {content[:200].decode(errors='replace')}")
        is_json = response.headers["content-type"].startswith("application/json")
        return json.loads(content) if is_json else decode_container(content)[2], milliseconds

    def wait_until_idle(self) -> float:
        """Wait until the server does nothing more by itself; how many seconds that took."""
        start, used = time.monotonic(), -1.0
        while used != (used := self._read_cpu_seconds()):
            time.sleep(_LOOK_SECONDS)
        return time.monotonic() - start

    def _read_cpu_seconds(self) -> float:
        # Behind the name, which may hold anything: proc(5) has user and system time as fields 14 and 15.
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def _stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        assert self._process.stdout is not None
        self._process.stdout.close()
