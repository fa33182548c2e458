"""Where a thread is that waits, as forms of captures ask about it: its registers, its memory, and what else is known.

Runs in the controller, in any thread.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from clew.address import Pid
from clew.capture.interpreter import Value
from clew.process.identity import read_stat
from clew.process.linux import read_as_program
from clew.protocol._constants import CaptureContext

if TYPE_CHECKING:
    from clew.recording.following.stopped_thread import StoppedThread

__all__ = ["ThreadPlace", "read_comm"]


class ThreadPlace:
    """Where `thread` of process `pid` waits, whose memory the files of `memory_pid` in /proc show.

    Of a call that has returned, `kept` is what its capture kept when it began, at `began_ns` of CLOCK_MONOTONIC.
    """

    def __init__(
        self,
        pid: Pid,
        memory_pid: Pid,
        thread: StoppedThread,
        kept: Sequence[Value] = (),
        began_ns: int | None = None,
    ) -> None:
        self.pid = int(pid)
        self.tid = int(thread.tid)
        self._memory_pid, self._thread, self._kept, self._began_ns = memory_pid, thread, kept, began_ns

    def register(self, number: int) -> int:
        """A general register by the architecture's number."""
        return self._thread.registers[number]

    def vector(self, number: int) -> int | None:
        """The low 64 bits of a vector register."""
        vectors = self._thread.vectors
        return vectors[number] if number < len(vectors) else None

    def context(self, what: CaptureContext) -> Value:
        """What is known of the thread."""
        match what:
            case CaptureContext.TID:
                return self.tid
            case CaptureContext.PID:
                return self.pid
            case CaptureContext.COMM:
                return read_comm(self._memory_pid, self.tid)
            case CaptureContext.TIME:
                return time.monotonic_ns()
            case CaptureContext.THREAD_POINTER:
                return self._thread.thread_pointer
            case CaptureContext.BEHIND:
                return self._thread.behind
            case CaptureContext.CPU:
                return _read_processor(self._memory_pid, self.tid)
            case CaptureContext.DURATION:
                return None if self._began_ns is None else time.monotonic_ns() - self._began_ns
        return None

    def kept(self, field: int) -> Value:
        """A field that was kept when the call began."""
        return self._kept[field] if field < len(self._kept) else None

    def descriptor_path(self, descriptor: int) -> bytes | None:
        """Where a descriptor of the process leads to."""
        try:
            return os.readlink(os.fsencode(f"/proc/{self._memory_pid}/fd/{descriptor}"))
        except OSError:
            return None

    def read(self, address: int, size_bytes: int) -> bytes:
        """Memory, as much as the program can read."""
        return read_as_program(self._memory_pid, address, size_bytes)


def read_comm(pid: Pid, tid: int) -> bytes | None:
    """A thread's name."""
    try:
        with open(f"/proc/{pid}/task/{tid}/comm", "rb") as file:
            return file.read(64).rstrip(b"\n")
    except OSError:
        return None


def _read_processor(pid: Pid, tid: int) -> int | None:
    """The processor that a thread ran on last (proc_pid_stat(5), field 39)."""
    fields = read_stat(f"{pid}/task/{tid}")
    return int(fields[36]) if len(fields) > 36 else None
