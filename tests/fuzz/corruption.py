"""Fuzzes what reads traces: `python -m tests.fuzz.corruption --seed N --count M`.

Runs on the machine that tests. Damages files of a trace, whole or cut off, and demands of every subcommand that it
ends in time, with success or with one line that tells what is wrong. Knows clew by its command line.
"""

from __future__ import annotations

import argparse
import mmap
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import clew.analysis.invariants.check
import clew.analysis.ranking.block_lines
import clew.analysis.ranking.hot_lines
import clew.analysis.ranking.hottest
import clew.cli.info_text
import clew.cli.report_text
import clew.export.formats
import clew.recording.assembly.trace
import clew.recording.reading.journal_reader  # noqa: F401 - imported once, for all the children
from clew.analysis.tables import split
from clew.cli import export, info, main, recover, report, verify
from clew.recording.following.snapshot import SNAPSHOT_NAME
from clew.store.names import JOURNAL_NAME
from tests.e2e import runs
from tests.fuzz.damage import damage

DEFAULT_FAILURES = Path("build/fuzz")
LIMIT_SECONDS = 60.0
LIMIT_BYTES = 8 << 30  # of address space, more than there is
SHOWING = (info, verify, report, report, export)
REPORTS = (
    *(["--by", by] for by in ("function", "block", "edge", "line", "image", "thread")),
    *(["--merge", "--by", by] for by in ("function", "line", "image")),
)
PIECE_ROWS = (split.PIECE_ROWS, 1000, 1)
"""Rows that are looked at together: the traces here are small, and come in one piece otherwise."""
WHOLE = "whole"
CUT_OFF = "cut_off"
SCRIPT = "for i in 1 2 3; do (exit $i); done; /bin/true; echo ready; {}"


def make_traces(folder: Path) -> None:
    """Record a shell with children twice: to its end, and cut off."""
    assert runs.record(["sh", "-c", SCRIPT.format("true")], folder / WHOLE).status == 0
    cut_off = folder / CUT_OFF
    command = runs.clew_command("record", "-q", "-o", cut_off, "--", "sh", "-c", SCRIPT.format("read line"))
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=runs.environment(), start_new_session=True
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        limit = time.monotonic() + LIMIT_SECONDS
        while not (cut_off / SNAPSHOT_NAME).exists() and time.monotonic() < limit:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    assert (cut_off / JOURNAL_NAME).exists()


def run_here(arguments: list[str], folder: Path) -> str | None:
    """Run the command line in a child of this process; what is wrong with how it ended."""
    outputs = [folder / "stdout", folder / "stderr"]
    child = os.fork()
    if child == 0:
        try:
            for number, path in enumerate(outputs, 1):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), number)
            # Beside what this process has mapped already, which may be the memory of sessions.
            limit_bytes = LIMIT_BYTES + int(Path("/proc/self/statm").read_text().split()[0]) * mmap.PAGESIZE
            resource.setrlimit(resource.RLIMIT_AS, (limit_bytes, limit_bytes))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
            sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
            status = main.main(arguments)
            sys.stdout.flush()
            os._exit(status)
        finally:
            os._exit(99)
    limit = time.monotonic() + LIMIT_SECONDS
    pidfd = os.pidfd_open(child)
    while not (ended := os.waitpid(child, os.WNOHANG))[0]:
        if time.monotonic() > limit:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
            os.waitpid(child, 0)
            os.close(pidfd)
            return f"not done after {LIMIT_SECONDS:g} s"
        time.sleep(0.002)
    os.close(pidfd)
    return judge(os.waitstatus_to_exitcode(ended[1]), *(path.read_text(errors="replace") for path in outputs))


def judge(status: int, stdout: str, stderr: str) -> str | None:
    """What is wrong with an ending."""
    lines = stderr.splitlines()
    if status not in (0, 1, 2):
        return f"status {status}: {stderr[-500:]}"
    if "internal error" in stderr or any(not line.startswith("clew: ") for line in lines):
        return f"no clear error: {stderr[-500:]}"
    if status != 0 and not stdout and len(lines) != 1:
        return f"status {status} with {len(lines)} lines: {stderr[-500:]}"
    return None


def fuzz_one(seed: int, traces: Path, failures: Path) -> str | None:
    """Damage one copy and read it by all subcommands; what is wrong. The damaged trace is kept if anything is."""
    kind = CUT_OFF if seed % 2 else WHOLE
    with tempfile.TemporaryDirectory(prefix="clew-fuzz-") as name:
        folder = Path(name)
        trace = folder / kind
        shutil.copytree(traces / kind, trace)
        damage(trace, seed)
        shutil.copytree(trace, folder / "kept")
        commands = [[module.__name__.rpartition(".")[2], str(trace)] for module in SHOWING]
        commands[SHOWING.index(report)] += REPORTS[seed % len(REPORTS)]
        split.PIECE_ROWS = PIECE_ROWS[seed // 2 % len(PIECE_ROWS)]
        commands[SHOWING.index(export)] += ["-q", "--to", "drcov", "-o", str(folder / "exported")]
        if kind == CUT_OFF:
            commands.insert(0, [recover.__name__.rpartition(".")[2], str(trace)])
        for command in commands:
            wrong = run_here(command, folder)
            if wrong is not None:
                kept = failures / f"corruption-{seed}"
                shutil.rmtree(kept, ignore_errors=True)
                failures.mkdir(parents=True, exist_ok=True)
                shutil.copytree(folder / "kept", kept)
                return f"clew {command[0]}: {wrong}\n    {kept}"
    return None


def run_all() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first damage's seed; the others follow")
    parser.add_argument("--count", type=int, default=100, help="how many")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    parser.add_argument("--failures", type=Path, default=DEFAULT_FAILURES, help="folder for damaged traces")
    arguments = parser.parse_args()
    start = time.monotonic()
    n_run = n_failures = 0
    with tempfile.TemporaryDirectory(prefix="clew-fuzz-") as folder:
        make_traces(Path(folder))
        for seed in range(arguments.seed, arguments.seed + arguments.count):
            if time.monotonic() - start > arguments.seconds:
                break
            n_run += 1
            wrong = fuzz_one(seed, Path(folder), arguments.failures)
            if wrong is not None:
                n_failures += 1
                print(f"seed {seed}: {wrong}", flush=True)
    print(f"{n_run} damaged traces: {n_failures} failures")
    return 1 if n_failures else 0


if __name__ == "__main__":
    sys.exit(run_all())
