"""Makes the result that later ones are compared with: `python -m bench.baseline [RESULT.json]`, by default the latest.

Writes bench/baselines/PROCESSOR.json, which is committed: what is fast on one is not on another. It has ratios as
median, least and greatest, seconds as medians, the machine; no name and no path of that. Pure but for reading and
writing the two files.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).resolve().parent
RESULTS = FOLDER / "results"
BASELINES = FOLDER / "baselines"

# What says nothing in the name of a processor.
_NOISE = re.compile(r"\((?:r|tm)\)|\b(?:processor|cpu)\b| *@.*|[^a-z0-9]+", re.IGNORECASE)
# An absolute path, wherever in a word it starts; what is kept is its last name.
_PATH = re.compile(r"(?<![\w.])/(?:[^\s/]+/)*([^\s/]+)/?")
_KEPT_OF_MODE = ("ratio", "failure", "at_least", "counted", "share", "output_right")


def find_latest() -> Path:
    """The newest result. SystemExit, with a message, where there is none."""
    found = sorted(RESULTS.glob("*.json"), key=lambda path: path.stat().st_mtime_ns)
    if not found:
        raise SystemExit("no result in bench/results: run `make bench` first")
    return found[-1]


def find_baseline(result: dict[str, Any]) -> Path:
    """The baseline of the processor that `result` is of; it may not be there."""
    words = _NOISE.sub(" ", result["machine"]["processor"]).lower().split()
    return BASELINES / f"{'-'.join(words) or 'unknown'}.json"


def shorten_command(command: list[str]) -> list[str]:
    """Every path in it as its last name."""
    return [_PATH.sub(r"\1", word) for word in command]


def shorten(result: dict[str, Any]) -> dict[str, Any]:
    """What of a result is worth keeping for years."""
    return {
        **{key: result[key] for key in ("started", "revision", "machine", "rounds", "peer_rounds")},
        "rows": [_shorten_row(row) for row in result["rows"]],
        "geometric_means": result["geometric_means"],
        "starts": result["starts"],
        "translation": result["translation"],
    }


def _shorten_row(row: dict[str, Any]) -> dict[str, Any]:
    modes = {}
    for name, found in row["modes"].items():
        modes[name] = {key: found[key] for key in _KEPT_OF_MODE if key in found}
        if "cpu_seconds" in found:
            modes[name]["cpu_seconds"] = found["cpu_seconds"]["median"]
    return {
        "name": row["name"],
        "size": row["size"],
        "command": shorten_command(row["command"]),
        "native_cpu_seconds": row["native_cpu_seconds"]["median"],
        "modes": modes,
    }


def main(words: list[str]) -> int:
    source = Path(words[0]) if words else find_latest()
    result = json.loads(source.read_text())
    baseline = find_baseline(result)
    baseline.write_text(json.dumps(shorten(result), indent=1) + "\n")
    print(f"wrote {baseline.name} of {source.name}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
