"""What calls cost that are captured: in the program, by turns natively, followed and captured.

Run as `python -m bench.api_calls`. Processor time of the program, median of rounds; time by the clock beside strace and
perf trace, where there are any; and of `clew api` as a whole for a start of the interpreter.
"""

from __future__ import annotations

import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import clew
from bench.workloads import compile_program
from clew.api.reading import load_built_in
from clew.sessions.api_calls import ApiLog
from clew.sessions.api_counts import ApiCounts
from clew.sessions.api_functions import FunctionChoice, parse_pattern

ROUNDS = 5
TURNS = {"getppid": 1_000_000, "open": 100_000, "malloc": 1_000_000}
CALLS = {"getppid": 1, "open": 2, "malloc": 2}
"""How many calls a turn is."""
STARTS = {
    "start of python3": [sys.executable, "-c", "pass"],
    "100 programs of a shell": ["sh", "-c", "i=0; while [ $i -lt 100 ]; do /bin/true; i=$((i+1)); done"],
}
HOWS = ("natively", "followed", "added up", "told one by one")


def turn_ns(program: str, what: str, how: str) -> float:
    """Nanoseconds of a turn."""
    words = [program, what, str(TURNS[what])]
    if how == "natively":
        return float(subprocess.run(words, capture_output=True, check=True).stdout)
    descriptions = load_built_in()
    with clew.spawn(words, mode="coverage", stdout=subprocess.PIPE) as session:
        log = None
        if what == "malloc" and how == "added up":
            session.aggregate("malloc", value="arg1")
            session.aggregate("free")
        elif how == "added up":
            ApiCounts(session, descriptions)
        elif how == "told one by one":
            names = ["libc*:malloc", "libc*:free"] if what == "malloc" else []
            choice = FunctionChoice([parse_pattern(name) for name in names], descriptions)
            log = ApiLog(session, descriptions, None if names else (), functions=choice)
        session.resume()
        while True:
            try:
                session.wait(0.05)
                break
            except TimeoutError:
                if log is not None:
                    log.read()
        assert session.stdout is not None
        return float(session.stdout.read())


def slope_ns(command: list[str], program: str, what: str, turns: int) -> float:
    """Nanoseconds of a turn by the clock, with all that the command does beside: without its start."""
    spent = []
    for n in (turns, 3 * turns):
        before = time.monotonic()
        subprocess.run([*command, program, what, str(n)], capture_output=True, check=True)
        spent.append(time.monotonic() - before)
    return (spent[1] - spent[0]) / (2 * turns) * 1e9


def compare_commands(program: str, what: str, folder: str) -> str:
    """What other tools take for the same, and `clew api` as a whole."""
    clew_api = [sys.executable, "-m", "clew", "api", "-o", f"{folder}/told"]
    commands = {
        "natively": ["env"],
        "clew api -c": [*clew_api, "-c", "--"],
        "clew api": [*clew_api, "--"],
        "strace -f": ["strace", "-f", "-o", f"{folder}/told"],
        "perf trace": ["perf", "trace", "-o", f"{folder}/told", "--"],
    }
    times: dict[str, list[float]] = {}
    for _ in range(3):
        for name, command in commands.items():
            if shutil.which(command[0]):
                # Those whose start takes far longer than a turn need many of them.
                turns = TURNS[what] if name in ("natively", "clew api -c") else TURNS[what] // 20
                times.setdefault(name, []).append(slope_ns(command, program, what, turns))
    found = {name: statistics.median(every) for name, every in times.items()}
    return ", ".join(f"{name} {ns:,.0f} ns ({ns / found['natively']:.1f})" for name, ns in found.items())


def cpu_seconds(words: list[str]) -> float:
    """Processor time of a command and its children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(words, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def compare_starts(words: list[str], out: Path) -> str:
    """What a program with many calls at its start takes, clew included: followed, with all calls told, and counted."""
    command = [sys.executable, "-m", "clew"]
    recorded, told, counted = [], [], []
    for number in range(ROUNDS):
        trace = str(out / f"{Path(words[0]).name}-{number}.clew")
        recorded.append(cpu_seconds([*command, "record", "-q", "--mode", "coverage", "-o", trace, "--", *words]))
        told.append(cpu_seconds([*command, "api", "-o", str(out / "told"), "--", *words]))
        counted.append(cpu_seconds([*command, "api", "-c", "-o", str(out / "told"), "--", *words]))
    before, behind, with_counts = map(statistics.median, (recorded, told, counted))
    return (
        f"followed {before:.2f} s, with all calls told {behind:.2f} s ({behind / before:.2f}), "
        f"counted {with_counts:.2f} s ({with_counts / before:.2f})"
    )


def main() -> int:
    """Measure and print; the exit status."""
    program = str(compile_program("api_calls"))
    for what in TURNS:
        times: dict[str, list[float]] = {how: [] for how in HOWS}
        for _ in range(ROUNDS):
            for how in HOWS:
                times[how].append(turn_ns(program, what, how))
        found = {how: statistics.median(times[how]) for how in HOWS}
        told = ", ".join(f"{how} {found[how]:,.0f} ns ({found[how] / found['natively']:.2f})" for how in HOWS)
        more = (found["told one by one"] - found["followed"]) / CALLS[what]
        print(f"{what}: {told}; a call that is told costs {more:,.0f} ns more")
    with tempfile.TemporaryDirectory() as folder:
        for what in ("getppid", "open"):
            print(f"{what}, by the clock, with what is told: {compare_commands(program, what, folder)}")
        for name, words in STARTS.items():
            print(f"{name}: {compare_starts(words, Path(folder))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
