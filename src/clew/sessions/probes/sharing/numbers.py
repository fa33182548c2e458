"""Captures by other numbers: each session has its own for its probes, from the first one on.

Pure.
"""

from __future__ import annotations

import numpy as np

from clew.protocol._generated import CAPTURE_RECORD
from clew.sessions.capture_sink import Captured

__all__ = ["renumber"]


def renumber(captured: Captured, number: int, other: int) -> Captured:
    """The same captures of `number` as those of `other`."""
    heads = captured.heads.copy()
    # What numbers have beside that which was asked for stays.
    heads.view(CAPTURE_RECORD)[:, 0]["number"] += np.uint32((other - number) % (1 << 32))
    return Captured(captured.pid, heads, captured.payloads)
