"""By which `Filter` of clew's own descriptions a call is chosen: out of what a trace has of it, its name and library.

Runs in the controller. Traces do not have it. Descriptions are read when the first call is asked for, and once.
"""

from __future__ import annotations

from functools import cache, cached_property
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from clew.api.descriptions import Descriptions
    from clew.api.prototypes import Prototypes

__all__ = ["UNKNOWN", "CallFilters", "built_in_filters"]

UNKNOWN: Final = "Other"
"""That of calls which nobody describes."""

_RINGS: Final = "io_uring"
"""What operations of io_uring have for a library."""


_VDSO: Final = "[vdso]"


class CallFilters:
    """Finds it among `descriptions`, and for functions that these do not have among `prototypes`."""

    def __init__(self, descriptions: Descriptions, prototypes: Prototypes) -> None:
        self._descriptions, self._prototypes = descriptions, prototypes

    @cached_property
    def _system_calls(self) -> dict[str, str]:
        return {one.name: one.filter for one in self._descriptions.system_calls.values()}

    @cached_property
    def _operations(self) -> dict[str, str]:
        return {one.name: one.filter for one in self._descriptions.ring_operations.values()}

    def of_system_call(self, name: str, library: str | None = None) -> str:
        """Of a system call, or of an operation of io_uring, by what the table `calls` has for a library."""
        return (self._operations if library == _RINGS else self._system_calls).get(name, UNKNOWN)

    def of_function(self, name: str, library: str | None, *, is_alone: bool = False) -> str:
        """Of a function of a library, by its path. `is_alone`: it is all that the process has, and so has the functions
        of other libraries inside."""
        file = "" if library is None else library.rpartition("/")[2]
        found = self._descriptions.find_function(file, name)
        if found is None and is_alone:
            found = self._descriptions.find_anywhere(name)
        if found is not None:
            return found.filter
        if file == _VDSO:
            # It stands for a system call, and is called as that one.
            return self.of_system_call(name)
        return self._prototypes.filter_of(file, name) or UNKNOWN


@cache
def built_in_filters() -> CallFilters:
    """Those of clew's own descriptions."""
    # They take a tenth of a second, which most who look at a trace never need.
    from clew.api.prototypes import Prototypes
    from clew.api.reading import load_built_in

    return CallFilters(load_built_in(), Prototypes())
