"""What the rings brought of captures belongs to its process, whatever comes first."""

from __future__ import annotations

import numpy as np

from clew.address import Pid
from clew.protocol._generated import CAPTURE_RECORD, RECORD_BYTES, Mode, RecordKind
from clew.recording.sinks.sink import Identity, ProcessStart
from clew.sessions.capture_sink import CaptureSink


def capture(number: int) -> np.ndarray[tuple[int, int], np.dtype[np.uint8]]:
    """A capture without fields, as it comes out of a ring."""
    head = np.zeros(1, CAPTURE_RECORD)
    head["kind"], head["number"] = RecordKind.CAPTURE, number
    return head.view(np.uint8).reshape(1, RECORD_BYTES)


def test_what_comes_before_a_process_begins_is_its_own() -> None:
    sink = CaptureSink()
    sink.watch(3)
    process = sink.open_process(1)
    process.take_captures(capture(3))
    assert sink.take(3) == []
    who = Identity(Pid(77), Pid(1), "/bin/true", ["true"], "true", has_own_namespace=False)
    process.begin(ProcessStart(who, "x86_64", Mode.COUNTS, 0, [], None, None))
    process.take_captures(capture(3))
    process.take_captures(capture(4))
    assert [(one.pid, len(one.heads)) for one in sink.take(3)] == [(77, 1), (77, 1)]
    assert sink.take(4) == [], "nobody asked for it"


def test_what_does_not_hold_together_is_counted_and_dropped() -> None:
    sink = CaptureSink()
    sink.watch(3)
    broken = capture(3)
    broken.view(CAPTURE_RECORD)["continuations"] = 5
    sink.keep(7, broken)
    assert (sink.take(3), sink.n_damaged) == ([], 1)


def test_what_comes_after_nothing_was_taken_is_taken_once() -> None:
    sink = CaptureSink()
    sink.watch(3)
    before = sink.take(3)
    sink.keep(7, capture(3))
    assert before == []
    assert len(sink.take(3)) == 1
