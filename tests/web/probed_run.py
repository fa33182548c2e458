"""A program that is probed for a while, and recorded for a while: a trace, and events of the same run.

Runs on the machine that tests. Does not know the page.
"""

from __future__ import annotations

import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Final

import pyarrow.parquet as pq

from tests.e2e import runs
from tests.programs.build import build_plain

__all__ = ["ASKED", "PROBES", "ProbedRun", "probe_run"]

_PROGRAM: Final = Path(__file__).resolve().parent / "programs/asked.c"
ASKED: Final = ((5, -1, 6), (3, 4))
"""What the program is asked for while it is probed, and while it is recorded."""
PROBES: Final = (
    *("--function", "inner", "--function", "outer", "--function", "answer"),
    *("--probe", "note", "-t", "n=arg1", "-t", "text=str(arg1)", "-r", "retval"),
)


@dataclass(frozen=True)
class ProbedRun:
    """What was written of a run."""

    trace: Path
    events: Path
    pid: int
    answers: list[int]
    """What the program answered while it was probed."""


def probe_run(folder: Path) -> ProbedRun:
    """Run the program, and write what came of it into `folder`: events first, then a trace."""
    trace, events = folder / "asked.clew", folder / "events"
    program = build_plain(_PROGRAM, "-O1", "-g", "-fPIE", "-pie")
    options: list[str | Path] = ["trace", *PROBES, "--format", "parquet", "-o", events, "--", program]
    with subprocess.Popen(
        [*runs.CLEW, *options], env=runs.environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as clew:
        assert clew.stdin is not None
        assert clew.stdout is not None
        # The probes are there before its first instruction, and it goes on when clew has left it.
        assert clew.stdout.readline() == "ready\n"
        answers = [_ask(clew.stdin, clew.stdout, one) for one in ASKED[0]]
        clew.send_signal(signal.SIGINT)
        assert clew.wait(30) == 0
        pid = int(pq.read_table(events / "events.parquet", columns=["pid"])["pid"][0].as_py())
        command: list[str | Path] = [*runs.CLEW, "attach", "--mode", "full", "-o", trace, str(pid)]
        with subprocess.Popen(command, env=runs.environment(), stderr=subprocess.PIPE, text=True) as attached:
            assert attached.stderr is not None
            assert "attached to process" in attached.stderr.readline()
            for one in ASKED[1]:
                _ask(clew.stdin, clew.stdout, one)
            # It ends, and so does its recording.
            clew.stdin.close()
            said = attached.stderr.read()
            assert attached.wait(30) == 0, said
    return ProbedRun(trace, events, pid, answers)


def _ask(stdin: IO[str], stdout: IO[str], number: int) -> int:
    stdin.write(f"{number}\n")
    stdin.flush()
    return int(stdout.readline())
