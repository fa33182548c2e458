"""What tests ask of events in arrays, and what they ask for."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy.typing as npt

from clew.protocol.codec import FlowKind

Array = npt.NDArray[Any]
ALL = ("call", "ret", "block", "exec")
FOREVER = str(10**12)


def calls_of(events: Array, address: int) -> int:
    """How often a function was called, of call events."""
    return int(((events["kind"] == FlowKind.CALL) & (events["target"] == address)).sum())


def address_of(function: Any) -> int:
    """Where a function of a library is."""
    return ctypes.cast(function, ctypes.c_void_p).value or 0
