"""Two results side by side: `python -m bench.compare [OLD.json NEW.json]`, by default the two latest.

Exit status 1 when a ratio has grown by more than its own spread and a tenth.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"

Key = tuple[str, str, str]


def read_ratios(path: Path) -> dict[Key, dict[str, float]]:
    """Ratio spreads of one result, by (program, size, mode)."""
    result: dict[str, Any] = json.loads(path.read_text())
    return {
        (row["name"], row["size"], mode): found["ratio"]
        for row in result["rows"]
        for mode, found in row["modes"].items()
        if "ratio" in found
    }


def is_worse(old: dict[str, float], new: dict[str, float]) -> bool:
    """Whether the median grew by a tenth and even the best new round is worse than the worst old one."""
    return new["median"] > old["median"] * 1.1 and new["least"] > old["greatest"]


def choose(words: list[str]) -> tuple[Path, Path]:
    """The two results to compare. SystemExit with a message when there are not two."""
    if len(words) == 2:
        return Path(words[0]), Path(words[1])
    latest = sorted(RESULTS.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)[-2:]
    if words or len(latest) < 2:
        raise SystemExit(
            "usage: python -m bench.compare [OLD.json NEW.json]; without them two results in bench/results"
        )
    return latest[0], latest[1]


def main(words: list[str]) -> int:
    old_path, new_path = choose(words)
    old, new = read_ratios(old_path), read_ratios(new_path)
    print(f"| program | size | mode | {old_path.stem} | {new_path.stem} | change |")
    print("| --- | --- | --- | --- | --- | --- |")
    worse = False
    for key in sorted(old.keys() & new.keys()):
        before, after = old[key], new[key]
        mark = " worse" if is_worse(before, after) else ""
        worse = worse or bool(mark)
        change = after["median"] / before["median"] - 1 if before["median"] else 0.0
        print(f"| {' | '.join(key)} | {before['median']:.2f} | {after['median']:.2f} | {change:+.0%}{mark} |")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
