"""Children that end before they speak: what parents tell of them is believed as far as the kernel says so."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from clew.address import Pid
from clew.process.shared_layout import SharedLayout
from clew.process.shared_memory import HeaderSettings, SharedFile, SharedMemory
from clew.protocol._constants import Mode
from clew.recording.following.region import FollowedRegion
from clew.recording.following.unborn import Unborn
from clew.recording.sinks.sink import Identity

LAYOUT = SharedLayout(max_threads=4, ring_bytes=1024, counter_bytes=64 << 10)


class Nursery:
    """One parent, this process, and children of its that are about to be born."""

    def __init__(self) -> None:
        self.lost: list[str] = []
        self.shared = SharedMemory(SharedFile.create(LAYOUT), HeaderSettings(mode=Mode.COUNTS))
        self.parent: Any = SimpleNamespace(
            pid=Pid(os.getpid()),
            who=Identity(
                Pid(os.getpid()), Pid(os.getppid()), "/bin/parent", ["parent"], "parent", has_own_namespace=False
            ),
            has_own_namespace=False,
            has_ended=False,
            shared=self.shared,
            plan=None,
        )
        self.unborn = Unborn(self._make, lambda _: None, self.lost.append, self.lost.append)

    def _make(self, shared: SharedMemory, plan: Any) -> FollowedRegion:
        nobody: Any = None
        return FollowedRegion(nobody, nobody, shared, plan, Mode.COUNTS)

    def close(self) -> None:
        for region in self.unborn:
            self.unborn.discard(region)
        self.shared.close()


@pytest.fixture
def nursery() -> Iterator[Nursery]:
    made = Nursery()
    yield made
    made.close()


@pytest.fixture
def child() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "60"]) as process:
        yield process
        process.kill()


def test_a_child_that_ended_is_taken_once(nursery: Nursery, child: subprocess.Popen[bytes]) -> None:
    region = nursery.unborn.expect(nursery.parent)
    nursery.unborn.note_birth(nursery.parent, region, child.pid)
    assert nursery.unborn.is_known(Pid(child.pid))
    assert nursery.unborn.take_stillborn() == []
    child.kill()
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    ((_, made),) = nursery.unborn.take_stillborn()
    assert (made.pid, made.who.parent_pid) == (child.pid, os.getpid())
    assert (made.who.executable, made.who.command) == ("/bin/parent", ["parent"])
    os.close(made.pidfd)
    assert nursery.unborn.take_stillborn() == []
    assert len(nursery.unborn) == 0
    made.shared.close()


def test_a_child_that_was_buried_is_told_of_as_well(nursery: Nursery, child: subprocess.Popen[bytes]) -> None:
    region = nursery.unborn.expect(nursery.parent)
    child.kill()
    child.wait()
    nursery.unborn.note_birth(nursery.parent, region, child.pid)
    ((_, made),) = nursery.unborn.take_stillborn()
    assert (made.pid, made.pidfd) == (child.pid, -1)
    made.shared.close()


def test_what_is_no_child_of_the_parent_is_not_believed(nursery: Nursery) -> None:
    region = nursery.unborn.expect(nursery.parent)
    for number in (os.getpid(), os.getppid(), 0, (1 << 32) - 1):
        nursery.unborn.note_birth(nursery.parent, region, number)
        assert not nursery.unborn.take_stillborn(), number
    nursery.unborn.note_birth(nursery.parent, region + 1, os.getpid())
    assert len(nursery.unborn) == 1
