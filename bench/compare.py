"""Two results side by side: `python -m bench.compare [OLD.json NEW.json]`, by default the baseline and the latest.

What they have in common of clew's own figures: ratios, and on one kind of machine times and nanoseconds as well.
Exit status 1 when one has grown by more than its own spread and a tenth.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from bench.baseline import BASELINES, find_baseline, find_latest
from bench.tools import MODES

Key = tuple[str, str, str]
Figures = dict[Key, dict[str, float]]

_SAME_MACHINE = ("processor", "processors")


def find_ratios(result: dict[str, Any]) -> Figures:
    """Spreads of clew's ratios, by (program, size, mode)."""
    return {
        (row["name"], row["size"], mode): found["ratio"]
        for row in result["rows"]
        for mode, found in row["modes"].items()
        if mode in MODES and "ratio" in found
    }


def find_times(result: dict[str, Any]) -> Figures:
    """Spreads of what takes clew time, whatever native takes: by (what, unit, mode)."""
    found: Figures = {}
    for what, figure in result.get("starts", {}).get("counts", {}).items():
        name, _, unit = what.rpartition("_")
        found[name, unit, "counts"] = figure
    for row in result.get("translation", []):
        found[f"translating {row['name']}", "ns", "counts"] = row["ns_per_instruction"]
    return found


def is_same_machine(old: dict[str, Any], new: dict[str, Any]) -> bool:
    """Whether times of both mean the same."""
    return all(old["machine"].get(key) == new["machine"].get(key) for key in _SAME_MACHINE)


def find_figures(old: dict[str, Any], new: dict[str, Any]) -> tuple[Figures, Figures]:
    """What of both can be compared."""
    if is_same_machine(old, new):
        return find_ratios(old) | find_times(old), find_ratios(new) | find_times(new)
    return find_ratios(old), find_ratios(new)


def is_worse(old: dict[str, float], new: dict[str, float]) -> bool:
    """Whether the median grew by a tenth and even the best new round is worse than the worst old one."""
    return new["median"] > old["median"] * 1.1 and new["least"] > old["greatest"]


def format_comparison(names: tuple[str, str], old: Figures, new: Figures) -> list[str]:
    """A Markdown table of the figures that both have."""
    lines = [f"| program | size | mode | {names[0]} | {names[1]} | change |", "| --- | --- | --- | --- | --- | --- |"]
    for key in sorted(old.keys() & new.keys()):
        before, after = old[key], new[key]
        mark = " worse" if is_worse(before, after) else ""
        change = after["median"] / before["median"] - 1 if before["median"] else 0.0
        lines.append(f"| {' | '.join(key)} | {before['median']:.2f} | {after['median']:.2f} | {change:+.0%}{mark} |")
    return lines


def choose(words: list[str]) -> tuple[Path, Path]:
    """The two results to compare. SystemExit with a message when there are not two."""
    if len(words) == 2:
        return Path(words[0]), Path(words[1])
    if words:
        raise SystemExit("usage: python -m bench.compare [OLD.json NEW.json]; without them the baseline and the latest")
    latest = find_latest()
    baseline = find_baseline(json.loads(latest.read_text()))
    if not baseline.exists():
        known = ", ".join(sorted(path.stem for path in BASELINES.glob("*.json")))
        raise SystemExit(f"no baseline of this processor, {baseline.stem}; there are: {known}")
    return baseline, latest


def main(words: list[str]) -> int:
    paths = choose(words)
    old_result, new_result = (json.loads(path.read_text()) for path in paths)
    if not is_same_machine(old_result, new_result):
        print("not the same kind of machine: only ratios are compared", file=sys.stderr)
    old, new = find_figures(old_result, new_result)
    print("\n".join(format_comparison((paths[0].stem, paths[1].stem), old, new)))
    return 1 if any(is_worse(old[key], new[key]) for key in old.keys() & new.keys()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
