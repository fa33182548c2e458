"""Measures one run of a command: CPU time of it and all its descendants, wall time, a digest of its output.

Runs on the machine that measures. Knows no statistics.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Measurement:
    """One run. `cpu_seconds` is user + system of the whole tree that was waited for; `status` as a shell says it."""

    cpu_seconds: float
    wall_seconds: float
    max_rss_bytes: int
    status: int
    stdout_digest: str


def measure(command: Sequence[str], environment: dict[str, str], stdin: Path | None = None) -> Measurement:
    """Run a command to its end. Its stdout goes to a file and is digested; stderr is the caller's."""
    with tempfile.TemporaryFile() as output:
        source = os.open(stdin or os.devnull, os.O_RDONLY)
        start = time.monotonic()
        pid = os.posix_spawnp(
            command[0],
            list(command),
            environment,
            file_actions=[(os.POSIX_SPAWN_DUP2, source, 0), (os.POSIX_SPAWN_DUP2, output.fileno(), 1)],
        )
        _, status, usage = os.wait4(pid, 0)
        wall_seconds = time.monotonic() - start
        os.close(source)
        output.seek(0)
        digest = hashlib.file_digest(output, "sha256").hexdigest()
    code = os.waitstatus_to_exitcode(status)
    return Measurement(
        cpu_seconds=usage.ru_utime + usage.ru_stime,
        wall_seconds=wall_seconds,
        max_rss_bytes=usage.ru_maxrss * 1024,
        status=code if code >= 0 else 128 - code,
        stdout_digest=digest,
    )
