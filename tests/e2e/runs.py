"""Runs a command natively and under `clew record`, and reads what was recorded.

Runs on the machine that tests. Does not know the test programs.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clew.analysis.invariants.check import check_invariants
from clew.analysis.tables.arrays import TraceArrays
from clew.analysis.tables.totals import summarize_trace
from clew.store.trace import Trace
from tests.e2e.forked import Process, Stream, find_server, is_read_late

ROOT = Path(__file__).resolve().parents[2]
TIMEOUT_SECONDS = 60.0
FIXED_LAYOUT = ("setarch", "-R")  # no address randomisation
CLEW = [sys.executable, "-m", "clew"]

Command = Sequence[str | Path]


@dataclass(frozen=True)
class Run:
    """What a command gave back. `status` is a shell's: 0 to 255, or 128 + N when signal N ended it."""

    status: int
    stdout: bytes
    stderr: bytes

    @classmethod
    def of(cls, status: int, stdout: bytes, stderr: bytes) -> Run:
        """From a status as `subprocess` has it."""
        return cls(status if status >= 0 else 128 - status, stdout, stderr)

    def sorted_lines(self) -> Run:
        """The same with the lines of stdout sorted, for programs whose threads print in any order."""
        return Run(self.status, b"\n".join(sorted(self.stdout.split(b"\n"))), self.stderr)


def environment() -> dict[str, str]:
    """The environment that tests give to every command, native or recorded.

    Code counts as hot after very few executions, so that short programs are laid out anew, too.
    """
    inherited = {name: os.environ[name] for name in ("PATH", "HOME", "CLEW_RUNTIME") if name in os.environ}
    relayout = os.environ.get("CLEW_RELAYOUT", "4")
    return {
        **inherited,
        "CLEW_RELAYOUT": relayout,
        "LC_ALL": "C",
        "TZ": "UTC",
        "PYTHONPATH": str(ROOT / "src"),
        "PYTHONHASHSEED": "0",
    }


def run(
    command: Command,
    *,
    stdin: bytes = b"",
    cwd: Path | None = None,
    timeout_seconds: float = TIMEOUT_SECONDS,
    environ: Mapping[str, str] | None = None,
) -> Run:
    """Run a command to its end, as `start` begins it.

    TimeoutError, with its output so far, when it takes too long; it is ended then.
    """
    words = [os.fspath(word) for word in command]
    pipe = subprocess.PIPE
    process = start(command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=cwd, environ=environ)
    try:
        stdout, stderr = process.communicate(stdin, timeout=timeout_seconds)
    except BaseException as error:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        if isinstance(error, subprocess.TimeoutExpired):
            raise too_late(words, timeout_seconds, stdout, stderr) from None
        raise
    return Run.of(process.wait(), stdout, stderr)


def start(
    command: Command,
    *,
    stdin: Stream = None,
    stdout: Stream = None,
    stderr: Stream = None,
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    **how: Any,
) -> Process:
    """Begin a command, in a session of its own; its end is the caller's to wait for. `how` goes to `subprocess`.

    One of clew's, with nothing else asked for, is a fork of a process that has imported it. With an environment that
    differs in what Python reads when it starts, that would be another process for each: it is started anew.
    """
    words = [os.fspath(word) for word in command]
    fixed_layout = tuple(words[: len(FIXED_LAYOUT)]) == FIXED_LAYOUT
    bare = words[len(FIXED_LAYOUT) :] if fixed_layout else words
    given = environment() if environ is None else environ
    is_usual = not how and bare[: len(CLEW)] == CLEW and _is_usual(given)
    server = find_server(bare, given) if is_usual else None
    if server is not None:
        folder = Path.cwd() if cwd is None else cwd
        return server.start(bare[len(CLEW) :], folder, (stdin, stdout, stderr), given, fixed_layout=fixed_layout)
    return subprocess.Popen(
        words,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        cwd=cwd,
        env=dict(given),
        start_new_session=True,
        **how,
    )


def _is_usual(environ: Mapping[str, str]) -> bool:
    """Whether an environment is the usual one, but for what may be given to a fork."""
    usual = environment()
    names = {name for name in {*environ, *usual} if not is_read_late(name)}
    return all(environ.get(name) == usual.get(name) for name in names)


def too_late(words: Sequence[str], timeout_seconds: float, stdout: bytes, stderr: bytes) -> TimeoutError:
    """What is raised when a command takes too long."""
    told = f"{stdout[-500:]!r} {stderr[-500:]!r}"
    return TimeoutError(f"{' '.join(words)}: not done after {timeout_seconds:g} s; {told}")


def clew_command(*words: str | Path) -> list[str | Path]:
    """The command line of the clew that is tested."""
    return [*CLEW, *words]


def record(command: Command, trace: Path, *options: str, fixed_layout: bool = False, **how: Any) -> Run:
    """Run a command under `clew record -q`; `options` go to clew, `how` to `run`."""
    recorder = clew_command("record", "-q", "-o", trace, *options, "--", *command)
    return run([*(FIXED_LAYOUT if fixed_layout else ()), *recorder], **how)


@dataclass(frozen=True)
class Recorded:
    """A finished trace, opened."""

    trace: Trace
    arrays: TraceArrays
    summary: dict[str, Any]

    @property
    def totals(self) -> dict[str, int]:
        totals: dict[str, int] = self.summary["totals"]
        return totals


def counts_by_place(path: Path) -> dict[tuple[int, int], int]:
    """How often each block that was executed was, by address and size: two recordings number blocks differently."""
    trace = Trace(path)
    places = {row["block_id"]: (row["app_pc"], row["size_bytes"]) for row in trace.blocks.to_pylist()}
    counts: Counter[tuple[int, int]] = Counter()
    for row in trace.counts.to_pylist():
        if row["block_id"] is not None and row["executions"]:
            counts[places[row["block_id"]]] += row["executions"]
    return dict(counts)


def read(path: Path, lost: frozenset[str] = frozenset()) -> Recorded:
    """Open a trace, prove it well-formed and free of all losses but `lost`; AssertionError tells what is not so."""
    trace = Trace(path)
    findings = check_invariants(trace)
    told = [f"{finding.invariant}: {finding.n_places} places: {finding.examples[:3]}" for finding in findings]
    assert not told, told
    summary = summarize_trace(trace)
    assert {name for name, n in summary["losses"].items() if n} == lost, summary["losses"]
    return Recorded(trace, TraceArrays(trace), summary)


def wait_until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    """Wait until something is so."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
