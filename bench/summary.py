"""From runs to rows: what one result says of each program and tool, ready for JSON.

Runs anywhere. Pure: starts nothing, prints nothing. The rows are those of bench/results/LABEL.json:

    {name, size, command, native_cpu_seconds, modes: {TOOL: {cpu_seconds, wall_seconds, ratio, output_right, ...}}}
"""

from __future__ import annotations

import signal
import statistics
from collections.abc import Sequence
from typing import Any

from bench.measure import Measurement
from bench.ratios import geometric_mean, ratios, spread
from bench.rounds import Runs
from bench.tools import NATIVE_NAME, Tool
from bench.workloads import Workload

SIZES = ("start", "short", "long")
# A peer that counted less than this share of what clew did has not done the same work: its ratio is out of its mean.
# Well below one, as peers end their blocks elsewhere, and most come in at main() only.
LEAST_SHARE = 0.5
_WAITING_SHARE = 0.05  # of wall time in CPU time: who needs less until it is cut off waits for something


def summarize(
    base: Workload, workloads: Sequence[Workload], tools: Sequence[Tool], runs: Runs, limit_ratio: float
) -> list[dict[str, Any]]:
    """A row for `base` and for each workload; `tools` without the native one."""
    rows = []
    for workload in (base, *workloads):
        modes = {tool.name: _summarize_tool(base, workload, tool, runs, limit_ratio) for tool in tools}
        if workload.key != base.key:
            add_shares(modes, tools)
        rows.append(
            {
                "name": workload.name,
                "size": workload.size,
                "command": list(workload.command),
                "native_cpu_seconds": spread(_cpu_seconds(runs, workload, NATIVE_NAME)).to_json(),
                "modes": modes,
            }
        )
    return rows


def add_shares(modes: dict[str, Any], tools: Sequence[Tool]) -> None:
    """Give each peer's mode the `share` of what clew counted that it did, where both can be told."""
    reference = modes.get("counts", {}).get("counted", {})
    for tool in tools:
        counted = modes.get(tool.same_code_as or tool.name, {}).get("counted", {})
        for unit in counted.keys() & reference.keys():
            if tool.is_peer and reference[unit]:
                modes[tool.name]["share"] = round(counted[unit] / reference[unit], 4)


def is_same_work(found: dict[str, Any]) -> bool:
    """Whether a mode's ratio is there, and of the same work as clew's."""
    return "ratio" in found and found.get("share", 1.0) >= LEAST_SHARE


def _cpu_seconds(runs: Runs, workload: Workload, name: str) -> list[float]:
    return [run.cpu_seconds for run in runs.measured[workload.key, name]]


def _summarize_tool(base: Workload, workload: Workload, tool: Tool, runs: Runs, limit_ratio: float) -> dict[str, Any]:
    """Seconds, ratio, failure of one tool with one program; nothing but the failure where it was not run."""
    measured = runs.measured.get((workload.key, tool.name), [])
    if not measured:
        return _summarize_spared(base, workload, tool, runs, limit_ratio)
    native = runs.measured[workload.key, NATIVE_NAME]
    seconds = [run.cpu_seconds for run in measured]
    found = {
        "cpu_seconds": spread(seconds).to_json(),
        "wall_seconds": spread([run.wall_seconds for run in measured]).to_json(),
        "cpu_seconds_of_runs": [round(value, 4) for value in seconds],
        "max_rss_bytes": max(run.max_rss_bytes for run in measured),
        "output_right": not describe_wrong(measured, native),
    }
    counted = [run.counted for run in measured if run.counted]
    if counted:
        found["counted"] = {unit: int(statistics.median(run[unit] for run in counted)) for unit in counted[0]}
    found_ratios = _find_ratios(base, workload.key, tool, runs) if workload.key != base.key else []
    failure = describe_wrong(measured, native)
    cut = find_cut(found_ratios, measured)
    if cut:
        failure = describe_cut(cut[0], limit_ratio, cut[1])
        found["at_least"] = round(cut[0], 4)
    if failure:
        found.update(failure=failure, said=next((run.said for run in measured if run.said), ""))
    elif found_ratios:
        found["ratio"] = spread(found_ratios).to_json()
    return found


