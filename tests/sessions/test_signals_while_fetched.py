"""Signals come together with the one by which the controller fetches a thread: none is lost, and masks stay right."""

from __future__ import annotations

import os
import signal
import struct
from subprocess import PIPE

import pytest

import clew
from clew.address import Pid, Tid
from clew.process import fetcher
from clew.process.linux import queue_signal
from tests.programs.build import SOURCES, build_plain

SI_QUEUE = -1
TIMES = 100


@pytest.mark.parametrize("is_followed", [True, False])
def test_no_signal_is_lost(is_followed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    n_sent = 0

    def queue_several(pid: Pid, tid: Tid, number: int, info: bytes) -> None:
        """One comes before the controller's own, which finds its handler's end, and one behind it."""
        nonlocal n_sent
        for other in (signal.SIGHUP, signal.SIGRTMIN):
            queue_signal(pid, tid, other, struct.pack("<iii", other, 0, SI_QUEUE).ljust(len(info), b"\0"))
        queue_signal(pid, tid, number, info)
        n_sent += 1

    program = build_plain(SOURCES / "sessions" / "fetched.c", "-O1")
    with clew.spawn([program], stdout=PIPE) as session:
        if not is_followed:
            session.unfollow(lambda _: True)
        session.resume()
        assert session.stdout is not None
        assert session.stdout.readline() == b"ready\n"
        monkeypatch.setattr(fetcher, "queue_signal", queue_several)
        for _ in range(TIMES):
            session.pause()
            session.resume()
        monkeypatch.setattr(fetcher, "queue_signal", queue_signal)
        os.kill(session.pid, signal.SIGUSR2)
        assert session.wait(30) == 0
        n_first, n_behind, n_wrong = map(int, session.stdout.read().split())
    # A standard signal that waits already is not queued again (signal(7)); those for real time are.
    assert 0 < n_first <= n_sent
    assert (n_behind, n_wrong) == (n_sent, 0)
