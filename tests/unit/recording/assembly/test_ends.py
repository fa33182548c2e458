"""How a process ended of which the kernel did not tell it: by what it said itself."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from clew.protocol._generated import EventKind
from clew.recording.assembly.ends import settle_end
from clew.recording.assembly.records.records import parse_records
from tests.unit.recording.made_up_records import event
from tests.unit.recording.simulate import PID, make_runtime

CHILD = PID + 7


@pytest.mark.parametrize(
    ("told", "events", "code"),
    [
        ((None, None), [event(EventKind.EXIT_GROUP, PID, tsc=1500, a=0x1FF05)], 5),
        ((None, None), [event(EventKind.EXIT_GROUP, PID, tsc=n, a=n) for n in (1502, 1501)], 1501 & 0xFF),
        ((None, None), [], None),
        ((9, None), [event(EventKind.EXIT_GROUP, PID, tsc=1500, a=5)], 9),
        ((None, 11), [event(EventKind.EXIT_GROUP, PID, tsc=1500, a=5)], None),
        (
            (None, None),
            [event(EventKind.FORK, PID, tsc=1400, a=CHILD), event(EventKind.EXIT_GROUP, CHILD, tsc=1500, a=5)],
            None,
        ),
    ],
)
def test_what_it_gave_exit_group(told: tuple[int | None, int | None], events: list[bytes], code: int | None) -> None:
    process = make_runtime(3, max_threads=1, with_signals=False, max_steps=50).raw_process()
    process = dataclasses.replace(process, exit_code=told[0], signal=told[1])
    records = parse_records(np.frombuffer(b"".join(events), np.uint8).reshape(-1, 64), 0)
    settled = settle_end(process, records.events)
    assert (settled.exit_code, settled.signal) == (code, told[1])
