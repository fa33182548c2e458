"""What came of taking a program's events into arrays, and how clew takes them.

The peers do the same from bench/peers/event_takers.py. Whoever takes events counts in each batch how many are the
program's *own*: of `block` and `exec` those that were executed in its code, of `call` those that lead there. Knows
nothing of whether that is right.
"""

from __future__ import annotations

import struct
import subprocess
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import clew
from bench.tools import make_environment
from bench.workloads import Workload

# An interpreter's own code is in its library, on Debian at least.
_CODE_OF = {"sqlite3": "libsqlite3", "py_tasks": "libpython"}
_HOLD_SECONDS = 60.0
_MOVABLE = 3  # ET_DYN


@dataclass(frozen=True)
class Taken:
    """Events of one run: all of them, the program's own, the seconds from when following began to the last event.

    `was_cut`: there was no time for more. `failure` says why there are none, or what is wrong with them; else empty.
    """

    n_events: int = 0
    n_own: int = 0
    seconds: float = 0.0
    was_cut: bool = False
    failure: str = ""

    @property
    def rate(self) -> float:
        """Millions of events a second; 0 if there were none."""
        return self.n_events / self.seconds / 1e6 if self.seconds else 0.0


def name_own_code(workload: Workload) -> str:
    """How the name of the file begins in which a program's own code is."""
    return _CODE_OF.get(workload.name, Path(workload.command[0]).resolve().name)


def take_with_clew(command: Sequence[str], kinds: str, code: str, limit_seconds: float) -> Taken:
    """Follow a command from its first instruction behind the dynamic linker on; `code` as `name_own_code` has it."""
    environment = make_environment(TMPDIR=tempfile.gettempdir())
    with clew.spawn(
        command, mode="full", environment=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL
    ) as session:
        _go_to_entry(session, command[0])
        own = _Own(session, kinds, code)
        n_events = n_own = 0
        was_cut = False
        start = time.perf_counter()
        stream = session.follow(events=kinds.split(","))
        session.resume()
        for batch in stream:
            n_events += len(batch)
            n_own += own.count(batch)
            was_cut = time.perf_counter() - start > limit_seconds
            if was_cut:
                break
        seconds = time.perf_counter() - start
        failure = ""
        if not was_cut:
            status = session.wait()
            n_lost = stream.n_dropped + stream.n_gaps + stream.n_unmatched
            if status or n_lost or stream.n_damaged:
                failure = f"status {status}, {n_lost} lost, {stream.n_damaged} threads damaged"
    return Taken(n_events, n_own, seconds, was_cut, failure)


def _go_to_entry(session: clew.Session, program: str) -> None:
    """Let the program run to its entry, before which the dynamic linker has mapped the libraries."""
    path = Path(program).resolve()
    with path.open("rb") as file:
        kind, entry = struct.unpack("<16xH6xQ", file.read(32))
    base = next(image.base for image in session.images if image.path == str(path)) if kind == _MOVABLE else 0
    place = session.add_breakpoint(base + entry)
    session.resume()
    session.wait_for_stop(_HOLD_SECONDS)
    session.remove_breakpoint(place)


class _Own:
    """Counts a program's own events in batches."""

    def __init__(self, session: clew.Session, kinds: str, code: str) -> None:
        self._counts_calls = "call" in kinds
        found = [image for image in session.images if Path(image.path).name.startswith(code)]
        self._low = np.uint64(min((image.start for image in found), default=0))
        self._size = np.uint64(max((image.end for image in found), default=0)) - self._low

    def count(self, batch: npt.NDArray[Any]) -> int:
        addresses = batch["target"][batch["kind"] == clew.FlowKind.CALL] if self._counts_calls else batch["address"]
        return int(np.count_nonzero(addresses - self._low < self._size))
