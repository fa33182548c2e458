"""Who is left because another one of the recording is about to trace it, when, and what the tracer is told."""

from __future__ import annotations

import os
import time
from types import SimpleNamespace
from typing import Any

import pytest

from clew.address import Pid
from clew.errors import AttachError
from clew.protocol._constants import ReleaseReason, RequestKind
from clew.recording.drain.request import Request
from clew.recording.following import tracers


class Recording:
    """Processes by number, all of which are real only as far as the kernel says who they are: this very process."""

    def __init__(self) -> None:
        self.pid = Pid(os.getpid())
        self.tracee = self._process(self.pid, 1)
        self.tracer = self._process(Pid(1), 2)
        self.live: dict[Pid, Any] = {self.pid: self.tracee}
        self.is_coming = False
        self.is_held = False
        self.failure: AttachError | None = None
        self.left: list[Any] = []
        self.reasons: list[ReleaseReason] = []
        self.distrusted: list[Any] = []
        self.sharers: dict[Pid, Any] = {}
        self.let_go: list[tuple[Any, Pid]] = []
        self.warnings: list[str] = []
        self.now = 0.0
        self.tracers = tracers.Tracers(
            self.live.get,
            lambda pid: self.is_coming,
            lambda process: self.is_held,
            self._leave,
            self._distrust,
            self.sharers.get,
            self._let_go,
            self.warnings.append,
        )

    def _process(self, pid: Pid, number: int) -> Any:
        status = {"trusted_pages": 0}
        shared = SimpleNamespace(status=status, status_u32=status.__getitem__)
        return SimpleNamespace(pid=pid, number=number, has_own_namespace=False, has_ended=False, shared=shared)

    def _let_go(self, sharer: Any, pid: Pid) -> None:
        if self.failure is not None:
            raise self.failure
        self.let_go.append((sharer, pid))

    def _distrust(self, process: Any) -> None:
        if self.failure is not None:
            raise self.failure
        self.distrusted.append(process)

    def _leave(self, process: Any, patience_seconds: float, reason: ReleaseReason) -> None:
        assert patience_seconds < tracers.WAIT_SECONDS
        if self.failure is not None:
            raise self.failure
        self.left.append(process)
        self.reasons.append(reason)
        self.live.clear()

    def ask(
        self,
        tracer: Any = None,
        number: int = 0,
        kind: RequestKind = RequestKind.TRACE,
        reason: ReleaseReason = ReleaseReason.TRACED,
    ) -> int | None:
        request = Request(3, 4, kind, (number or self.pid, reason, 0, 0))
        return self.tracers.answer(tracer or self.tracer, request)


@pytest.fixture
def recording(monkeypatch: pytest.MonkeyPatch) -> Recording:
    recording = Recording()
    monkeypatch.setattr(time, "monotonic", lambda: recording.now)
    return recording


def test_left_outside_of_the_drain_and_told_once(recording: Recording) -> None:
    assert recording.ask() is None
    assert recording.left == []
    recording.tracers.advance()
    recording.tracers.advance()
    assert (recording.left, recording.reasons) == ([recording.tracee], [ReleaseReason.TRACED])
    assert recording.ask() == 1
    # The next time nobody is there to be left.
    assert recording.ask() is None
    recording.tracers.advance()
    assert recording.ask() == 0


def test_nothing_is_hurried_where_nobody_waits(recording: Recording) -> None:
    assert recording.tracers.delay_seconds > 1e9
    recording.ask()
    assert recording.tracers.delay_seconds < 0.01


def test_nobody_is_left_for_a_number_that_is_none(recording: Recording) -> None:
    recording.ask(number=1 << 40)
    recording.tracers.advance()
    assert recording.ask(number=1 << 40) == 0
    assert recording.left == []


def test_a_task_with_the_memory_of_another_process_is_let_go_alone(recording: Recording) -> None:
    recording.live.clear()
    recording.sharers[recording.pid] = recording.tracer
    recording.ask()
    recording.failure = AttachError(recording.pid, "in a call")
    recording.tracers.advance()
    assert recording.ask() is None
    recording.failure = None
    recording.tracers.advance()
    assert (recording.ask(), recording.let_go, recording.left) == (1, [(recording.tracer, recording.pid)], [])
    recording.ask(reason=ReleaseReason.WRITTEN)
    recording.tracers.advance()
    assert recording.ask(reason=ReleaseReason.WRITTEN) == 0


