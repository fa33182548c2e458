"""Rounds of runs: in each, every program runs natively and then under each tool, so that noise hits all alike.

Runs on the machine that measures. Decides how long a run may take and which runs are spared; knows no statistics but
medians.
"""

from __future__ import annotations

import shutil
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from bench.measure import Limit, Measurement, measure
from bench.tools import NATIVE_NAME, Tool
from bench.workloads import Workload

_NATIVE_LIMIT = Limit(600.0, 600.0)
_START_LIMIT = Limit(60.0, 120.0)
_LEAST_LIMIT_SECONDS = 3.0


@dataclass(frozen=True)
class Plan:
    """How often, and how long at most. `limit_ratio`: a run that needs that much more than native is cut off."""

    rounds: int
    peer_rounds: dict[str, int]  # by size; peers that follow slowly would make long rounds endless
    limit_ratio: float = 60.0


@dataclass
class Runs:
    """Every measurement by (workload's key, tool's name); what was not run at all, with the key of what tells why."""

    measured: dict[tuple[str, str], list[Measurement]] = field(default_factory=lambda: defaultdict(list))
    spared: dict[tuple[str, str], str] = field(default_factory=dict)


def run_once(workload: Workload, tool: Tool, folder: Path, limit: Limit | None = None) -> Measurement:
    """One run under a tool, in a folder of its own that is removed."""
    own = folder / "run"
    own.mkdir()
    try:
        environment = {**tool.environment, "TMPDIR": str(own)}
        measured = measure(tool.wrap(workload.command, own), environment, workload.stdin, limit)
        # A run that went wrong may have left nothing, or half of it.
        with suppress(OSError, ValueError, KeyError):
            measured = replace(measured, counted=tool.read_counted(own))
    finally:
        shutil.rmtree(own, ignore_errors=True)
    return measured


def iter_rounds(
    base: Workload, workloads: Sequence[Workload], tools: Sequence[Tool], plan: Plan, folder: Path
) -> Iterator[Runs]:
    """All rounds; after each, all runs until then. `base` does nothing; `tools` begin with the native one."""
    runs = Runs()
    # `base` comes often: its median is taken off everything else, so its noise would be in every ratio.
    turns = [turn for index, other in enumerate(workloads) for turn in ((base, other) if index % 3 == 0 else (other,))]
    for round_index in range(plan.rounds):
        start = time.monotonic()
        for workload in turns or [base]:
            for tool in tools:
                if tool.is_peer and (round_index >= _peer_rounds(workload, plan) or _is_spared(workload, tool, runs)):
                    continue
                _tell(f"round {round_index + 1}/{plan.rounds} {workload.key} {tool.name}")
                measured = run_once(workload, tool, folder, find_limit(workload, tool, base, runs, plan))
                runs.measured[workload.key, tool.name].append(measured)
        _tell("")
        seconds = time.monotonic() - start
        print(f"round {round_index + 1} of {plan.rounds} took {seconds:.0f} s", file=sys.stderr, flush=True)
        yield runs


def find_limit(workload: Workload, tool: Tool, base: Workload, runs: Runs, plan: Plan) -> Limit:
    """Where a run is cut off: just past the plan's ratio, and long past it for what does nothing."""
    if tool.name == NATIVE_NAME:
        return _NATIVE_LIMIT
    starts = runs.measured.get((base.key, tool.name))
    if workload.key == base.key or not starts:
        return _START_LIMIT
    native = statistics.median(run.cpu_seconds for run in runs.measured[workload.key, NATIVE_NAME])
    start = statistics.median(run.cpu_seconds for run in starts)
    # A little more, as the native runs yet to come may be slower; and what only starts may take its time.
    cpu_seconds = max(plan.limit_ratio * native * 1.15, _LEAST_LIMIT_SECONDS) + start
    return Limit(cpu_seconds, wall_seconds=4 * cpu_seconds + 30)


def _peer_rounds(workload: Workload, plan: Plan) -> int:
    return plan.peer_rounds.get(workload.size, plan.rounds)


def _is_spared(workload: Workload, tool: Tool, runs: Runs) -> bool:
    """Whether a peer was cut off already: by this program, which tells all, or by the same one when short."""
    if any(run.was_cut for run in runs.measured.get((workload.key, tool.name), ())):
        return True
    short_key = f"{workload.name}-short"
    short = runs.measured.get((short_key, tool.name), ())
    if workload.size == "long" and any(run.was_cut for run in short):
        runs.spared[workload.key, tool.name] = short_key
        return True
    return False


def _tell(text: str) -> None:
    if sys.stderr.isatty():
        print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
