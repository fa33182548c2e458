"""Measures one run of a command: CPU time of it and all its descendants, wall time, a digest of its output.

Runs on the machine that measures, Linux only. A run that takes too long is cut off: it and what it started is killed,
each by its process id or process group. Knows no statistics and no tool.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import select
import signal
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

_PR_SET_CHILD_SUBREAPER = 36
_SAID_BYTES = 400
_LEAST_WAIT_SECONDS = 0.2


@dataclass(frozen=True)
class Limit:
    """Where a run is cut off: CPU seconds of it and all its descendants, and of wall time for what only waits."""

    cpu_seconds: float
    wall_seconds: float


@dataclass(frozen=True)
class Measurement:
    """One run. `cpu_seconds` is user + system of the command and all its descendants; `status` as a shell says it.

    `was_cut`: the limit was reached, and times and output are of what ran until then. `said`: the last line on stderr.
    `counted`: what the tool that followed the program says it counted, by unit.
    """

    cpu_seconds: float
    wall_seconds: float
    max_rss_bytes: int
    status: int
    stdout_digest: str
    was_cut: bool = False
    said: str = ""
    counted: dict[str, int] = field(default_factory=dict)


def adopt_orphans() -> None:
    """Have descendants whose parents end become this process's children, so that their CPU time is not lost."""
    if ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def measure(
    command: Sequence[str],
    environment: dict[str, str],
    stdin: Path | None = None,
    limit: Limit | None = None,
) -> Measurement:
    """Run a command to its end, or to the limit. Its stdout goes to a file and is digested.

    What outlives the command is killed. The caller may have no other children. OSError when it cannot be started.
    """
    adopt_orphans()
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        source = os.open(stdin or os.devnull, os.O_RDONLY)
        try:
            start = time.monotonic()
            pid = os.posix_spawnp(
                command[0],
                list(command),
                environment,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, source, 0),
                    (os.POSIX_SPAWN_DUP2, output.fileno(), 1),
                    (os.POSIX_SPAWN_DUP2, errors.fileno(), 2),
                ],
                setpgroup=0,
            )
        finally:
            os.close(source)
        try:
            was_cut = not _wait_until_ended(pid, start, limit)
        finally:
            # Also when the wait is interrupted: a group of its own hears no Ctrl-C.
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            _, wait_status, usage = os.wait4(pid, 0)
            wall_seconds = time.monotonic() - start
            cpu_seconds = usage.ru_utime + usage.ru_stime + _end_orphans()
        output.seek(0)
        digest = hashlib.file_digest(output, "sha256").hexdigest()
        said = _read_last_line(errors)
    code = os.waitstatus_to_exitcode(wait_status)
    return Measurement(
        cpu_seconds=cpu_seconds,
        wall_seconds=wall_seconds,
        max_rss_bytes=usage.ru_maxrss * 1024,
        status=code if code >= 0 else 128 - code,
        stdout_digest=digest,
        was_cut=was_cut,
        said=said,
    )


def _wait_until_ended(pid: int, start: float, limit: Limit | None) -> bool:
    """Whether the child ended within the limit, from `start` on (time.monotonic()); it stays unwaited for."""
    descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        if limit is None:
            return bool(poll.poll())
        processors = os.cpu_count() or 1
        left_cpu = limit.cpu_seconds
        while (left_wall := start + limit.wall_seconds - time.monotonic()) > 0 and left_cpu > 0:
            # Not even on all processors is what is left used up sooner, so what is fast is not disturbed by looking.
            seconds = min(max(left_cpu / processors, _LEAST_WAIT_SECONDS), left_wall)
            if poll.poll(seconds * 1000):
                return True
            left_cpu = limit.cpu_seconds - _read_descendants_seconds()
        return False
    finally:
        os.close(descriptor)


def _read_descendants_seconds() -> float:
    """CPU seconds so far of all descendants, and of those that they waited for."""
    stats = _read_stats()
    found = {os.getpid()}
    ticks = 0
    # A child may have a lower number than its parent, so until there are no more.
    while more := [stat for stat in stats if stat.parent_pid in found and stat.pid not in found]:
        found.update(stat.pid for stat in more)
        ticks += sum(stat.cpu_ticks for stat in more)
    return ticks / os.sysconf("SC_CLK_TCK")


def _end_orphans() -> float:
    """Kill and wait for every child that is left, and for the children they leave; the CPU seconds of all."""
    cpu_seconds = 0.0
    while True:
        for child in _find_children():
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)
        try:
            _, _, usage = os.wait4(-1, 0)
        except ChildProcessError:
            return cpu_seconds
        cpu_seconds += usage.ru_utime + usage.ru_stime


def _find_children() -> list[int]:
    """Process ids of this process's children, ended ones that were not waited for among them."""
    own = os.getpid()
    return [stat.pid for stat in _read_stats() if stat.parent_pid == own]


@dataclass(frozen=True)
class _Stat:
    pid: int
    parent_pid: int
    cpu_ticks: int  # of it, and of children that it waited for


def _read_stats() -> list[_Stat]:
    """Of all processes that there are; those that end meanwhile may be missing."""
    stats = []
    for entry in os.listdir("/proc"):
        if entry.isdecimal():
            with suppress(OSError):
                # The name, in parentheses, may hold anything; the state comes first behind it.
                words = Path("/proc", entry, "stat").read_text(errors="replace").rpartition(")")[2].split()
                stats.append(_Stat(int(entry), int(words[1]), sum(int(word) for word in words[11:15])))
    return stats


def _read_last_line(file: BinaryIO) -> str:
    """The end of the last line that is not blank, without what is not printable."""
    file.seek(0, os.SEEK_END)
    file.seek(max(file.tell() - _SAID_BYTES, 0))
    lines = [line.strip() for line in file.read().decode(errors="replace").splitlines()]
    last = next((line for line in reversed(lines) if line), "")
    return "".join(character if character.isprintable() else " " for character in last)
