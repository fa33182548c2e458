"""Records as they lie in frames of a journal.

Runs in the controller. What records mean is not known here.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from clew.protocol._generated import RECORD_BYTES

if TYPE_CHECKING:
    from clew.recording.journal.frames import Frame

__all__ = ["iter_records"]

Array = npt.NDArray[Any]


def iter_records(frames: Sequence[Frame]) -> Iterator[Array]:
    """The records in each of `frames`, shape (n, RECORD_BYTES)."""
    for frame in frames:
        if len(frame.payload) % RECORD_BYTES == 0:
            yield np.frombuffer(frame.payload, np.uint8).reshape(-1, RECORD_BYTES)
