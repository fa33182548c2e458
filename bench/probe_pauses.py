"""How long threads stand still while probes come and go: microseconds between two calls of a function that they call
without end.

Run as `python -m bench.probe_pauses [--rounds N] [--threads N]`. Shown are the median and the longest. The first row is
of a time in which nothing is done: what else the machine does. There have to be more processors than threads, or they
wait for each other.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial

from bench.machine import describe_machine
from bench.workloads import compile_program
from clew.address import Pid
from clew.sessions.probes.probe_session import ProbeSession
from clew.sessions.probes.specs import ProbeSpec

N_TOGGLES = 10
QUIET_SECONDS = 0.1
BARS = {"attach": 20_000.0, "a probe comes or goes": 100.0}


def main(arguments: list[str]) -> int:
    """Measure and print; the exit status."""
    parser = argparse.ArgumentParser(prog="bench.probe_pauses")
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(arguments)
    found: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        measure(options.threads, lambda name, microseconds: found.setdefault(name, []).append(microseconds))
    machine = describe_machine([])
    print(f"{machine['processor']}, {machine['processors']} processors, Linux {machine['kernel']}")
    print(f"{'microseconds without a call':44} {'median':>9} {'longest':>9} {'bar':>7}")
    missed = 0
    for name, values in found.items():
        bar = BARS.get(name)
        missed += bar is not None and statistics.median(values) > bar
        told = "" if bar is None else f"{bar:g}"
        print(f"{name:44} {statistics.median(values):9.0f} {max(values):9.0f} {told:>7}")
    return int(missed > 0)


def measure(n_threads: int, note: Callable[[str, float], object]) -> None:
    """One round."""
    command = [compile_program("probe_pauses"), str(n_threads)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        stdin, stdout = process.stdin, process.stdout
        assert stdout.readline() == "ready\n"

        def pause_of(do: Callable[[], object]) -> float:
            ask()
            do()
            return ask()

        def ask() -> float:
            stdin.write("\n")
            stdin.flush()
            return int(stdout.readline()) / 1000

        session = ProbeSession([ProbeSpec(one, one) for one in ("called", "libc.so.6!clock_gettime")])
        note("nothing is done", pause_of(lambda: time.sleep(QUIET_SECONDS)))
        session.remove([0, 1])
        note("attach", pause_of(lambda: session.attach(Pid(process.pid))))
        for index, name in enumerate(("a probe comes or goes", "the same in the C library: threads are held")):
            for _ in range(N_TOGGLES):
                note(name, pause_of(partial(session.enable, [index])))
                session.read()
                note(name, pause_of(partial(session.remove, [index])))
        note("detach", pause_of(session.close))
        process.kill()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
