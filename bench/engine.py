"""What a ratio does not show: time to the target's first instruction, and instructions translated per second.

Runs on the machine that measures, and needs nothing of clew but its command line and its trace's manifest.
"""

from __future__ import annotations

import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.counted import read_target_seconds
from bench.measure import Limit, measure
from bench.ratios import spread
from bench.tools import Tool, make_native, make_recorder
from bench.workloads import Workload, compile_program, make_translation_workloads, make_true

_LIMIT_SECONDS = 120.0
_LIMIT = Limit(_LIMIT_SECONDS, _LIMIT_SECONDS)
_TRANSLATED = re.compile(r"instructions_translated +(\d+)")


def measure_starts(times: int) -> dict[str, dict[str, dict[str, float]]]:
    """Milliseconds, as spreads, by tool: `first_instruction` of wall time, `true` of wall and of CPU time.

    Wall time from just before the command is started to the first instruction of a program without libc.
    """
    program = (compile_program("first_instruction"),)
    tools = (make_native(), make_recorder("counts"))
    first: dict[str, list[float]] = {tool.name: [] for tool in tools}
    wall: dict[str, list[float]] = {tool.name: [] for tool in tools}
    cpu: dict[str, list[float]] = {tool.name: [] for tool in tools}
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as name:
        for index in range(times):
            for tool in tools:
                folder = Path(name, f"{tool.name}-{index}")
                folder.mkdir()
                first[tool.name].append(_measure_first_instruction(tool, program, folder))
                folder = Path(name, f"{tool.name}-{index}-true")
                folder.mkdir()
                command = tool.wrap(make_true().command, folder)
                measured = measure(command, tool.environment, limit=_LIMIT)
                wall[tool.name].append(measured.wall_seconds * 1000)
                cpu[tool.name].append(measured.cpu_seconds * 1000)
    return {
        tool.name: {
            "first_instruction_ms": spread(first[tool.name]).to_json(),
            "true_wall_ms": spread(wall[tool.name]).to_json(),
            "true_cpu_ms": spread(cpu[tool.name]).to_json(),
        }
        for tool in tools
    }


def _measure_first_instruction(tool: Tool, program: Sequence[str], folder: Path) -> float:
    start_ns = time.monotonic_ns()
    done = subprocess.run(
        tool.wrap(program, folder), env=tool.environment, stdout=subprocess.PIPE, check=True, timeout=_LIMIT_SECONDS
    )
    seconds, nanoseconds = struct.unpack("=qq", done.stdout)
    return float(seconds * 1_000_000_000 + nanoseconds - start_ns) / 1e6


def measure_translation(times: int) -> list[dict[str, Any]]:
    """For each program of much code: how many instructions were translated, and nanoseconds of CPU time for each.

    The time is the target's under `clew record --mode counts`, less the median of the native runs; so what the
    translated code needs more than the program's own is in it.
    """
    native = make_native()
    rows = []
    for workload in make_translation_workloads():
        native_seconds = []
        recorded: list[tuple[int, float]] = []
        with tempfile.TemporaryDirectory(prefix="clew-bench-") as name:
            for index in range(times):
                measured = measure(workload.command, native.environment, limit=_LIMIT)
                native_seconds.append(measured.cpu_seconds)
                recorded.append(_record_translating(workload, Path(name, f"{index}.clew")))
        median = statistics.median(native_seconds)
        rows.append(
            {
                "name": workload.name,
                "instructions_translated": recorded[0][0],
                "native_seconds": spread(native_seconds).to_json(),
                "target_seconds": spread([seconds for _, seconds in recorded]).to_json(),
                "ns_per_instruction": spread(
                    [find_ns_per_instruction(count, seconds, median) for count, seconds in recorded]
                ).to_json(),
            }
        )
    return rows


def find_ns_per_instruction(instructions: int, target_seconds: float, native_seconds: float) -> float:
    """Nanoseconds above native for each of at least one instruction translated; at least 0."""
    return max(target_seconds - native_seconds, 0.0) * 1e9 / instructions


def _record_translating(workload: Workload, trace: Path) -> tuple[int, float]:
    """Instructions translated, and the target's CPU seconds."""
    tool = make_recorder("counts")
    command = [sys.executable, "-m", "clew", "record", "-q", "--stats", "-o", str(trace), "--", *workload.command]
    done = subprocess.run(
        command,
        env=tool.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        check=True,
        timeout=_LIMIT_SECONDS,
    )
    found = _TRANSLATED.search(done.stderr)
    if found is None:
        raise ValueError("clew record --stats says nothing of instructions_translated")
    return int(found[1]), read_target_seconds(trace)
