"""What the program of tests/programs/sessions/called.c prints, as it is and where one of its functions is changed."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

TURNS = 50


def output_of(called: Path, turns: int = TURNS, n_threads: int = 1) -> bytes:
    return subprocess.run([called, str(turns), str(n_threads)], stdout=subprocess.PIPE, check=False).stdout


def total_with(add: Callable[[int, int], int], turns: int = TURNS) -> int:
    """What the program prints where `add` does something else: it is called with (n, 1), (2, n) and (n, 3)."""
    rest = sum(int(1.5 * 2 + n) + 28 + n + len("/odd" if n % 2 else "/even") + n + 200 + 3 for n in range(turns))
    return rest + sum(add(n, 1) + add(2, n) + add(n, 3) for n in range(turns))
