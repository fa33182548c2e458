"""What captures cost a program that is followed from Python, a call.

Run as `python -m bench.sessions [--calls N] [--callbacks N]`. Wall-clock time, from `resume` to the end of the program;
of a log until its table is read.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from itertools import pairwise

import clew
from bench.workloads import compile_program

Prepare = Callable[[clew.Session], Callable[[], object]]


def time_calls(program: str, n_calls: int, prepare: Prepare) -> float:
    """Seconds; `prepare` is given the session before it begins, and what it gives is called when it has ended."""
    with clew.spawn([program, str(n_calls)], stdout=subprocess.DEVNULL) as session:
        finish = prepare(session)
        start = time.perf_counter()
        session.resume()
        session.wait()
        finish()
        return time.perf_counter() - start


def main(arguments: list[str]) -> int:
    """Measure and print; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=50_000_000, help="how many calls, of the cheap ones")
    parser.add_argument("--callbacks", type=int, default=5_000, help="how many calls with a callback")
    chosen = parser.parse_args(arguments)
    program = compile_program("probed")
    times: list[float] = []

    def condition(session: clew.Session) -> Callable[[], object]:
        session.on_call("probed", lambda call: None, condition="arg1 == -1")
        return lambda: None

    def log(session: clew.Session) -> Callable[[], object]:
        return session.log_calls("probed", capture=["arg1", "arg2"]).read

    def count(session: clew.Session) -> Callable[[], object]:
        return session.aggregate("probed").read

    def add_up(session: clew.Session) -> Callable[[], object]:
        return session.aggregate("probed", by=["arg1 & 255"], value="arg2", histogram=True).read

    def log_returns(session: clew.Session) -> Callable[[], object]:
        return session.log_returns("probed", capture=["entry(arg1)", "retval", "duration"]).read

    def time_calls_by_key(session: clew.Session) -> Callable[[], object]:
        times = session.aggregate("probed", at="return", by=["entry(arg1) & 255"], value="duration", histogram=True)
        return times.read

    def log_texts(session: clew.Session) -> Callable[[], object]:
        return session.log_returns("probed", capture=["entry(comm)", "retval"]).read

    def callback(session: clew.Session) -> Callable[[], object]:
        session.on_call("probed", lambda call: times.append(time.perf_counter()), capture=["arg1", "arg2"])
        return lambda: None

    rows: list[tuple[str, int, Prepare]] = [
        ("nothing captured", chosen.calls, lambda session: lambda: None),
        ("a condition that does not hold", chosen.calls, condition),
        ("counted", chosen.calls, count),
        ("added up by a key, with a histogram", chosen.calls, add_up),
        ("how long it takes, by a key, with a histogram", chosen.calls, time_calls_by_key),
        ("recorded in a log", chosen.calls // 10, log),
        ("result, argument and duration in a log", chosen.calls // 10, log_returns),
        ("its result and a string in a log", chosen.calls // 100, log_texts),
        ("a callback", chosen.callbacks, callback),
    ]
    for name, n_calls, prepare in rows:
        seconds = time_calls(program, n_calls, prepare)
        print(f"{name:46} {1e9 * seconds / n_calls:12,.1f} ns a call, of {n_calls:,}")
    trips = [1e6 * (after - before) for before, after in pairwise(times)]
    print(f"round trip of a callback: median {statistics.median(trips):.0f} us, ", end="")
    print(f"99 of 100 within {statistics.quantiles(trips, n=100)[98]:.0f} us")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
