"""What threads that are not followed take longer than natively, and what a system call of theirs costs.

Run as `python -m bench.unfollowed [--only NAME...] [--rounds N] [--size long|short]`. Processor time of the program and
its children, medians, natively and in a session that follows none of its threads, in turn. The program's start under
clew is in it.
"""

from __future__ import annotations

import argparse
import math
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import clew
from bench.workloads import Workload, load_workloads

USUAL = ("fib", "nested_loops", "fptr", "qsort", "switch", "sieve", "threads", "gzip", "sqlite3", "py_tasks", "signals")

CALLS = 1_000_000
CALLING = """
#include <sys/syscall.h>
#include <unistd.h>
int main(void) { for (int i = 0; i < %d; i++) syscall(SYS_getuid); return 0; }
"""


def used_seconds() -> float:
    """Processor time of the children that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def run_natively(workload: Workload) -> float:
    """Seconds of processor time."""
    before = used_seconds()
    with open(workload.stdin or "/dev/null", "rb") as stdin:
        subprocess.run(workload.command, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return used_seconds() - before


def run_unfollowed(workload: Workload) -> float:
    """The same where clew has the program in its hands, and follows none of its threads."""
    before = used_seconds()
    with open(workload.stdin or "/dev/null", "rb") as stdin:
        discarded = subprocess.DEVNULL
        with clew.spawn(workload.command, stdin=stdin, stdout=discarded, stderr=discarded) as session:
            session.follow(set(), events={"call"})
            session.resume()
            session.wait()
    return used_seconds() - before


def compare(workload: Workload, rounds: int) -> tuple[float, float]:
    """Medians of both."""
    runs = [(run_natively(workload), run_unfollowed(workload)) for _ in range(rounds)]
    return statistics.median(one for one, _ in runs), statistics.median(other for _, other in runs)


def show_calls(rounds: int) -> None:
    """Print what a system call costs."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder, "calls.c"), Path(folder, "calls")
        source.write_text(CALLING % CALLS)
        subprocess.run(["cc", "-O1", "-o", program, source], check=True)
        native, unfollowed = compare(Workload("calls", "long", (str(program),)), rounds)
    print(f"a system call: {1e9 * native / CALLS:.0f} ns natively, {1e9 * unfollowed / CALLS:.0f} ns")


def main(arguments: list[str]) -> int:
    """Measure and print; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(USUAL), help="programs")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--size", choices=["long", "short"], default="long")
    chosen = parser.parse_args(arguments)
    ratios = []
    for workload in load_workloads([chosen.size], chosen.only):
        native, unfollowed = compare(workload, chosen.rounds)
        ratios.append(unfollowed / native)
        print(f"{workload.name:14} {native:7.3f} s natively, {unfollowed:7.3f} s: {ratios[-1]:.3f}", flush=True)
    if ratios:
        print(f"geometric mean {math.exp(statistics.fmean(map(math.log, ratios))):.3f}")
    show_calls(chosen.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
