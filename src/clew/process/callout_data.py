"""What native callouts have of data in one region of the shared memory.

Runs in the controller. What it means is its callouts' business. It can still be read when the process has ended.
"""

from __future__ import annotations

import mmap

__all__ = ["CalloutData"]


class CalloutData:
    """From `start` of the memory `memory` on."""

    def __init__(self, memory: mmap.mmap, start: int) -> None:
        self._memory, self._start = memory, start
        self._left: bytes | None = None
        self._pieces: dict[int, int] = {}
        """By where they begin: bytes of what was put there."""

    def has(self, offset: int) -> bool:
        """Whether something was put there."""
        return offset in self._pieces

    def put(self, offset: int, data: bytes) -> None:
        """Put something there, which stays until the process ends."""
        self._pieces[offset] = len(data)
        self.write(offset, data)

    def write(self, offset: int, data: bytes) -> None:
        """Change it; nothing, once the process has ended."""
        if self._left is None:
            self._memory[self._start + offset : self._start + offset + len(data)] = data

    def read(self, offset: int, size_bytes: int) -> bytes:
        """What is there now, or was when the process ended."""
        if self._left is not None:
            return self._left[offset : offset + size_bytes]
        return self._memory[self._start + offset : self._start + offset + size_bytes]

    def inherit(self, parent: CalloutData) -> None:
        """Have what the parent of a process has that is about to be born."""
        for offset, size_bytes in parent._pieces.items():
            self.put(offset, parent.read(offset, size_bytes))

    def keep(self) -> None:
        """Keep what is there: the memory is about to be given back."""
        if self._left is None and self._pieces:
            end = max(offset + size_bytes for offset, size_bytes in self._pieces.items())
            self._left = self.read(0, end)
