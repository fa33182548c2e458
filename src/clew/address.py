"""Kinds of addresses and ids, each its own type.

Runs in the controller. An address in the target can't be dereferenced here; its type says what it is an address of.
"""

from __future__ import annotations

from typing import Final, NewType

__all__ = [
    "MAX_PID",
    "AppPc",
    "BlockId",
    "CachePc",
    "CounterIndex",
    "EdgeId",
    "FileOffset",
    "FragmentId",
    "ImageId",
    "ImageOffset",
    "Pid",
    "RemoteAddress",
    "Tid",
]

AppPc = NewType("AppPc", int)
"""Address of an instruction of the application, as the application itself sees it."""

CachePc = NewType("CachePc", int)
"""Address inside the code cache; never shown as the application's."""

RemoteAddress = NewType("RemoteAddress", int)
"""Address of anything else in the target's memory."""

ImageOffset = NewType("ImageOffset", int)
"""Distance in bytes from an image's base (its lowest loaded address), which is independent of where it was loaded."""

FileOffset = NewType("FileOffset", int)
"""Distance in bytes from the start of a file."""

Pid = NewType("Pid", int)
"""Process id, as the controller's pid namespace has it."""

Tid = NewType("Tid", int)
"""Thread id."""

MAX_PID: Final = 1 << 22
"""No process or thread has a higher number (PID_MAX_LIMIT, include/linux/threads.h)."""

ImageId = NewType("ImageId", int)
"""Row of the table `images`."""

BlockId = NewType("BlockId", int)
"""Row of the table `blocks`."""

EdgeId = NewType("EdgeId", int)
"""Row of the table `edges`."""

FragmentId = NewType("FragmentId", int)
"""Number of a fragment, in the order of translation."""

CounterIndex = NewType("CounterIndex", int)
"""Index of a u64 in a thread's counters."""
