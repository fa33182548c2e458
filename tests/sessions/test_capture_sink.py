"""What the rings brought of captures belongs to its process, whatever comes first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from clew.address import Pid
from clew.protocol._generated import CAPTURE_RECORD, RECORD_BYTES, Mode, RecordKind
from clew.recording.sinks.sink import Identity, ProcessStart
from clew.sessions.capture_sink import CaptureSink

Bytes = np.ndarray[tuple[int, int], np.dtype[np.uint8]]


def capture(number: int) -> Bytes:
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


def _records(*captures: tuple[int, int, int]) -> Bytes:
    """Captures of one thread: the number, the time, and how many continuations follow."""
    rows = np.zeros(sum(1 + n for _, _, n in captures), CAPTURE_RECORD)
    at = 0
    for number, tsc, n in captures:
        rows[at]["kind"], rows[at]["number"] = RecordKind.CAPTURE, number
        rows[at]["tsc"], rows[at]["continuations"] = tsc, n
        rows[at + 1 : at + 1 + n]["kind"] = RecordKind.CONTINUATION
        at += 1 + n
    return rows.view(np.uint8).reshape(-1, RECORD_BYTES)


def _times(taken: list[list[Any]]) -> list[int]:
    return sorted(time for own in taken for one in own for time in one.heads.view(CAPTURE_RECORD)[:, 0]["tsc"].tolist())


class _Eager:
    """A lock that has somebody take whenever it has been let go of: the worst that another thread can do."""

    def __init__(self, sink: CaptureSink, numbers: list[int]) -> None:
        self._sink, self._numbers = sink, numbers
        self._is_taking = False
        self.taken: list[list[int]] = []

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        if not self._is_taking:
            self._is_taking = True
            self.taken.append(_times(self._sink.take_together(self._numbers)))
            self._is_taking = False


def test_nothing_later_is_taken_without_what_came_before_it() -> None:
    sink = CaptureSink()
    for number in (1, 2, 3):
        sink.watch(number)
    lock = _Eager(sink, [1, 2, 3])
    sink._lock = lock  # type: ignore[assignment]
    # Of different lengths, and of different numbers that are equally long: both are sorted apart.
    sink.keep(7, _records((1, 10, 0), (2, 11, 2), (1, 12, 0), (3, 13, 0), (2, 14, 1), (1, 15, 2)))
    sink.keep(7, _records((3, 16, 1), (1, 17, 0)))
    assert [times for times in lock.taken if times] == [[10, 11, 12, 13, 14, 15], [16, 17]]


def test_what_is_taken_is_chosen_while_nothing_is_kept() -> None:
    """Of a library that is loaded just now functions may be logged, and called, before it is known what to take."""
    sink = CaptureSink()
    sink.watch(1)

    def chosen() -> Iterator[int]:
        assert sink._lock.locked()
        yield 1

    sink.keep(7, capture(1))
    assert [len(own) for own in sink.take_together(chosen())] == [1]
