"""What it costs to be told of calls again and again (`Session.on_call_summary`): CPU time to that of following alone.

Run as `python -m bench.call_summaries [--only NAME...] [--rounds N] [--interval SECONDS]`. CPU time of everything, the
controller's too, from its start to its end; both kinds in turn, medians.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
from collections import defaultdict

import clew
from bench.measure import measure
from bench.workloads import load_workloads

USUAL = ("py_fannkuch", "py_richards", "sqlite3", "perl")
KINDS = ("follow", "summaries")


def follow(kind: str, interval: float, command: list[str]) -> None:
    """One run, in a process of its own; prints how many summaries there were."""
    told: list[int] = []
    with clew.spawn(command, stdout=subprocess.DEVNULL) as session:
        if kind == "summaries":
            session.on_call_summary(lambda calls: told.append(len(calls)), interval=interval)
        session.resume()
        session.wait()
    print(f"{len(told)} summaries", file=sys.stderr)


def main(arguments: list[str]) -> int:
    """Measure and print; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=USUAL, metavar="NAME", help="names of workloads")
    parser.add_argument("--size", default="long", choices=("long", "short"))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--interval", type=float, default=0.25, help="seconds between two summaries")
    parser.add_argument("--once", nargs=argparse.REMAINDER, help=argparse.SUPPRESS)
    chosen = parser.parse_args(arguments)
    if chosen.once:
        follow(chosen.once[0], chosen.interval, chosen.once[1:])
        return 0
    for workload in load_workloads([chosen.size], list(chosen.only)):
        seconds: dict[str, list[float]] = defaultdict(list)
        said = ""
        for _ in range(chosen.rounds):
            for kind in KINDS:
                own = [sys.executable, "-m", "bench.call_summaries", "--interval", str(chosen.interval)]
                done = measure([*own, "--once", kind, *workload.command], dict(os.environ), workload.stdin)
                if done.status:
                    raise RuntimeError(f"{workload.name}, {kind}: status {done.status}, {done.said}")
                seconds[kind].append(done.cpu_seconds)
                said = done.said
        alone, told = (statistics.median(seconds[kind]) for kind in KINDS)
        print(f"{workload.name:14} followed {alone:6.2f} s, with {said} {told:6.2f} s: {told / alone:.2f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
