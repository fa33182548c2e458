"""Runs the benchmarks: every program natively and under each mode of `clew record`, in interleaved rounds.

    python -m bench.run                  all programs, long and short, five rounds
    python -m bench.run --quick          the short ones, three rounds
    python -m bench.run --only gzip,fib  some programs

A ratio is (CPU time of target and controller, less that of recording `true`) / (CPU time of the native run); every
output and exit status is compared with the native run's. Prints a table and writes bench/results/LABEL.json.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from pathlib import Path
from typing import Any

from bench.measure import Measurement, measure
from bench.ratios import geometric_mean, ratios, spread
from bench.workloads import Workload, load_workloads, make_true

ROOT = Path(__file__).resolve().parents[1]
RESULTS = Path(__file__).resolve().parent / "results"
MODES = ("counts", "coverage")
NATIVE = "native"

Runs = dict[tuple[str, str], list[Measurement]]


def parse_arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.run", description="CPU time under clew, as ratios to native."
    )
    parser.add_argument("--quick", action="store_true", help="short programs only, three rounds")
    parser.add_argument("--rounds", type=int, help="default 5, with --quick 3")
    parser.add_argument("--only", default="", metavar="NAMES", help="comma-separated programs")
    parser.add_argument("--sizes", default="", metavar="SIZES", help="of long, short, start; comma-separated")
    parser.add_argument(
        "--modes", default=",".join(MODES), metavar="MODES", help="comma-separated; default %(default)s"
    )
    parser.add_argument("--label", default="", help="name of the result; default: date and time")
    return parser.parse_args(words)


def make_environment() -> dict[str, str]:
    """The same for native and recorded runs."""
    kept = {
        name: os.environ[name]
        for name in ("PATH", "HOME", "TMPDIR", "CLEW_RUNTIME", "CLEW_RELAYOUT")
        if name in os.environ
    }
    return {**kept, "LC_ALL": "C", "PYTHONHASHSEED": "0", "PYTHONPATH": str(ROOT / "src")}


def run_once(workload: Workload, mode: str, environment: dict[str, str], folder: Path) -> Measurement:
    """One run, native or recorded; the trace is removed."""
    if mode == NATIVE:
        return measure(workload.command, environment, workload.stdin)
    trace = folder / "trace.clew"
    recorder = [sys.executable, "-m", "clew", "record", "-q", "--mode", mode, "-o", str(trace), "--"]
    measured = measure([*recorder, *workload.command], environment, workload.stdin)
    shutil.rmtree(trace, ignore_errors=True)
    return measured


def run_rounds(workloads: list[Workload], modes: list[str], rounds: int, folder: Path) -> Runs:
    """All rounds; in each every workload runs natively and then in every mode."""
    environment = make_environment()
    runs: Runs = defaultdict(list)
    # `true` comes often: its median is taken off everything else, so its noise would be in every ratio.
    base, *others = workloads
    workloads = [turn for index, other in enumerate(others) for turn in ((base, other) if index % 3 == 0 else (other,))]
    workloads = workloads or [base]
    for round_number in range(rounds):
        for workload in workloads:
            for mode in (NATIVE, *modes):
                if sys.stderr.isatty():
                    print(f"\r\x1b[Kround {round_number + 1}/{rounds} {workload.key} {mode}", end="", file=sys.stderr)
                runs[workload.key, mode].append(run_once(workload, mode, environment, folder))
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    return runs


def summarize(workloads: list[Workload], modes: list[str], runs: Runs) -> list[dict[str, Any]]:
    """A row for each workload: native seconds, and for each mode seconds, ratio and whether the output was right."""
    base = {mode: spread([run.cpu_seconds for run in runs["true-start", mode]]).median for mode in modes}
    rows = []
    for workload in workloads:
        native = runs[workload.key, NATIVE]
        native_seconds = [run.cpu_seconds for run in native]
        row: dict[str, Any] = {
            "name": workload.name,
            "size": workload.size,
            "command": list(workload.command),
            "native_cpu_seconds": spread(native_seconds).to_json(),
            "modes": {},
        }
        for mode in modes:
            measured = runs[workload.key, mode]
            seconds = [run.cpu_seconds for run in measured]
            right = {(run.status, run.stdout_digest) for run in measured} == {
                (r.status, r.stdout_digest) for r in native
            }
            row["modes"][mode] = {
                "cpu_seconds": spread(seconds).to_json(),
                "wall_seconds": spread([run.wall_seconds for run in measured]).to_json(),
                "max_rss_bytes": max(run.max_rss_bytes for run in measured),
                "output_right": right,
            }
            if workload.name != "true":
                row["modes"][mode]["ratio"] = spread(ratios(seconds, native_seconds, base[mode])).to_json()
        rows.append(row)
    return rows


def summarize_groups(rows: list[dict[str, Any]], modes: list[str]) -> dict[str, dict[str, float | None]]:
    """Geometric means of the median ratios, by size and mode; wrong outputs are left out of none: they make it void."""
    groups: dict[str, dict[str, float | None]] = {}
    for size in ("long", "short"):
        chosen = [row for row in rows if row["size"] == size]
        for mode in modes:
            right = all(row["modes"][mode]["output_right"] for row in chosen)
            mean = geometric_mean(row["modes"][mode]["ratio"]["median"] for row in chosen) if right else None
            groups.setdefault(size, {})[mode] = None if mean is None else round(mean, 3)
    return groups


def print_table(rows: list[dict[str, Any]], groups: dict[str, dict[str, float | None]], modes: list[str]) -> None:
    """A Markdown table: ratios as median (least to greatest)."""
    print("| program | size | native s | " + " | ".join(f"{mode}: ratio (least to greatest)" for mode in modes) + " |")
    print("| --- | --- | --- |" + " --- |" * len(modes))
    for row in rows:
        cells = []
        for mode in modes:
            found = row["modes"][mode]
            wrong = "" if found["output_right"] else " WRONG OUTPUT"
            if "ratio" in found:
                r = found["ratio"]
                cells.append(f"{r['median']:.2f} ({r['least']:.2f} to {r['greatest']:.2f}){wrong}")
            else:
                seconds = found["cpu_seconds"]
                cells.append(f"{seconds['median'] * 1000:.0f} ms of CPU time{wrong}")
        print(
            f"| {row['name']} | {row['size']} | {row['native_cpu_seconds']['median']:.3f} | " + " | ".join(cells) + " |"
        )
    for size, means in groups.items():
        if any(means.values()):
            cells = [f"{means[mode]:.2f}" if means[mode] is not None else "-" for mode in modes]
            print(f"| geometric mean | {size} | | " + " | ".join(cells) + " |")


def describe_machine() -> dict[str, Any]:
    model = ""
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            model = line.partition(":")[2].strip()
            break
    return {
        "processor": model,
        "processors": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
    }


def read_revision() -> str:
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()


def main(words: list[str]) -> int:
    arguments = parse_arguments(words)
    sizes = [s for s in arguments.sizes.split(",") if s] or (
        ["short", "start"] if arguments.quick else ["long", "short", "start"]
    )
    names = [name for name in arguments.only.split(",") if name]
    modes = [mode for mode in arguments.modes.split(",") if mode]
    rounds = arguments.rounds or (3 if arguments.quick else 5)
    workloads = [make_true(), *load_workloads(sizes, names)]
    started = time.strftime("%Y-%m-%dT%H-%M-%S")
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
        runs = run_rounds(workloads, modes, rounds, Path(folder))
    rows = summarize(workloads, modes, runs)
    groups = summarize_groups(rows, modes)
    print_table(rows, groups, modes)
    RESULTS.mkdir(exist_ok=True)
    target = RESULTS / f"{arguments.label or started}.json"
    result = {
        "started": started,
        "revision": read_revision(),
        "machine": describe_machine(),
        "rounds": rounds,
        "rows": rows,
        "geometric_means": groups,
    }
    target.write_text(json.dumps(result, indent=1) + "\n")
    print(f"\nwrote {target.relative_to(ROOT)}", file=sys.stderr)
    return 0 if all(row["modes"][mode]["output_right"] for row in rows for mode in modes) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
