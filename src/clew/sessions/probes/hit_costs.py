"""What a hit of a probe takes a thread on this machine, measured once as long as it runs.

Runs in the controller, with a program of its own.
"""

from __future__ import annotations

import contextlib
import json
import os
import statistics
import struct
import subprocess
import tempfile
from pathlib import Path
from typing import IO, Final

from clew.dataclass import dataclass
from clew.errors import UsageError
from clew.probing.native import MEASURED
from clew.sessions.probes.backends import Backend
from clew.sessions.probes.native_launch import start
from clew.sessions.probes.probe_session import ProbeSession
from clew.sessions.probes.specs import ProbeSpec
from clew.sessions.streams import Streams
from clew.version import __version__

__all__ = ["HitCosts", "find_costs", "measure_costs"]

_N_BURSTS: Final = 9
_N_FIRST: Final = 12
"""Of which the first have no page of the thread's ring yet, which takes many times what a hit does."""
_TIMES: Final = struct.Struct("<4q")
_SECOND_NS: Final = 1_000_000_000


@dataclass(frozen=True)
class HitCosts:
    """Nanoseconds of a thread's processor time that an event with its time, and nothing else, takes by a jump over one
    instruction, and by a trap."""

    jump: float
    trap: float

    def of(self, backend: str) -> float | None:
        """That of a backend, if it was measured."""
        return {Backend.JUMP.value: self.jump, Backend.TRAP.value: self.trap}.get(backend)


def measure_costs() -> HitCosts:
    """Measure, and keep that for `find_costs`. Raises ClewError where there can be no probes, or they can't be so."""
    program = os.memfd_create("clew-measured")
    try:
        os.write(program, MEASURED.content)
        costs = _measure(f"/proc/self/fd/{program}")
    finally:
        os.close(program)
    _keep(costs)
    return costs


def find_costs() -> HitCosts | None:
    """What was measured since the machine was started, by this version; None: nothing was."""
    try:
        kept = json.loads(_path().read_text())
        if kept.pop("boot") == _boot() and kept.pop("version") == __version__:
            return HitCosts(float(kept["jump"]), float(kept["trap"]))
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        # It is another's, or nobody's.
        return None
    return None


def _measure(path: str) -> HitCosts:
    streams = Streams(subprocess.PIPE, subprocess.PIPE, None)
    session = ProbeSession([])
    begun = None
    try:
        begun = start([path], None, streams, None)(session)
        streams.let_go()
        assert begun.stopped is not None
        assert begun.target is not None
        begun.target.let_go()
        begun.stopped.detach()
        return _compare(session, (streams.pipes["stdin"], streams.pipes["stdout"]))
    finally:
        session.close()
        streams.close()
        if begun is not None:
            # It ends with its input.
            os.waitpid(begun.pid, 0)
            os.close(begun.pidfd)


def _compare(session: ProbeSession, pipes: tuple[IO[bytes], IO[bytes]]) -> HitCosts:
    """With probes and without."""
    requests = MEASURED.jump_request, MEASURED.trap_request
    before = [statistics.median(_burst(pipes, request) for _ in range(_N_BURSTS)) for request in requests]
    session.add(ProbeSpec(f"{one:#x}", f"{one:#x}") for one in (MEASURED.jumped, MEASURED.trapped))
    backends = {one.address: one.backend for target in session.targets for one in target.armed}
    if [backends.get(one) for one in (MEASURED.jumped, MEASURED.trapped)] != [Backend.JUMP.value, Backend.TRAP.value]:
        raise UsageError("nothing can be measured here: there is no room for a jump in a program of clew's own")
    taken: list[float] = []
    for request, native in zip(requests, before, strict=True):
        hits = []
        for _ in range(_N_FIRST + _N_BURSTS if request is requests[0] else _N_BURSTS):
            hits.append(_burst(pipes, request) - native)
            # There is room for the next ones then.
            session.read_events()
        taken.append(max(statistics.median(hits[-_N_BURSTS:]), 0.0) / MEASURED.n_calls)
    return HitCosts(round(taken[0], 1), round(taken[1], 1))


def _burst(pipes: tuple[IO[bytes], IO[bytes]], request: bytes) -> int:
    """How long the program takes for its calls, in nanoseconds of its processor time."""
    pipes[0].write(request)
    pipes[0].flush()
    told = pipes[1].read(_TIMES.size)
    if len(told) < _TIMES.size:
        raise UsageError("nothing can be measured here: the program that was to be measured has ended")
    start_s, start_ns, end_s, end_ns = _TIMES.unpack(told)
    return int((end_s - start_s) * _SECOND_NS + end_ns - start_ns)


def _path() -> Path:
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "clew", "probe-costs.json")


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text().strip()


def _keep(costs: HitCosts) -> None:
    """Where that can't be it is measured again."""
    path = _path()
    with contextlib.suppress(OSError, RuntimeError):
        path.parent.mkdir(parents=True, exist_ok=True)
        # At once: another may read it.
        with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
            kept = {"boot": _boot(), "version": __version__, "jump": costs.jump, "trap": costs.trap}
            json.dump(kept, file)
        os.replace(file.name, path)
