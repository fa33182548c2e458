"""What tests ask of events in arrays, and what they ask for."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt

from clew.protocol.codec import FlowKind

Array = npt.NDArray[Any]
ALL = ("call", "ret", "block", "exec")
FOREVER = str(10**12)


def calls_of(events: Array, address: int) -> int:
    """How often a function was called, of call events."""
    return int(((events["kind"] == FlowKind.CALL) & (events["target"] == address)).sum())
