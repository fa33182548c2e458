"""What it costs to transform code: each new block that a function of Python's is shown, and a native counter a block.

Run as `python -m bench.transforms [--only NAME...] [--rounds N]`. Wall-clock time from `resume` to the end, medians,
all kinds in turn. The counter's ratio is of what a program takes longer in its long size than in its short one, so
that it leaves out what is translated and shown once; it is to what mode `counts` takes for that.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

import clew
from bench.workloads import Workload, load_workloads
from clew.sessions.transforms.blocks import CodeBlock

USUAL = ("fib", "nested_loops", "qsort", "switch", "sieve", "threads", "gzip", "sqlite3")
COUNTER = "static uint64_t n; CLEW_CALLOUT void count(void) { n++; }"

Prepare = Callable[[clew.Session], object]


def run(command: tuple[str, ...], prepare: Prepare) -> tuple[float, int]:
    """Seconds, and how many blocks were asked about."""
    with clew.spawn(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as session:
        found = prepare(session)
        start = time.perf_counter()
        session.resume()
        session.wait()
        seconds = time.perf_counter() - start
    return seconds, found.n_blocks if isinstance(found, clew.Transformer) else 0


def nothing(session: clew.Session) -> None:
    """Counts, as ever."""


def keep(session: clew.Session) -> clew.Transformer:
    """Shows each block."""
    return session.transform(None, lambda block: None)


def count(session: clew.Session) -> clew.Transformer:
    """Has each block counted by compiled C."""
    code = session.compile(COUNTER)

    def change(block: CodeBlock) -> None:
        block[0].call(code, "count")

    return session.transform(None, change)


def medians(command: tuple[str, ...], rounds: int) -> dict[str, tuple[float, int]]:
    """Of each kind: seconds and blocks."""
    found: dict[str, list[tuple[float, int]]] = {}
    for _ in range(rounds):
        for prepare in (nothing, keep, count):
            found.setdefault(prepare.__name__, []).append(run(command, prepare))
    return {name: (statistics.median(one[0] for one in runs), runs[0][1]) for name, runs in found.items()}


def show(short: Workload, long: Workload, rounds: int) -> float:
    """Measure and print a program's line; the counter's ratio."""
    few, many = medians(short.command, rounds), medians(long.command, rounds)
    grown = {name: many[name][0] - few[name][0] for name in few}
    (alone, _), (kept, n_blocks) = few["nothing"], few["keep"]
    each = 1e6 * (kept - alone) / max(n_blocks, 1)
    ratio = grown["count"] / grown["nothing"]
    print(
        f"{short.name:14} {n_blocks:8,} blocks shown, {each:6.1f} us each; "
        f"counts {grown['nothing']:6.2f} s, kept {grown['keep']:6.2f} s, in C {grown['count']:6.2f} s: {ratio:.2f}",
        flush=True,
    )
    return ratio


def main(arguments: list[str]) -> int:
    """Measure and print; the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=USUAL, metavar="NAME", help="names of workloads")
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args(arguments)
    sizes = [{one.name: one for one in load_workloads([size], list(chosen.only))} for size in ("short", "long")]
    ratios = [show(sizes[0][name], sizes[1][name], chosen.rounds) for name in chosen.only if name in sizes[1]]
    print(f"a counter in C to counts: {statistics.geometric_mean(ratios):.2f} (geometric mean)")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
