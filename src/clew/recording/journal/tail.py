"""The journal of a recording that goes on, read as it grows.

Runs in the controller, in the live viewer's process. What frames mean is not known here.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Final

from clew.recording.journal.frames import UNIT_BYTES, Frame, iter_frames, read_frame_bytes

__all__ = ["JournalTail"]

MAX_PIECE_BYTES: Final = 8 << 20
"""So much is read at a time, if no frame is larger."""


class JournalTail:
    """Reads the journal that descriptor `fd`, which it owns, is of, from its beginning on, wherever the file is."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._offset = 0

    def iter_new(self) -> Iterator[Frame]:
        """The whole frames that came since the last time; a frame that is being written comes the next time.

        Where the recorder had to take the journal back (a full disk), what comes from then on is not seen.
        """
        while True:
            wanted_bytes = MAX_PIECE_BYTES
            head = os.pread(self._fd, UNIT_BYTES, self._offset)
            if len(head) < UNIT_BYTES:
                return
            wanted_bytes = max(wanted_bytes, read_frame_bytes(head))
            size_bytes = os.fstat(self._fd).st_size
            if self._offset + read_frame_bytes(head) > size_bytes:
                return
            content = memoryview(os.pread(self._fd, min(wanted_bytes, size_bytes - self._offset), self._offset))
            taken_bytes = 0
            for frame in iter_frames(content):
                taken_bytes = frame.offset + UNIT_BYTES + len(frame.payload)
                taken_bytes += -taken_bytes % UNIT_BYTES
                yield frame
            if not taken_bytes:
                return
            self._offset += taken_bytes

    def close(self) -> None:
        """Let go of the file."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1