def _find_ratios(base: Workload, key: str, tool: Tool, runs: Runs) -> list[float]:
    """Of each run of the workload of that key, in order."""
    seconds = [run.cpu_seconds for run in runs.measured[key, tool.name]]
    native_seconds = [run.cpu_seconds for run in runs.measured[key, NATIVE_NAME]]
    return ratios(seconds, native_seconds, statistics.median(_cpu_seconds(runs, base, tool.name)))


def _summarize_spared(base: Workload, workload: Workload, tool: Tool, runs: Runs, limit_ratio: float) -> dict[str, Any]:
    """Of what was not run because a shorter run was cut off: what that one came to."""
    key = runs.spared.get((workload.key, tool.name))
    if key is None:
        return {"output_right": False, "failure": "not run"}
    cut = find_cut(_find_ratios(base, key, tool, runs), runs.measured[key, tool.name])
    if cut is None:
        return {"output_right": False, "failure": "not run"}
    failure = f"{describe_cut(cut[0], limit_ratio, cut[1])} when short"
    return {"output_right": False, "failure": failure, "at_least": round(cut[0], 4)}


def find_cut(found_ratios: Sequence[float], measured: Sequence[Measurement]) -> tuple[float, Measurement] | None:
    """The run that was cut off latest, with its ratio until then; `found_ratios` may be empty."""
    cut = [(ratio, run) for ratio, run in zip(found_ratios, measured, strict=False) if run.was_cut]
    return max(cut, key=lambda pair: pair[0], default=None)


def describe_cut(at_least: float, limit_ratio: float, run: Measurement) -> str:
    """What to say of a run that was cut off when its ratio had come to `at_least`."""
    if run.cpu_seconds < run.wall_seconds * _WAITING_SHARE:
        return "hangs"
    return f"> {min(at_least, limit_ratio):.0f}"


def describe_wrong(measured: Sequence[Measurement], native: Sequence[Measurement]) -> str:
    """How the worst run differs from every native one, and how many do; empty when none does."""
    right = {(run.status, run.stdout_digest) for run in native}
    wrong = [run for run in measured if run.was_cut or (run.status, run.stdout_digest) not in right]
    if not wrong:
        return ""
    worst = max(wrong, key=lambda run: run.status)
    if worst.was_cut:
        text = "hangs"
    elif worst.status in {status for status, _ in right}:
        text = "other output"
    elif worst.status > 128:
        text = describe_signal(worst.status - 128)
    else:
        text = f"status {worst.status}"
    return text if len(wrong) == len(measured) else f"{text}, {len(wrong)} of {len(measured)} times"


def describe_signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def summarize_groups(rows: Sequence[dict[str, Any]], tools: Sequence[Tool]) -> dict[str, dict[str, dict[str, Any]]]:
    """By size and tool: the geometric mean of the median ratios, and of how many programs.

    A wrong output makes clew's mean void. A peer's is over the programs that it can do, which flatters it, so what
    `counts` needs for the same programs stands beside it as `counts_mean`.
    """
    groups: dict[str, dict[str, dict[str, Any]]] = {}
    for size in ("short", "long"):
        chosen = [row["modes"] for row in rows if row["size"] == size]
        for tool in tools:
            done = [modes for modes in chosen if is_same_work(modes[tool.name])]
            if not done or (len(done) < len(chosen) and not tool.is_peer):
                continue
            group = {
                "mean": _mean([modes[tool.name]["ratio"]["median"] for modes in done]),
                "programs": len(done),
                "of": len(chosen),
            }
            if tool.is_peer and all("ratio" in modes.get("counts", {}) for modes in done):
                group["counts_mean"] = _mean([modes["counts"]["ratio"]["median"] for modes in done])
            groups.setdefault(size, {})[tool.name] = group
    return groups


def _mean(values: Sequence[float]) -> float | None:
    mean = geometric_mean(values)
    return None if mean is None else round(mean, 3)
