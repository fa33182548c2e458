"""The code as it is at places of a path, which changes it on the way.

Pure. Going along a path costs as much as it has changes, however often one asks; coming to a place from elsewhere
costs as much as there are changes before it, in arrays.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from clew.analysis.order.path_changes import Changes
from clew.analysis.order.path_code import ProcessCode
from clew.protocol._generated import PathEventKind
from clew.protocol.codec import Action

__all__ = ["ChangedCode"]

Array = npt.NDArray[Any]


class ChangedCode:
    """The blocks of `code`, of dtype BLOCK, as events of a path change them; `states` are all that do, of dtype
    `clew.store.path_checkpoints.STATE`."""

    def __init__(self, code: ProcessCode, states: Array) -> None:
        self._code, self._states = code, states
        # Behind a loss the path tells all anew: from one to the next is a section.
        self._losses = np.flatnonzero(states["kind"] == PathEventKind.LOST)
        self._enter(0)

    def _enter(self, section: int) -> None:
        self._section = section
        first = int(self._losses[section - 1]) + 1 if section else 0
        end = int(self._losses[section]) if section < len(self._losses) else len(self._states)
        rows = self._states[first:end]
        self._first = first
        self._changes: Changes = self._code.find_changes(rows["kind"], rows["value"], self._code.code.blocks)
        self._begin_anew()

    def _begin_anew(self) -> None:
        self._blocks, self._n_made = self._code.code.blocks.copy(), 0

    def at(self, n_states: int) -> Array:
        """The blocks behind so many of the states; a copy."""
        section = int(np.searchsorted(self._losses, n_states))
        if section != self._section:
            self._enter(section)
        changes = self._changes
        end = int(np.searchsorted(changes.row, n_states - self._first))
        if end < self._n_made:
            self._begin_anew()
        made = slice(self._n_made, end)
        action, subject, value = changes.action[made], changes.subject[made], changes.value[made]
        # Of several changes of one thing the last one holds.
        for name, kind in (("is_taken", Action.EXPECT), ("target", Action.CODE)):
            self._blocks[name][subject[action == kind]] = value[action == kind]
        self._n_made = end
        return self._blocks.copy()
