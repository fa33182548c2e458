"""What threads of a probed process stop for, so that it can be seen to before they go on.

Runs in the controller. They stop where something is loaded, or a program executed; and where they are about to forbid
themselves time stamps, which all events have.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from typing import Final

from clew.capture.form import Form
from clew.errors import UsageError
from clew.probing.planning import Planning
from clew.process.capture_table import CaptureRow
from clew.protocol._constants import CaptureAction
from clew.sessions.probes.executions import EXECUTING_FUNCTIONS
from clew.sessions.probes.known_places import KnownPlaces
from clew.sessions.probes.probe_sites import ProbeSites

__all__ = ["CLOCKLESS_NUMBER", "EXECUTION_NUMBER", "LOADING_NUMBER", "Hearing"]

LOADING_NUMBER: Final = 1 << 28
EXECUTION_NUMBER: Final = LOADING_NUMBER + 1
CLOCKLESS_NUMBER: Final = LOADING_NUMBER + 2
"""What captures are known by at which threads stop that load something, are about to execute a program, or to forbid
themselves time stamps."""
_LOADED_FUNCTION: Final = "_dl_debug_state"
"""The dynamic linker tells debuggers by it that it has loaded something, or is about to unload it: in front of the
constructors of what is new (glibc's elf/dl-debug.c; musl has the same)."""
_N_LOADINGS: Final = 2
"""So often a program's libraries have the dynamic linker call that, before and behind (enum r_state of link.h)."""
_ALWAYS: Final = Form((), (), None, b"").pack()


class Hearing:
    """Of one process. `clockless`: functions that may forbid a thread time stamps, and when they do. `has_own_numbers`:
    what it calls its threads says nothing here, so programs that they execute are not followed."""

    def __init__(
        self, places: KnownPlaces, sites: ProbeSites, clockless: Mapping[str, bytes], *, has_own_numbers: bool
    ) -> None:
        self._places, self._sites = places, sites
        self._clockless, self._has_own_numbers = clockless, has_own_numbers
        self._known: set[tuple[int, int]] = set()
        """Numbers, and the addresses where threads stop."""

    def count_loadings(self) -> int:
        """How often a program that has not run yet will load its libraries."""
        return _N_LOADINGS if self._places.find_functions_called(_LOADED_FUNCTION) else 0

    def plan(self, planning: Planning) -> None:
        """Have threads stop at all such functions in what is loaded by now."""
        self._stop_at(planning, _LOADED_FUNCTION, LOADING_NUMBER)
        for name in () if self._has_own_numbers else EXECUTING_FUNCTIONS:
            self._stop_at(planning, name, EXECUTION_NUMBER)
        for name, form in self._clockless.items():
            self._stop_at(planning, name, CLOCKLESS_NUMBER, form)

    def _stop_at(self, planning: Planning, name: str, number: int, form: bytes = _ALWAYS) -> None:
        for address in self._places.find_functions_called(name):
            if (number, address) in self._known:
                continue
            self._known.add((number, address))
            with contextlib.suppress(UsageError):
                site = self._sites.site_at(address)
                site.rows = (CaptureRow(0, number, CaptureAction.STOP, form),)
                planning.add(site)

    def forget(self, is_there: Callable[[int], bool]) -> None:
        """What was unloaded has taken its places along."""
        self._known = {(number, address) for number, address in self._known if is_there(address)}
