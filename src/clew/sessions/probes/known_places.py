"""The places that texts mean in a process, found once as long as nothing else is loaded.

Runs in the controller.
"""

from __future__ import annotations

from clew.address import Pid
from clew.probing.locations.in_process import ProcessPlaces, ProcessResolution
from clew.probing.locations.syntax import Location
from clew.process.linux import PROT_EXEC
from clew.process.maps import Mapping, read_maps

__all__ = ["KnownPlaces"]


class KnownPlaces:
    """Of the process that `task` has the memory of."""

    def __init__(self, places: ProcessPlaces, task: Pid) -> None:
        self._places, self._task = places, task
        self._loaded: list[Mapping] = []
        """Files' code, as it was mapped when that was looked at last."""
        self._called: dict[str, list[int]] = {}
        self._found: dict[tuple[Location, bool], ProcessResolution] = {}

    def renew(self) -> list[Mapping]:
        """Take note of what is loaded now; all that is mapped."""
        mappings = read_maps(self._task)
        loaded = [one for one in mappings if one.protection & PROT_EXEC and one.path]
        if loaded != self._loaded:
            self._loaded = loaded
            self._found.clear()
            self._called.clear()
        self._places.renew(mappings)
        return mappings

    def find_functions_called(self, name: str) -> list[int]:
        """Where functions of that name begin, in all that is loaded."""
        if name not in self._called:
            self._called[name] = self._places.find_functions_called(name)
        return self._called[name]

    def resolve(self, where: Location, *, with_inlined: bool = False) -> ProcessResolution:
        """The places that are meant. What is in doubt is looked for each time: a function may be chosen later
        that is meant."""
        found = self._found.get((where, with_inlined))
        if found is None:
            found = self._places.resolve(where, with_inlined=with_inlined)
            if found.places and not found.warnings:
                self._found[where, with_inlined] = found
        return found
