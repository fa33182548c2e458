"""Runs the benchmarks: every program natively, under each mode of `clew record` and under peers, in interleaved rounds.

    python -m bench.run                      all programs, long and short, five rounds; peers too
    python -m bench.run --quick              the short ones, three rounds, no peers
    python -m bench.run --only gzip,fib      some programs
    python -m bench.run --peers callgrind    some peers; frida, qbdi and valgrind mean all of each

A ratio is (CPU time of target and controller, less that of recording `true`) / (CPU time of the native run); every
output and exit status is compared with the native run's. Prints tables and writes bench/results/LABEL.json and .svg.
Exit status 1 when clew went wrong; what peers do wrong is shown only.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from bench.engine import measure_starts, measure_translation
from bench.machine import describe_machine, read_revision
from bench.peers.finding import FAMILIES, find_peers
from bench.plot import draw
from bench.rounds import Plan, iter_rounds
from bench.summary import SIZES, summarize, summarize_groups
from bench.tables import format_engine, format_peers, format_ratios
from bench.tools import MODES, ROOT, USUAL_MODES, make_native, make_recorder
from bench.workloads import load_workloads, make_true

RESULTS = Path(__file__).resolve().parent / "results"

_PEER_ROUNDS = {"start": 3, "short": 3, "long": 1}
_STARTS_PER_ROUND = 4


def parse_arguments(words: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.run", description="CPU time under clew and its peers, as ratios to native."
    )
    parser.add_argument("--quick", action="store_true", help="short programs only, three rounds, no peers")
    parser.add_argument("--rounds", type=int, help="default 5, with --quick 3")
    parser.add_argument("--only", default="", metavar="NAMES", help="comma-separated programs")
    parser.add_argument("--sizes", default="", metavar="SIZES", help="of long, short, start; comma-separated")
    parser.add_argument(
        "--modes", default=",".join(USUAL_MODES), metavar="MODES", help="comma-separated; default %(default)s"
    )
    parser.add_argument(
        "--peers",
        metavar="NAMES",
        help=f"comma-separated tools or any of {', '.join(FAMILIES)}; all, none; default all, with --quick none",
    )
    parser.add_argument("--peer-rounds", type=int, help="rounds that peers take part in; default 3, of long programs 1")
    parser.add_argument(
        "--limit", type=float, default=60.0, metavar="RATIO", help="runs slower than that are cut off; default 60"
    )
    parser.add_argument("--label", default="", help="name of the result; default: date and time")
    return parser.parse_args(words)


def split(text: str) -> list[str]:
    return [word for word in text.split(",") if word]


def make_plan(arguments: argparse.Namespace) -> Plan:
    rounds = arguments.rounds or (3 if arguments.quick else 5)
    peer_rounds = {size: arguments.peer_rounds or count for size, count in _PEER_ROUNDS.items()}
    return Plan(rounds=rounds, peer_rounds=peer_rounds, limit_ratio=arguments.limit)


def measure_all(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """After each round the whole result until then, as its JSON holds it."""
    sizes = split(arguments.sizes) or (["start", "short"] if arguments.quick else list(SIZES))
    plan = make_plan(arguments)
    base = make_true()
    wanted = arguments.peers or ("none" if arguments.quick else "all")
    peers = [] if wanted == "none" else find_peers([] if wanted == "all" else split(wanted), base.command)
    tools = [*(make_recorder(mode) for mode in split(arguments.modes)), *peers]
    workloads = sorted(load_workloads(sizes, split(arguments.only)), key=lambda found: SIZES.index(found.size))
    with_engine = "start" in sizes and not arguments.only
    once = {
        "started": time.strftime("%Y-%m-%dT%H-%M-%S"),
        "revision": read_revision(),
        "machine": describe_machine(peers),
        "starts": measure_starts(plan.rounds * _STARTS_PER_ROUND) if with_engine else {},
        "translation": measure_translation(plan.rounds) if with_engine else [],
    }
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as folder:
        rounds = iter_rounds(base, workloads, [make_native(), *tools], plan, Path(folder))
        for n_rounds, runs in enumerate(rounds, 1):
            rows = summarize(base, workloads, tools, runs, plan.limit_ratio)
            yield {
                **once,
                "rounds": n_rounds,
                "peer_rounds": {size: min(most, n_rounds) for size, most in plan.peer_rounds.items()} if peers else {},
                "rows": rows,
                "geometric_means": summarize_groups(rows, tools),
            }


def print_result(result: dict[str, Any]) -> None:
    """Tables on stdout."""
    rows, groups = result["rows"], result["geometric_means"]
    names = list(rows[0]["modes"])
    print("\n".join(format_ratios(rows, groups, [name for name in names if name in MODES])))
    if any(name not in MODES for name in names):
        print("\n" + "\n".join(format_peers(rows, groups, names)))
    if result["starts"] or result["translation"]:
        print("\n" + "\n".join(format_engine(result["starts"], result["translation"])))


def report_wrong(result: dict[str, Any]) -> bool:
    """Say on stderr what went wrong, and with what last words; whether any of it is clew's."""
    wrong = False
    for row in result["rows"]:
        for name, found in row["modes"].items():
            if not found["output_right"]:
                wrong = wrong or name in MODES
                said = f": {found['said']}" if found.get("said") else ""
                print(f"{name} {row['name']} {row['size']}: {found['failure']}{said}", file=sys.stderr)
    return wrong


def main(words: list[str]) -> int:
    arguments = parse_arguments(words)
    RESULTS.mkdir(exist_ok=True)
    result: dict[str, Any] = {}
    for result in measure_all(arguments):
        # After each round: what takes hours is not to be lost.
        target = RESULTS / f"{arguments.label or result['started']}.json"
        target.write_text(json.dumps(result, indent=1) + "\n")
        picture = target.with_suffix(".svg")
        picture.write_text(draw(result))
        print(f"wrote {target.relative_to(ROOT)} and {picture.name}", file=sys.stderr, flush=True)
    print_result(result)
    return 1 if report_wrong(result) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
