"""Fuzzes what reads the memory shared with the target: `python -m tests.fuzz.scribbles --seed N --count M`.

Runs on the machine that tests. What is demanded is tests/e2e/test_hostile.py's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from random import Random

from tests.e2e.test_hostile import build_scribble, check_scribbles


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1, help="the first run's seed; the others follow")
    parser.add_argument("--count", type=int, default=20, help="how many runs")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after this time")
    arguments = parser.parse_args()
    start = time.monotonic()
    n_run = n_failures = 0
    with tempfile.TemporaryDirectory(prefix="clew-fuzz-") as programs:
        scribble = build_scribble(Path(programs))
        for seed in range(arguments.seed, arguments.seed + arguments.count):
            if time.monotonic() - start > arguments.seconds:
                break
            n_run += 1
            n_words = Random(seed).choice((1, 3, 10, 30, 300))
            with tempfile.TemporaryDirectory(prefix="clew-fuzz-") as folder:
                try:
                    check_scribbles(scribble, Path(folder), seed, n_words)
                except (AssertionError, TimeoutError) as error:
                    n_failures += 1
                    print(f"seed {seed}, {n_words} words: {error}", flush=True)
                    print(f"    python -m tests.fuzz.scribbles --count 1 --seed {seed}", flush=True)
    print(f"{n_run} programs that scribble: {n_failures} failures")
    return 1 if n_failures else 0


if __name__ == "__main__":
    sys.exit(main())
