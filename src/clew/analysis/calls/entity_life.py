"""The life of an entity: which calls of which threads opened it, shared it, used it first, and closed it.

Runs in the controller.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from clew.analysis.tables.arrays import find_rows, to_numpy
from clew.store.trace import Trace

__all__ = ["LifeEvent", "read_life"]

_USES: Final = ("read", "written", "subject", "changed", "locked", "unlocked", "waited")
"""Roles of which there may be any number: of each process' the first is told, and the others are counted."""


@dataclass(frozen=True)
class LifeEvent:
    """What a call did with an entity. `more`: how often its process did so again, where only the first is told."""

    process_id: int
    tid: int
    call_id: int
    time_ns: int
    name: str
    role: str
    more: int


def read_life(trace: Trace, entity_id: int, limit: int) -> tuple[list[LifeEvent], int]:
    """The first `limit` events of an entity's life, by time, and how many there are. Raises TraceDamagedError."""
    about: list[tuple[int, str]] = []
    for piece in trace.iter_pieces("references", ["call_id", "entity_id", "role"]):
        rows = np.flatnonzero(to_numpy(piece["entity_id"]) == entity_id)
        told = piece.take(rows)
        about += zip(to_numpy(told["call_id"]).tolist(), map(str, told["role"].to_pylist()), strict=True)
    call_ids = np.unique(np.array([call_id for call_id, _ in about], np.int64))
    made: dict[int, tuple[int, int, int, str]] = {}
    for piece in trace.iter_pieces("calls", ["call_id", "process_id", "tid", "time_ns", "name"]):
        rows = np.flatnonzero(find_rows(call_ids, to_numpy(piece["call_id"])) >= 0)
        for row in piece.take(rows).to_pylist():
            made[row["call_id"]] = row["process_id"], row["tid"], row["time_ns"], str(row["name"])
    by_time = sorted(
        ((*made[call_id], call_id, role) for call_id, role in dict.fromkeys(about) if call_id in made),
        key=lambda one: (one[2], one[4]),
    )
    events: list[LifeEvent] = []
    used: dict[tuple[int, str], int] = {}
    more: dict[tuple[int, str], int] = {}
    for process_id, tid, time_ns, name, call_id, role in by_time:
        key = process_id, role
        if role in _USES:
            more[key] = more.get(key, -1) + 1
            if key in used:
                continue
            used[key] = len(events)
        events.append(LifeEvent(process_id, tid, call_id, time_ns, name, role, 0))
    for key, at in used.items():
        events[at] = replace(events[at], more=more[key])
    return events[:limit], len(events)
