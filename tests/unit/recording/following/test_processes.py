"""What is left of processes that could not be followed after all."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from clew.address import Pid
from clew.process.injection_plan import InjectionPlan, plan_injection
from clew.process.processors.chosen import native_processor
from clew.process.shared_layout import SharedLayout
from clew.process.shared_memory import FilterRow, HeaderSettings, SharedFile, SharedMemory
from clew.protocol._constants import Mode, ReleaseReason
from clew.protocol.layout import field_offset
from clew.recording.following import entering
from clew.recording.following.followed import FollowedProcess, read_status_of_ended
from clew.recording.following.processes import Processes
from clew.recording.journal.sink import JournalSink
from clew.recording.journal.writer import JournalWriter
from clew.recording.options.filters import FilterSet, parse_filter
from clew.recording.sinks.sink import Identity

HERE = Pid(os.getpid())
LAYOUT = SharedLayout(max_threads=4, ring_bytes=1024, counter_bytes=64 << 10)


def test_nothing_is_left_of_a_process_that_is_gone_when_the_runtime_is_in_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = HeaderSettings(mode=Mode.COUNTS)
    stopped: Any = SimpleNamespace(pid=Pid(os.getpid()))

    def inject(*_: object, **__: object) -> tuple[SharedMemory, InjectionPlan]:
        stopped.pid = Pid(1 << 30)  # no process has that number
        return SharedMemory(SharedFile.create(LAYOUT), settings), plan_injection(
            1 << 20, LAYOUT, 1 << 20, [], bases=native_processor().bases
        )

    monkeypatch.setattr(entering, "inject", inject)
    image: Any = None
    with JournalWriter(tmp_path / "journal") as journal:
        followed = Processes(JournalSink(journal), image, settings, FilterSet((), ()))
        mapped = Path("/proc/self/maps").read_text().count("memfd:clew")
        with pytest.raises(OSError):
            followed.add(stopped, LAYOUT, 0)
        deadline = time.monotonic() + 5
        while Path("/proc/self/maps").read_text().count("memfd:clew") != mapped:
            assert time.monotonic() < deadline  # the thread that hears the bells lets go when it wakes
            time.sleep(0.01)
        assert len(followed) == 0
        followed.leave()


@pytest.mark.parametrize("is_answered", [True, False])
def test_a_child_that_nobody_answered_ran_unfollowed_though_it_was_killed(tmp_path: Path, is_answered: bool) -> None:
    image: Any = None
    settings = HeaderSettings(mode=Mode.COUNTS)
    with JournalWriter(tmp_path / "journal") as journal, subprocess.Popen(["sleep", "60"]) as process:
        followed = Processes(JournalSink(journal), image, settings, FilterSet((), ()))
        parent_shared = SharedMemory(SharedFile.create(LAYOUT), settings)
        plan = plan_injection(1 << 20, LAYOUT, 1 << 20, [], bases=native_processor().bases)
        who = Identity(HERE, Pid(os.getppid()), "/bin/parent", [], "", has_own_namespace=False)
        parent = FollowedProcess(followed._roster.meet(parent_shared, plan), who, -1, {})
        region = followed._unborn.expect(parent)
        followed._unborn.note_birth(parent, region, process.pid)
        (child,) = followed._unborn
        if not is_answered:
            offset = LAYOUT.status_offset + field_offset("StatusPage", "unanswered")
            child.shared.map[offset] = 1
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        followed._bury_stillborn()
        assert followed.n_unfollowed_children == (not is_answered)
        assert len(followed) == 0
        followed.leave()
        parent_shared.close()


@pytest.mark.parametrize("is_held", [True, False])
def test_who_is_stopped_goes_on_before_it_is_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_held: bool
) -> None:
    done: list[str] = []
    image: Any = None
    process: Any = object()
    with JournalWriter(tmp_path / "journal") as journal:
        followed = Processes(JournalSink(journal), image, HeaderSettings(mode=Mode.COUNTS), FilterSet((), ()))
        monkeypatch.setattr(followed, "detach", lambda *_: done.append("detach"))
        holding = SimpleNamespace(is_held=is_held, release=lambda: done.append("release"))
        monkeypatch.setattr(followed.holdings, "_by_process", {process: holding} if is_held else {})
        followed._release(process, 1.0, ReleaseReason.TRACED)
        monkeypatch.undo()
        followed.leave()
    assert done == ["release"] * is_held + ["detach"]


def test_a_child_that_did_not_speak_yet_has_filters_that_come_meanwhile(tmp_path: Path) -> None:
    told: list[tuple[int, int, bool]] = []

    class Region(SharedMemory):
        def append_filters(self, rows: Sequence[FilterRow]) -> int:
            told.extend(rows)
            return super().append_filters(rows)

    image: Any = None
    settings = HeaderSettings(mode=Mode.COUNTS)
    with JournalWriter(tmp_path / "journal") as journal:
        followed = Processes(JournalSink(journal), image, settings, FilterSet((), ()))
        child = Region(SharedFile.create(LAYOUT), settings)
        parent: Any = SimpleNamespace(
            pid=HERE,
            memory_pid=HERE,
            shared=SimpleNamespace(fork=lambda: child),
            plan=plan_injection(1 << 20, LAYOUT, 1 << 20, [], bases=native_processor().bases),
        )
        assert followed._unborn.expect(parent) == child.region
        before = child._n_directives
        assert followed.add_filter(parse_filter("0x1000-0x2000"), True) == 0, "nothing of those that run"
        assert followed.add_filter(parse_filter("libc.so.6"), False) == 0
        assert told[0] == (0x1000, 0x2000, True)
        assert {included for *_, included in told[1:]} == {False}
        assert child._n_directives == before + 2
        followed.leave()


def test_whoever_is_waited_for_while_it_is_looked_at_has_no_status(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who may not look at a process reads 0 for its status. Here it is gone between its status and the question whether
    it may be looked at: that nothing is there must not be taken for leave."""
    masked = [b"Z", *[b"0"] * 50]
    with subprocess.Popen(["true"]) as process:
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        is_gone = False

        def read(pid: int) -> list[bytes]:
            return [] if is_gone else masked

        def look(path: str) -> str:
            nonlocal is_gone
            is_gone = True
            raise FileNotFoundError(path)

        monkeypatch.setattr("clew.recording.following.followed.read_stat", read)
        monkeypatch.setattr("clew.recording.following.followed.os.readlink", look)
        assert read_status_of_ended(Pid(process.pid), -1) is None
