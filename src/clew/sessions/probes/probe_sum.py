"""What a program that runs its own code adds up at a place, as Python has it.

Runs in the controller, in whatever threads the caller has.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pyarrow as pa

from clew.sessions.probes.probe import AtPlaces, PlaceOwner

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from clew.sessions.aggregates import Aggregate

__all__ = ["ProbeSum", "SumOwner"]


class SumOwner(PlaceOwner, Protocol):
    """Who has a session's sums, by their indices."""

    def find_sum(self, index: int) -> Aggregate | None:
        """What is added up; None: there was no place for it yet."""


class ProbeSum(AtPlaces):
    """What `NativeSession.aggregate` gives; `where` as it was asked for."""

    def __init__(self, owner: SumOwner, index: int, where: str) -> None:
        super().__init__(owner, index, where)
        self._owner = owner

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

    def __repr__(self) -> str:
        return f"<sum of what comes to {self.where}>"
