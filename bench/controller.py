"""What the controller costs where there is much for it to do: short processes, signals, short threads.

    python -m bench.controller                     2,000 processes, a configure script, 300,000 signals, 5,000 threads
    python -m bench.controller --scale 0.1         a tenth of them
    python -m bench.controller --only processes    some of them
    python -m bench.controller --modes counts,full other modes

Each program runs natively and under each mode of `clew record`, in turn. Prints medians of CPU time of target and
controller, divided into the target's, the controller's while it runs, and what came after (writing the trace), with
milliseconds for each process, signal or thread, and the most memory that the controller or a process of the target's
had. Exit status 1 when an output or a status was another one than natively.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bench.measure import Limit, Measurement, measure
from bench.run import split
from bench.tables import format_cells
from bench.tools import MODES, Tool, make_native, make_recorder
from bench.workloads import compile_program

_LIMIT = Limit(600.0, 600.0)
_COLUMNS = ("program", "under", "CPU s", "target s", "while it runs s", "after s", "ms each", "ratio", "MiB")

_PROCESSES = "i=0; while [ $i -lt $1 ]; do /bin/true; i=$((i+1)); done"
_CONFIGURE = """
i=0
while [ $i -lt $1 ]; do
    name=$(uname -s | tr A-Z a-z)
    echo "$name" | sed s/linux/system/ | grep -c system
    expr $i + 1
    basename /usr/lib/x86_64
    cat /dev/null
    i=$((i+1))
done
"""
_CONFIGURE_PROCESSES = 7
"""In each turn."""


@dataclass(frozen=True)
class _Work:
    """A command whose last argument is `count` divided by `per_turn`; `count` is what its cost is divided by."""

    name: str
    command: tuple[str, ...]
    count: int
    per_turn: int = 1

    def scaled(self, scale: float) -> tuple[list[str], int]:
        turns = max(int(self.count * scale) // self.per_turn, 1)
        return [*self.command, str(turns)], turns * self.per_turn


def _make_work() -> list[_Work]:
    return [
        _Work("processes", ("sh", "-c", _PROCESSES, "sh"), 2000),
        _Work("configure", ("sh", "-c", _CONFIGURE, "sh"), 19 * _CONFIGURE_PROCESSES, _CONFIGURE_PROCESSES),
        _Work("signals", (compile_program("signals"),), 300_000),
        _Work("threads", (compile_program("short_threads"),), 5000),
    ]


@dataclass(frozen=True)
class _Run:
    measured: Measurement
    target_seconds: float
    controller_seconds: float


def _run(tool: Tool, command: Sequence[str]) -> _Run:
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as name:
        folder = Path(name)
        measured = measure(tool.wrap(command, folder), tool.environment, limit=_LIMIT)
        manifest = next(folder.glob("**/manifest.json"), None)
        cpu = json.loads(manifest.read_text())["cpu"] if manifest is not None else {}
    return _Run(measured, cpu.get("target_seconds", measured.cpu_seconds), cpu.get("controller_seconds", 0.0))


def _describe(work: _Work, tool: Tool, runs: list[_Run], count: int, native: float) -> list[str]:
    whole = statistics.median(run.measured.cpu_seconds for run in runs)
    target = statistics.median(run.target_seconds for run in runs)
    controller = statistics.median(run.controller_seconds for run in runs)
    memory = max(run.measured.max_rss_bytes for run in runs)
    seconds = (whole, target, controller, max(whole - target - controller, 0.0))
    rest = (whole * 1000 / count, whole / native if native else 0.0, memory / (1 << 20))
    return [work.name, tool.name, *(f"{cell:.2f}" for cell in seconds), *(f"{cell:.3g}" for cell in rest)]


def main() -> int:
    """Measure and print; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.controller", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--only", type=split, default=())
    parser.add_argument("--modes", type=split, default=("counts",))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    unknown = set(options.modes) - set(MODES)
    if unknown:
        parser.error(f"no such mode: {', '.join(sorted(unknown))}")
    tools = [make_native(), *(make_recorder(mode) for mode in options.modes)]
    is_alike = True
    print(format_cells(_COLUMNS))
    print(format_cells(["---"] * len(_COLUMNS)))
    for work in _make_work():
        if options.only and work.name not in options.only:
            continue
        command, count = work.scaled(options.scale)
        runs: dict[str, list[_Run]] = {tool.name: [] for tool in tools}
        for _ in range(options.rounds):
            for tool in tools:
                runs[tool.name].append(_run(tool, command))
        native = statistics.median(run.measured.cpu_seconds for run in runs[tools[0].name])
        for tool in tools:
            print(format_cells(_describe(work, tool, runs[tool.name], count, native)), flush=True)
        outcomes = {(run.measured.status, run.measured.stdout_digest) for found in runs.values() for run in found}
        is_alike = is_alike and len(outcomes) == 1
    return 0 if is_alike else 1


if __name__ == "__main__":
    sys.exit(main())
