"""Calls that a path tells of and that were not made, for a signal came first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from clew.process.processors.chosen import native_processor
from clew.protocol._generated import PATH_EVENT_RECORD, PathEventKind
from clew.sessions.events.told_events import without_unmade

WIDTH = native_processor().architecture.system_call_bytes
CALL = {"event_kind": PathEventKind.NOTE, "pc": 0x1000 + WIDTH, "surprise_bytes": 5, "decisions": 2}
HANDLER = {"event_kind": PathEventKind.RESUME, "pc": 0x1000, "value": 0x2000, "surprise_bytes": 5, "decisions": 2}


def made(*rows: dict[str, Any]) -> np.ndarray[Any, Any]:
    records = np.zeros(len(rows), PATH_EVENT_RECORD)
    for record, row in zip(records, rows, strict=True):
        for name, value in row.items():
            record[name] = value
    return records


def test_a_call_that_a_signal_came_in_front_of_is_left_out() -> None:
    records = made(CALL, HANDLER, CALL, CALL)
    assert without_unmade(records).tolist() == made(HANDLER, CALL, CALL).tolist()


@pytest.mark.parametrize("other", [{"pc": 0x1000 + WIDTH}, {"decisions": 3}, {"event_kind": PathEventKind.ELSEWHERE}])
def test_other_calls_stay(other: dict[str, Any]) -> None:
    """It was interrupted, or returned; what comes next is somewhere else, or something else."""
    records = made(CALL, HANDLER | other)
    assert without_unmade(records).tolist() == records.tolist()
    assert len(without_unmade(records[:0])) == 0
