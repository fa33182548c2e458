"""Runs are measured with all that they start, and end when they should."""

from __future__ import annotations

import os
import subprocess
import sys

# In a process of its own: who measures may have no other children, and pytest's workers may.
_SCRIPT = """
import os, sys, time
from bench.measure import Limit, measure
found = measure(sys.argv[3:], dict(os.environ), limit=Limit(float(sys.argv[1]), float(sys.argv[2])))
try:
    os.waitpid(-1, os.WNOHANG)
    left = True
except ChildProcessError:
    left = False
print(found.status, found.was_cut, left, found.cpu_seconds >= 0.2, found.wall_seconds < 60, found.said)
"""
_BURN = "import time\nwhile time.process_time() < 0.2: pass"


def measured(cpu_seconds: float, wall_seconds: float, *command: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT, str(cpu_seconds), str(wall_seconds), *command],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    return done.stdout.split()


def test_a_run_that_takes_too_long_is_cut_off_with_what_it_started() -> None:
    assert measured(60, 0.2, "sh", "-c", "setsid sleep 1000 & sleep 1000")[:5] == [
        "137",
        "True",
        "False",
        "False",
        "True",
    ]


def test_a_run_that_needs_too_much_cpu_time_is_cut_off_though_its_child_has_it() -> None:
    forever = "while True: pass"
    found = measured(0.5, 100, "sh", "-c", '"$0" -c "$1" | cat', sys.executable, forever)
    assert found == ["137", "True", "False", "True", "True"]


def test_what_outlives_the_command_is_ended() -> None:
    assert measured(60, 60, "sh", "-c", "setsid sleep 1000 & exit 3")[:5] == ["3", "False", "False", "False", "True"]


def test_children_that_nobody_waited_for_are_counted() -> None:
    # The burning process is nobody's in its pipe; cat ends when it does.
    found = measured(60, 60, "sh", "-c", '("$0" -c "$1" &) | cat', sys.executable, _BURN)
    assert found == ["0", "False", "False", "True", "True"]


def test_the_last_words_are_kept() -> None:
    assert measured(60, 60, "sh", "-c", "echo one >&2; echo last words >&2; echo >&2")[5:] == ["last", "words"]
