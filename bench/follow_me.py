"""What it costs a Python process to have a thread of its own followed.

Run as `python -m bench.follow_me [--rounds N] [--kib N]`. Wall-clock time: of entering an empty block and leaving it,
and of leaving one in which zlib compressed so much text, until its events are there.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
import zlib
from collections.abc import Callable

import clew
from bench.inputs import make_text


def time_block(body: Callable[[], object]) -> tuple[float, float, float, int]:
    """Seconds of entering, of the body and of leaving; and how many events there are."""
    times = [time.perf_counter()]
    with clew.follow_me(events={"block"}, limit=1 << 32) as events:
        times.append(time.perf_counter())
        body()
        times.append(time.perf_counter())
    times.append(time.perf_counter())
    return times[1] - times[0], times[2] - times[1], times[3] - times[2], len(events)


def main(arguments: list[str]) -> int:
    """Measure and print; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="how often an empty block is entered")
    parser.add_argument("--kib", type=int, default=1 << 10, help="how much is compressed in a long one")
    chosen = parser.parse_args(arguments)
    # What is imported late is imported by the first.
    time_block(lambda: None)
    empty = [time_block(lambda: None) for _ in range(chosen.rounds)]
    for name, index in (("entering", 0), ("leaving", 2)):
        milliseconds = [1e3 * one[index] for one in empty]
        print(
            f"{name:10} {statistics.median(milliseconds):6.0f} ms ({min(milliseconds):.0f} to {max(milliseconds):.0f})"
        )
    data = make_text(chosen.kib << 10).read_bytes()
    _, seconds, leaving, n_events = time_block(lambda: zlib.compress(data))
    print(f"{n_events:,} blocks in {seconds:.2f} s, {n_events / leaving / 1e6:.1f} M/s taken behind them")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
