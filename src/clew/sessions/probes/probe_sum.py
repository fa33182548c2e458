"""What a program that runs its own code adds up at a place, as Python has it.

Runs in the controller, in whatever threads the caller has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from clew.sessions.aggregates import Aggregate
    from clew.sessions.probes.probe import ProbePlace

__all__ = ["ProbeSum", "SumOwner"]


class SumOwner(Protocol):
    """Who has a session's sums, by their indices."""

    def find_sum(self, index: int) -> Aggregate | None:
        """What is added up; None: there was no place for it yet."""

    def places(self, index: int) -> list[ProbePlace]:
        """Where it is."""

    def missing(self, index: int) -> str:
        """Why it is nowhere."""

    def remove(self, index: int) -> None:
        """Have it nowhere any more. Raises ClewError."""


class ProbeSum:
    """What `NativeSession.aggregate` gives; `where` as it was asked for."""

    def __init__(self, owner: SumOwner, index: int, where: str) -> None:
        self._owner, self._index = owner, index
        self.where = where

    @property
    def places(self) -> list[ProbePlace]:
        """Where it is now; nothing as long as nothing that is loaded has such a place."""
        return self._owner.places(self._index)

    @property
    def missing(self) -> str:
        """Why it is nowhere, for people; empty if it is somewhere."""
        return self._owner.missing(self._index)

    def read(self, *, clear: bool = False) -> pa.Table:
        """What came of all threads and processes, a row a key, as `Aggregate.read` has it; without any row or key as
        long as there was no place for it."""
        found = self._owner.find_sum(self._index)
        return pa.table({"count": pa.array([], pa.uint64())}) if found is None else found.read(clear=clear)

    @property
    def n_left_out(self) -> int:
        """Executions whose key found no room."""
        found = self._owner.find_sum(self._index)
        return 0 if found is None else found.n_left_out

    @property
    def edges(self) -> npt.NDArray[np.uint64]:
        """The least value of each bucket of a histogram, u64; what is not above 0 is in the first one."""
        from clew.sessions.aggregates import EDGES

        return EDGES.copy()

    def remove(self) -> None:
        """Add up nothing more. What there is can still be read. Raises ClewError."""
        self._owner.remove(self._index)

    def __repr__(self) -> str:
        return f"<sum of what comes to {self.where}>"
