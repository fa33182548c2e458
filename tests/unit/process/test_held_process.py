"""Processes that are held, and let go again, while they make threads."""

from __future__ import annotations

from clew.address import Pid
from clew.process.held_process import HeldProcess
from tests.e2e.probed_program import PROBES, started
from tests.programs.build import build_plain

N_HOLDS = 150


def test_threads_that_are_made_meanwhile_are_held() -> None:
    """One that a held thread has made is traced before anybody is told, and can't be seized once more."""
    with started(build_plain(PROBES / "probed_makers.c", "-O1", "-pthread")) as running:
        for _ in range(N_HOLDS):
            held = HeldProcess(Pid(running.pid))
            try:
                held.stop_all(20.0)
                assert all(thread.is_stopped for thread in held.threads.values())
            finally:
                held.let_go()
        assert running.ask() == "0"
        assert running.end() == 0