def test_nobody_is_left_for_itself(recording: Recording) -> None:
    recording.ask(recording.tracee)
    recording.tracers.advance()
    assert recording.ask(recording.tracee) == 0
    assert recording.left == []


def test_nobody_is_left_who_has_a_tracer(recording: Recording, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tracers, "read_status_line", lambda pid, name: "1")
    recording.ask()
    recording.tracers.advance()
    assert (recording.ask(), recording.left) == (0, [])


@pytest.mark.parametrize("state", ["is_coming", "is_held"])
def test_who_can_not_be_left_yet_is_waited_for(recording: Recording, state: str) -> None:
    setattr(recording, state, True)
    recording.ask()
    recording.tracers.advance()
    assert (recording.ask(), recording.left) == (None, [])
    setattr(recording, state, False)
    recording.tracers.advance()
    assert (recording.ask(), recording.left) == (1, [recording.tracee])


def test_not_waited_for_for_ever(recording: Recording) -> None:
    recording.is_coming = True
    recording.ask()
    recording.now = tracers.WAIT_SECONDS + 1
    recording.tracers.advance()
    assert (recording.ask(), recording.left) == (0, [])


def test_who_waits_to_trace_another_comes_later(recording: Recording) -> None:
    recording.ask()
    recording.ask(recording.tracee, number=1 << 40)
    recording.tracers.advance()
    assert recording.left == []
    assert recording.ask(recording.tracee, number=1 << 40) == 0
    recording.tracers.advance()
    assert recording.left == [recording.tracee]


def test_two_that_trace_each_other_are_not_waited_for_for_ever(recording: Recording) -> None:
    recording.live[Pid(1)] = recording.tracer
    recording.ask()
    recording.ask(recording.tracee, number=1)
    recording.tracers.advance()
    assert recording.left == []
    recording.now = tracers.WAIT_SECONDS + 1
    recording.tracers.advance()
    assert recording.left != []


def test_who_can_not_be_left_is_tried_again_and_told_of(recording: Recording) -> None:
    recording.failure = AttachError(recording.pid, "process 7: does not come out")
    recording.ask()
    recording.tracers.advance()
    assert (recording.ask(), recording.warnings) == (None, [])
    recording.now = tracers.WAIT_SECONDS + 1
    recording.tracers.advance()
    assert recording.ask() == 0
    assert recording.warnings == ["process 7: does not come out; process 1 traces it with clew's runtime in it"]


def test_a_tracer_that_ended_is_forgotten(recording: Recording) -> None:
    recording.ask()
    recording.tracer.has_ended = True
    recording.tracers.advance()
    assert recording.left == []
    assert recording.tracers.delay_seconds > 1e9


def test_whose_memory_is_written_stays_and_looks_whether_code_changed(recording: Recording) -> None:
    recording.is_held = True
    recording.ask(kind=RequestKind.WRITE)
    recording.tracers.advance()
    assert recording.ask(kind=RequestKind.WRITE) == 1
    assert (recording.distrusted, recording.left) == ([recording.tracee], [])


def test_who_can_not_be_told_of_writing_is_told_of(recording: Recording) -> None:
    recording.failure = AttachError(recording.pid, "process 7: can't be stopped")
    recording.ask(kind=RequestKind.WRITE)
    recording.now = tracers.WAIT_SECONDS + 1
    recording.tracers.advance()
    assert recording.ask(kind=RequestKind.WRITE) == 0
    assert "process 1 may overwrite code of it" in recording.warnings[0]


@pytest.mark.parametrize("n_trusted", [0, 3])
def test_left_for_a_write_that_failed_where_that_is_the_runtimes_doing(recording: Recording, n_trusted: int) -> None:
    recording.tracee.shared.status["trusted_pages"] = n_trusted
    recording.ask(reason=ReleaseReason.WRITTEN)
    recording.tracers.advance()
    assert recording.ask(reason=ReleaseReason.WRITTEN) == int(n_trusted > 0)
    assert recording.reasons == [ReleaseReason.WRITTEN] * (n_trusted > 0)
