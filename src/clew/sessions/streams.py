"""The standard streams of a program that a session starts, given as `subprocess` takes them.

Runs in the controller.
"""

from __future__ import annotations

import os
import subprocess
from typing import IO, Any, Final, Protocol, TypeAlias

from clew.errors import UsageError

__all__ = ["Stream", "Streams"]


class _HasFileno(Protocol):
    def fileno(self) -> int: ...


Stream: TypeAlias = "int | _HasFileno | None"
"""A descriptor, what has one, `subprocess.PIPE` or `DEVNULL`; of stderr `STDOUT`, too. None: as this process has it."""

_NAMES: Final = ("stdin", "stdout", "stderr")


class Streams:
    """`by_number` is what the program is to have as its descriptors 0, 1 and 2; `pipes` are our ends, by name."""

    def __init__(self, stdin: Stream, stdout: Stream, stderr: Stream) -> None:
        """Raises UsageError for what is no stream."""
        self.by_number: dict[int, int] = {}
        self.pipes: dict[str, IO[bytes]] = {}
        self._opened: list[int] = []
        try:
            for number, stream in enumerate((stdin, stdout, stderr)):
                self._add(number, stream)
        except BaseException:
            self.close()
            raise

    def _add(self, number: int, stream: Stream) -> None:
        if stream is None:
            return
        if stream == subprocess.PIPE:
            self.by_number[number] = self._open_pipe(number)
        elif stream == subprocess.DEVNULL:
            self._opened.append(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC))
            self.by_number[number] = self._opened[-1]
        elif stream == subprocess.STDOUT and number == 2:
            self.by_number[number] = self.by_number.get(1, 1)
        else:
            self.by_number[number] = _descriptor_of(stream, _NAMES[number])

    def _open_pipe(self, number: int) -> int:
        """A pipe: the program's end of it."""
        reading, writing = os.pipe2(os.O_CLOEXEC)
        ours, theirs = (writing, reading) if number == 0 else (reading, writing)
        self._opened.append(theirs)
        self.pipes[_NAMES[number]] = os.fdopen(ours, "wb" if number == 0 else "rb")
        return theirs

    def let_go(self) -> None:
        """Close what only the program needs, which has it now."""
        for descriptor in self._opened:
            os.close(descriptor)
        self._opened.clear()

    def close(self) -> None:
        """Close everything that was opened here."""
        self.let_go()
        for pipe in self.pipes.values():
            # What was written and nobody read is lost.
            try:
                pipe.close()
            except BrokenPipeError:
                continue


def _descriptor_of(stream: Any, name: str) -> int:
    descriptor = stream if isinstance(stream, int) else getattr(stream, "fileno", lambda: None)()
    if not isinstance(descriptor, int) or isinstance(descriptor, bool) or descriptor < 0:
        raise UsageError(f"{name}: neither a file nor a descriptor: {stream!r}")
    return descriptor
