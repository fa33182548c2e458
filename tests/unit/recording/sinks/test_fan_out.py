"""Several sinks are given the same; the first one's word counts, and no other's trouble."""

from __future__ import annotations

from typing import Any

import pytest

from clew.recording.sinks.fan_out import fan_out
from clew.recording.sinks.sink import ProcessEnd, ProcessSink, Sink, ThreadRow

ROW = ThreadRow(7, 1, "it", 1, 2, 0, 0, has_ended=True)
END = ProcessEnd(1, 0, None, is_lost=False, warnings=[])
CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("begin", (None,)),
    ("expect_paths", ()),
    ("begin_thread", (0, 1, 7)),
    ("take_records", (0, 1, memoryview(b"a"), memoryview(b"b"))),
    ("take_captures", (b"rows",)),
    ("take_ended", (2, b"packed")),
    ("tell_position", (0, bytes)),
    ("take_open_tail", (0, (b"before", b"tail", b"after"), b"accesses")),
    ("end_round", ()),
    ("take_accesses", (0, b"accesses")),
    ("take_path_tail", (0, 1, b"tail")),
    ("take_counters", (0, 1, 5, b"values")),
    ("tell_thread", (0, 1, ROW)),
    ("end_thread", (0,)),
    ("take_status", (b"page",)),
    ("end", (END,)),
]


ASKED = {"is_slow", "has_room", "wants_tails"}


class Noting(ProcessSink):
    """Notes what it is given."""

    def __init__(self, log: list[tuple[str, str, tuple[Any, ...]]], name: str, failing: str = "") -> None:
        for call, _ in CALLS:

            def note(*given: Any, call: str = call) -> bool:
                if call == failing:
                    raise ValueError("broken")
                log.append((name, call, given))
                return name != "full"

            setattr(self, call, note)


class Opens(Sink):
    def __init__(self, opened: ProcessSink) -> None:
        self.opened = opened

    def open_process(self, number: int) -> ProcessSink:
        return self.opened


def give(sink: ProcessSink) -> None:
    for call, given in CALLS:
        getattr(sink, call)(*given)


def test_all_are_given_all_the_first_one_first() -> None:
    log: list[tuple[str, str, tuple[Any, ...]]] = []
    warnings: list[str] = []
    give(fan_out(Noting(log, "first"), [Opens(Noting(log, "second")), Opens(ProcessSink())], 0, warnings.append))
    assert log == [(name, call, given) for call, given in CALLS for name in ("first", "second")]
    assert warnings == []
    assert {call for call, _ in CALLS} == {name for name in vars(ProcessSink) if name[0] != "_"} - ASKED


@pytest.mark.parametrize("failing", [call for call, _ in CALLS])
def test_one_that_fails_is_given_no_more(failing: str) -> None:
    log: list[tuple[str, str, tuple[Any, ...]]] = []
    warnings: list[str] = []
    others = [Opens(Noting(log, "second", failing)), Opens(Noting(log, "third"))]
    give(fan_out(Noting(log, "first"), others, 0, warnings.append))
    calls = [call for call, _ in CALLS]
    for name, expected in (("first", calls), ("second", calls[: calls.index(failing)]), ("third", calls)):
        assert [call for who, call, _ in log if who == name] == expected
    assert warnings == ["Noting is told no more of a process: ValueError: broken"]


def test_what_the_first_one_has_no_room_for_nobody_is_given_yet() -> None:
    log: list[tuple[str, str, tuple[Any, ...]]] = []
    full = Noting(log, "full")
    assert not fan_out(full, [Opens(Noting(log, "second"))], 0, log.append).take_ended(1, b"x")  # type: ignore[arg-type]
    assert [name for name, *_ in log] == ["full"]


def test_whoever_has_no_room_keeps_all_from_being_given_more() -> None:
    class Full(ProcessSink):
        has_room = False

    assert fan_out(ProcessSink(), [Opens(ProcessSink())], 0, print).has_room
    assert not fan_out(ProcessSink(), [Opens(ProcessSink()), Opens(Full())], 0, print).has_room
    assert not fan_out(Full(), [Opens(ProcessSink())], 0, print).has_room


def test_with_the_first_one_alone_nothing_is_between() -> None:
    first = ProcessSink()
    assert fan_out(first, [], 0, print) is first
