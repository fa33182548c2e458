"""The things that calls are about, each once: what they are called, whose they are, when they were first and last met.

Runs in the controller.
"""

from __future__ import annotations

from typing import Any

from clew.dataclass import dataclass, field

__all__ = ["Entity", "Things"]


@dataclass
class Entity:
    """A file, a socket, a process, or whatever else. `process_id`, `pid` and `tid`: whose it is, if it is one process'.

    `details` are those of the table `entities`: JSON values by their names.
    """

    entity_id: int
    kind: str
    name: str
    first_ns: int
    last_ns: int
    pid: int | None = None
    tid: int | None = None
    parent: int | None = None
    details: dict[str, Any] = field(default_factory=dict)
    process_id: int | None = None


class Things:
    """All entities, by their numbers, and which of them have which path now."""

    def __init__(self) -> None:
        self.entities: list[Entity] = []
        self._by_path: dict[str, int] = {}

    def make(
        self,
        kind: str,
        name: str,
        time_ns: int,
        *,
        pid: int | None = None,
        tid: int | None = None,
        parent: int | None = None,
    ) -> Entity:
        """A new one."""
        entity = Entity(len(self.entities), kind, name, time_ns, time_ns, pid, tid, parent)
        self.entities.append(entity)
        return entity

    def __getitem__(self, entity_id: int) -> Entity:
        return self.entities[entity_id]

    def meet(self, entity_id: int, time_ns: int) -> None:
        """It was there at a time."""
        entity = self.entities[entity_id]
        entity.first_ns = min(entity.first_ns, time_ns)
        entity.last_ns = max(entity.last_ns, time_ns)

    def at_path(self, path: str, time_ns: int, kind: str = "file") -> Entity:
        """The one that has the path now; it is made if there is none."""
        known = self._by_path.get(path)
        if known is not None:
            return self.entities[known]
        entity = self.make(kind, path, time_ns)
        entity.details["path"] = path
        self._by_path[path] = entity.entity_id
        return entity

    def find_path(self, path: str) -> Entity | None:
        """The one that has the path now."""
        known = self._by_path.get(path)
        return None if known is None else self.entities[known]

    def give_path(self, path: str, entity_id: int) -> None:
        """A path leads to an entity from now on, whatever it led to before."""
        self._by_path[path] = entity_id

    def remove_path(self, path: str) -> None:
        """A path leads nowhere: what is found there later is something else."""
        self._by_path.pop(path, None)

    def move_path(self, old: str, new: str) -> None:
        """What had a path has another one now, and all that lies below it."""
        moved = self._by_path.pop(old, None)
        if moved is not None:
            self._by_path[new] = moved
            self._rename(moved, new)
        else:
            self._by_path.pop(new, None)
        below = old.rstrip("/") + "/"
        for path in [path for path in self._by_path if path.startswith(below)]:
            inner = self._by_path.pop(path)
            self._by_path[new.rstrip("/") + path[len(below) - 1 :]] = inner
            self._rename(inner, new.rstrip("/") + path[len(below) - 1 :])

    def swap_paths(self, one: str, other: str) -> None:
        """Each has the other's path now; what lies below stays as it was told."""
        found = self._by_path.pop(one, None), self._by_path.pop(other, None)
        for path, entity_id in zip((other, one), found, strict=True):
            if entity_id is not None:
                self._by_path[path] = entity_id
                self._rename(entity_id, path)

    def _rename(self, entity_id: int, path: str) -> None:
        details = self.entities[entity_id].details
        details.setdefault("names", [details.get("path", self.entities[entity_id].name)]).append(path)
        details["path"] = path
