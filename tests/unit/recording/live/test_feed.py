"""The recorder tells a live viewer what it follows, and waits for nobody."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Iterator

import pytest

from clew.process.shared_layout import SharedLayout
from clew.process.shared_memory import HeaderSettings, SharedFile, SharedMemory
from clew.protocol._constants import Mode
from clew.recording.live.feed import LiveFeed, iter_told

LAYOUT = SharedLayout(max_threads=2, ring_bytes=4096, counter_bytes=4096)


@pytest.fixture
def shared() -> Iterator[SharedMemory]:
    made = SharedMemory(SharedFile.create(LAYOUT), HeaderSettings(Mode.COUNTS))
    yield made
    made.close()


@pytest.fixture
def ends() -> Iterator[tuple[LiveFeed, socket.socket]]:
    own, other = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    feed = LiveFeed(own)
    yield feed, other
    feed.close()
    other.close()


def test_a_viewer_is_told_of_processes_with_their_memory_and_of_the_end(
    shared: SharedMemory, ends: tuple[LiveFeed, socket.socket]
) -> None:
    feed, other = ends
    feed.follow(3, shared)
    feed.tell_end("failed", "no room")
    feed.close()
    first, second = list(iter_told(other))
    assert (first.what, first.content["number"], first.content["offset"]) == ("process", 3, 0)
    assert os.path.samestat(os.fstat(first.descriptor), os.fstat(shared.fd))
    with pytest.raises(OSError):
        os.write(first.descriptor, b"x")
    os.close(first.descriptor)
    assert (second.what, second.content["reason"], second.descriptor) == ("failed", "no room", -1)


def test_a_viewer_that_does_not_listen_is_not_waited_for(
    shared: SharedMemory, ends: tuple[LiveFeed, socket.socket]
) -> None:
    feed, _ = ends
    started = time.monotonic()
    for number in range(3000):
        feed.follow(number, shared)
    assert time.monotonic() - started < 5
    assert 0 < feed.n_untold < 3000
    n_untold = feed.n_untold
    feed.tell_end("published")
    assert any(str(n_untold) in line for line in feed.warnings)


def test_a_viewer_that_is_gone_is_told_of_once(shared: SharedMemory, ends: tuple[LiveFeed, socket.socket]) -> None:
    feed, other = ends
    other.close()
    for number in range(5):
        feed.follow(number, shared)
    feed.tell_end("published")
    assert feed.warnings == ["the live view ended before the recording did"]
    assert feed.n_untold == 0
