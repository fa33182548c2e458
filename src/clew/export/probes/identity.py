"""Who events are of: processes, their images, and the machine with its clock.

Pure. Names and paths are the program's: they may be any bytes.
"""

from __future__ import annotations

from clew.dataclass import dataclass, field

__all__ = ["Clock", "EventImage", "Host", "ProcessIdentity"]


@dataclass(frozen=True)
class Clock:
    """The clock CLOCK_MONOTONIC of a machine: `boot_id` as the kernel has it (random/boot_id), and what is to be added
    to its time for nanoseconds since 1970."""

    boot_id: str
    offset_ns: int


@dataclass(frozen=True)
class Host:
    """A machine."""

    name: str
    clock: Clock


@dataclass(frozen=True)
class EventImage:
    """A file that a process has loaded; `build_id` in hexadecimal, empty if it has none. `is_movable`: it can be loaded
    anywhere (ET_DYN), its addresses count from `base`."""

    base: int
    size_bytes: int
    path: bytes
    build_id: str = ""
    is_movable: bool = True


@dataclass(frozen=True)
class ProcessIdentity:
    """A process: its name is that of its first thread; `start_ns` is when its trace begins, since 1970."""

    pid: int
    name: bytes
    start_ns: int
    images: tuple[EventImage, ...] = field(default_factory=tuple)
