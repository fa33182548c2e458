"""Breakpoints of a session: the whole process stops there, as often as a thread comes."""

from __future__ import annotations

import contextlib
import subprocess
from collections import Counter
from pathlib import Path

import pytest

import clew

TURNS = 5


def test_each_time_a_thread_comes_all_stop(called: Path) -> None:
    seen = []
    with clew.spawn([called, str(TURNS)], stdout=subprocess.DEVNULL) as session:
        address = session.add_breakpoint("called!sum_of_eight")
        assert session.breakpoints == [address] == [session.find("sum_of_eight")]
        session.resume()
        for turn in range(TURNS):
            thread = session.wait_for_stop(30)
            assert session.state == "stopped" and thread.registers is not None
            assert thread.registers["rip"] == address and str(thread.backtrace()[1]).startswith("called!turn")
            # The eighth argument is on the stack, behind the seventh and the return address.
            word = session.read(thread.registers["rsp"] + 16, 8)
            seen.append(int.from_bytes(word, "little"))
            if turn + 1 < TURNS:
                session.resume()
        session.remove_breakpoint(address)
        assert session.breakpoints == []
        session.resume()
        session.wait(60)
        assert not session.trace.verify()
    assert seen == list(range(TURNS))


def test_threads_of_several(called: Path) -> None:
    met: Counter[int] = Counter()
    with clew.spawn([called, "3", "4"], stdout=subprocess.DEVNULL) as session:
        address = session.add_breakpoint("sum_of_eight")
        session.resume()
        # Until the program has ended. Several may come at once: all of them have stopped there then, and one that was
        # met before may not have moved yet.
        with contextlib.suppress(clew.ClewError):
            while True:
                tid = session.wait_for_stop(30).tid
                here = [one.tid for one in session.threads if one.registers and one.registers["rip"] == address]
                assert tid in here
                met.update(here)
                session.resume()
        assert session.wait(60) == subprocess.run([called, "3", "4"], stdout=subprocess.DEVNULL, check=False).returncode
    assert len(met) == 4 and min(met.values()) >= 3


def test_what_cannot_be_is_told(called: Path) -> None:
    with clew.spawn([called, "1"], stdout=subprocess.DEVNULL) as session:
        with pytest.raises(clew.ClewError):
            session.add_breakpoint("no_such_function")
        with pytest.raises(clew.ClewError, match="no breakpoint"):
            session.remove_breakpoint("main")
        session.resume()
        session.wait(60)
        with pytest.raises(clew.ClewError):
            session.wait_for_stop(1)
