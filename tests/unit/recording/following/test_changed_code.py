"""When a process is told that its code changed, and how often it is looked at."""

from __future__ import annotations

import time
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from clew.address import Pid
from clew.errors import AttachError
from clew.recording.following import changed_code
from clew.recording.following.changed_code import ChangedCode


class _Process:
    memory_pid = Pid(1)

    def __init__(self, shared: SimpleNamespace) -> None:
        self.shared = shared
        self.written_pages = {0x2000: hash(b"a"), 0x3000: hash(b"b")}


class Recording:
    """One process whose private pages are `pages`; looking takes `cost` seconds of a clock that is made up."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pages: dict[int, bytes] = {}
        self.is_gone = False
        self.now, self.cost, self.cost_of_telling = 100.0, 0.0, 0.0
        self.told: list[list[int]] = []
        self.n_looks = self.n_brought_in = 0
        self.failure: AttachError | None = None
        shared = SimpleNamespace(tell_changed=lambda pages: self.told.append(sorted(pages)))
        self.process: Any = _Process(shared)
        self.code = ChangedCode(self._bring_in)
        monkeypatch.setattr(changed_code, "PrivatePages", lambda pid: self)
        monkeypatch.setattr(time, "monotonic", lambda: self.now)

    def read_code(self) -> list[Any]:
        self.n_looks += 1
        self.now += self.cost
        if self.is_gone:
            raise PermissionError
        return [SimpleNamespace(start=0, end=0x10000), SimpleNamespace(start=0x10000, end=0x20000)]

    def iter_in(self, start: int, end: int) -> Iterator[int]:
        return (page for page in self.pages if start <= page < end)

    def read(self, page: int) -> bytes:
        return self.pages[page]

    def close(self) -> None:
        pass

    def _bring_in(self, process: Any) -> None:
        self.n_brought_in += 1
        self.now += self.cost_of_telling
        if self.failure is not None:
            raise self.failure

    def look(self) -> list[list[int]]:
        """What was told by now; some time later than before."""
        self.now += 60.0
        self.told.clear()
        self.code.look([self.process])
        return self.told


@pytest.fixture
def recording(monkeypatch: pytest.MonkeyPatch) -> Recording:
    return Recording(monkeypatch)


def test_what_came_changed_or_went_is_told_once(recording: Recording) -> None:
    assert recording.look() == []
    recording.pages = {0x1000: b"a", 0x11000: b"b"}
    assert recording.look() == [[0x1000, 0x11000]]
    assert recording.look() == []
    recording.pages[0x1000] = b"c"
    assert recording.look() == [[0x1000]]
    del recording.pages[0x11000]
    assert recording.look() == [[0x11000]]
    assert recording.look() == []
    assert recording.n_brought_in == 3


def test_what_was_written_when_it_came_is_as_it_was(recording: Recording) -> None:
    recording.pages = {0x2000: b"a", 0x3000: b"c"}
    assert recording.look() == [[0x3000]]


def test_who_may_not_be_looked_at_is_left_alone(recording: Recording) -> None:
    recording.is_gone = True
    recording.pages = {0x1000: b"a"}
    assert recording.look() == []


def test_who_can_not_be_brought_in_was_told(recording: Recording) -> None:
    recording.failure = AttachError(Pid(1), "traced")
    recording.pages = {0x1000: b"a"}
    assert recording.look() == [[0x1000]]
    assert recording.look() == []


@pytest.mark.parametrize(("cost", "cost_of_telling", "pause"), [(0.0, 0.0, 0.1), (0.01, 0.0, 2.0), (0.0, 0.02, 0.2)])
def test_looking_takes_little_of_the_time(
    recording: Recording, cost: float, cost_of_telling: float, pause: float
) -> None:
    recording.cost, recording.cost_of_telling = cost, cost_of_telling
    recording.pages = {0x1000: b"a"}
    recording.look()
    recording.now += pause - 0.01
    recording.code.look([recording.process])
    assert recording.n_looks == 1
    recording.now += 0.02
    recording.code.look([recording.process])
    assert recording.n_looks == 2
