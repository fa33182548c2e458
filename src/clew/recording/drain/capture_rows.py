"""Takes captures out of the records of a thread: they are for whoever asked for them, and no part of the trace.

Runs in the controller. Pure. Nothing of a record is read but its kind.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from clew.protocol._generated import RECORD_BYTES, RecordKind
from clew.recording.raw.ended_threads import find_path_records

__all__ = ["split_captures"]

Array = npt.NDArray[Any]


def split_captures(data: bytes | memoryview) -> tuple[Array | None, bytes | memoryview]:
    """The captures among whole records, with their continuations, of shape (n, RECORD_BYTES), copied; and all others.

    None: there are none, and `data` is given back as it is.
    """
    records: Array = np.frombuffer(data, np.uint8).reshape(-1, RECORD_BYTES)
    kinds = records[:, :2].copy().view("<u2")[:, 0]
    is_one = kinds == RecordKind.CAPTURE
    if not is_one.any():
        return None, data
    if is_one.all():
        return records.copy(), b""
    # What is in the rows of a chunk may look like a record.
    kinds[find_path_records(records)] = RecordKind.PATH_CHUNK
    if not (kinds == RecordKind.CAPTURE).any():
        return None, data
    # What a continuation belongs to is the last record before it that is none.
    heads = np.where(kinds != RecordKind.CONTINUATION, np.arange(len(kinds)), 0)
    is_capture = (kinds == RecordKind.CAPTURE)[np.maximum.accumulate(heads)]
    return records[is_capture].copy(), records[~is_capture].tobytes()
