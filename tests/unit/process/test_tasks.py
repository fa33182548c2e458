"""Who speaks through which region of the shared memory."""

from __future__ import annotations

import mmap
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from clew.address import Pid, Tid
from clew.process.identity import maps_region
from clew.process.linux import libc
from clew.process.shared_layout import SharedLayout
from clew.process.shared_memory import HeaderSettings, SharedFile, SharedMemory
from clew.process.tasks import find_child_inside, find_group_inside, find_process, find_task
from clew.protocol._constants import Mode

CLONE_NEWPID = 0x20000000
LAYOUT = SharedLayout(max_threads=4, ring_bytes=1024, counter_bytes=64 << 10)


@pytest.fixture
def shared() -> Iterator[SharedMemory]:
    shared = SharedMemory(SharedFile.create(LAYOUT), HeaderSettings(mode=Mode.COUNTS))
    yield shared
    shared.close()


@contextmanager
def child(prepare: Callable[[], object]) -> Iterator[Pid]:
    """A process that has called `prepare`."""
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        kept = prepare()
        os.write(told, b"!")
        signal.pause()
        os._exit(kept is None)
    try:
        os.read(ready, 1)
        yield Pid(pid)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(ready)
        os.close(told)


def test_who_maps_a_region(shared: SharedMemory) -> None:
    with child(lambda: None) as pid:
        assert maps_region(pid, shared)
        assert find_process(shared) == pid
        assert find_task(shared, pid, pid) == Tid(pid)
        assert find_task(shared, pid, 1) is None
    assert find_process(shared) is None


def test_the_anchor_alone_is_no_use_of_the_first_region(shared: SharedMemory) -> None:
    def leave() -> mmap.mmap:
        fd = os.dup(shared.fd)
        shared.map.close()
        return mmap.mmap(fd, mmap.PAGESIZE, mmap.MAP_SHARED)

    with child(leave) as pid:
        assert not maps_region(pid, shared)


def test_a_process_by_the_number_that_another_has_for_it() -> None:
    with child(lambda: None) as pid:
        assert find_group_inside(Pid(os.getpid()), pid) == pid
        assert find_group_inside(pid, os.getpid()) == os.getpid()
    assert find_group_inside(Pid(os.getpid()), pid) is None
    with pytest.raises(OSError):
        find_group_inside(pid, os.getpid())


def test_a_child_by_its_number_where_its_parent_is() -> None:
    here = Pid(os.getpid())
    with child(lambda: None) as pid:
        assert find_child_inside(here, pid) == pid
        assert find_child_inside(pid, os.getpid()) is None
        os.kill(pid, signal.SIGKILL)
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert find_child_inside(here, pid) == pid
    assert find_child_inside(here, pid) is None


@pytest.mark.skipif(os.geteuid() != 0, reason="a pid namespace takes root")
def test_a_process_by_its_number_in_a_namespace() -> None:
    def enter() -> None:
        assert libc.unshare(CLONE_NEWPID) == 0
        if os.fork():
            os.wait()

    def find_child(parent: Pid) -> Pid:
        while not (words := Path(f"/proc/{parent}/task/{parent}/children").read_text().split()):
            os.sched_yield()
        return Pid(int(words[0]))

    with child(enter) as parent:
        inside = find_child(parent)
        try:
            assert find_group_inside(inside, 1) == inside
            assert find_group_inside(Pid(os.getpid()), 1) != inside
            assert find_group_inside(Pid(os.getpid()), inside) == inside
            assert find_child_inside(parent, inside) == inside
        finally:
            os.kill(inside, signal.SIGKILL)
