"""What a process holds: descriptors, a directory, handles of libraries, memory; and what of it others share with it.

Runs in the controller.
"""

from __future__ import annotations

import posixpath
from bisect import bisect_left, bisect_right
from collections.abc import Iterator

from clew.api.entities.slots import Slots
from clew.dataclass import dataclass, field

__all__ = ["Holder", "Memory", "Place"]


@dataclass
class Place:
    """The directory where a process is; None: nobody knows."""

    directory: str | None = None

    def resolve(self, path: str, base: str | None) -> str:
        """A path as it is from the root, without what leads nowhere (`.`, `x/..`), or as it is if nobody knows.

        `base` is the directory that the call names for it; None: this one. Links are not looked at.
        """
        start = self.directory if base is None else base
        if not path.startswith("/") and start is not None:
            path = posixpath.join(start, path)
        return posixpath.normpath(path) if path.startswith("/") else path


class Memory:
    """What a process has mapped: entities by ranges of addresses, which lie apart."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._held: list[tuple[int, int]] = []

    def map(self, start: int, size: int, entity_id: int) -> None:
        """A range is an entity from now on."""
        self.unmap(start, size)
        at = bisect_right(self._starts, start)
        self._starts.insert(at, start)
        self._held.insert(at, (start + size, entity_id))

    def unmap(self, start: int, size: int) -> None:
        """Nothing is mapped in a range any more; what is on both sides of it stays."""
        end = start + size
        rows = self._overlapping(start, end)
        left = [
            (first, last, entity_id)
            for row in rows
            for begin, (stop, entity_id) in [(self._starts[row], self._held[row])]
            for first, last in ((begin, min(stop, start)), (max(begin, end), stop))
            if first < last
        ]
        self._starts[rows.start : rows.stop] = [first for first, _, _ in left]
        self._held[rows.start : rows.stop] = [(last, entity_id) for _, last, entity_id in left]

    def find(self, start: int, size: int = 1) -> list[int]:
        """The entities that a range has to do with, each once."""
        return list(dict.fromkeys(self._held[row][1] for row in self._overlapping(start, start + size)))

    def _overlapping(self, start: int, end: int) -> range:
        first = max(bisect_right(self._starts, start) - 1, 0)
        if first < len(self._starts) and self._held[first][0] <= start:
            first += 1
        return range(first, max(bisect_left(self._starts, end), first))

    def copy(self) -> Memory:
        """The memory of a process that was made as a copy."""
        made = Memory()
        made._starts, made._held = list(self._starts), list(self._held)
        return made

    def __iter__(self) -> Iterator[tuple[int, int, int]]:
        """Ranges and entities: start, end, entity."""
        return ((start, end, entity_id) for start, (end, entity_id) in zip(self._starts, self._held, strict=True))


@dataclass
class Holder:
    """A process, entity `entity_id`, and what it holds. `handles`: pointers, by what they are of, and their values."""

    pid: int
    entity_id: int
    files: Slots = field(default_factory=Slots)
    place: Place = field(default_factory=Place)
    handles: Slots = field(default_factory=Slots)
    memory: Memory = field(default_factory=Memory)

    def copy(
        self, pid: int, entity_id: int, time_ns: int, *, shares_files: bool, shares_place: bool, shares_memory: bool
    ) -> Holder:
        """What a new process starts with, that this one made at a time."""
        return Holder(
            pid,
            entity_id,
            self.files if shares_files else self.files.copy(time_ns),
            self.place if shares_place else Place(self.place.directory),
            self.handles if shares_memory else self.handles.copy(time_ns),
            self.memory if shares_memory else self.memory.copy(),
        )

    def execute(self, time_ns: int) -> None:
        """The process executes another program."""
        self.files = self.files.copy(time_ns, over_exec=True)
        self.place = Place(self.place.directory)
        self.handles, self.memory = Slots(), Memory()
