"""Memory of a process by its file in /proc, where nothing may be mapped.

Runs in the controller.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable

__all__ = ["holds", "is_there", "write_all"]


def holds(memory: int, content: Iterable[tuple[int, bytes]]) -> bool:
    """Whether memory that is open holds those bytes at those addresses. Nothing is where nothing is mapped."""
    try:
        return all(os.pread(memory, len(data), address) == data for address, data in content)
    except OSError:
        return False


def is_there(memory: int, address: int) -> bool:
    """Whether anything is mapped at an address: in a child that is older nothing may be."""
    try:
        return bool(os.pread(memory, 1, address))
    except OSError:
        return False


def write_all(memory: int, content: Iterable[tuple[int, bytes]]) -> None:
    """Write those bytes to those addresses, as far as something is mapped there."""
    for address, data in content:
        with contextlib.suppress(OSError):
            os.pwrite(memory, data, address)
