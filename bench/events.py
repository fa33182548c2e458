"""How many events of a program that is followed from Python come into arrays, a second.

Run as `python -m bench.events [--only NAME...] [--rounds N]`. Wall-clock time, from `resume` until all events were
taken; the median of the rounds. What the program takes `alone` is with its order recorded, and no events.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time

import clew
from bench.workloads import Workload, load_workloads

KINDS = ("block", "call,ret", "exec", "memory", "call,ret,block,exec")
USUAL = ("fib", "sqlite3", "py_tasks", "threads", "gzip")


def measure(command: tuple[str, ...], kinds: str) -> tuple[int, float]:
    """How many events came of a command, and in how many seconds."""
    with clew.spawn(command, mode="full", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as session:
        stream = session.follow(events=kinds.split(",")) if kinds else ()
        start = time.perf_counter()
        session.resume()
        n_events = sum(len(batch) for batch in stream)
        session.wait()
        seconds = time.perf_counter() - start
        if isinstance(stream, clew.EventStream) and (
            stream.n_dropped or stream.n_gaps or stream.n_damaged or stream.n_unmatched
        ):
            raise AssertionError(f"{command[0]}: events are missing")
    return n_events, seconds


def show(workload: Workload, rounds: int) -> None:
    """Measure and print a line for each kind of events."""
    command = workload.command
    alone = statistics.median(measure(command, "")[1] for _ in range(rounds))
    for kinds in KINDS:
        found = [measure(command, kinds) for _ in range(rounds)]
        n_events, seconds = found[0][0], statistics.median(seconds for _, seconds in found)
        rate = n_events / seconds / 1e6
        print(f"{workload.name:12} {kinds:20} {n_events:14,} {rate:8.1f} M/s {seconds:8.2f} s {alone:8.2f} s alone")


def main(arguments: list[str]) -> int:
    """Measure and print; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=USUAL, metavar="NAME", help="names of workloads")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args(arguments)
    for workload in load_workloads(["short"], list(chosen.only)):
        show(workload, chosen.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
