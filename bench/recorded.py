"""Traces of the programs that are measured.

Runs on the machine that measures. Starts `clew record`; reads nothing of what it wrote.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from bench.tools import make_recorder
from bench.workloads import Workload

__all__ = ["record_workload"]

_LIMIT_SECONDS: Final = 600.0


def record_workload(workload: Workload, mode: str, folder: Path) -> Path:
    """The trace of a workload, made in an empty folder. Raises subprocess.SubprocessError."""
    tool = make_recorder(mode)
    command = tool.wrap(workload.command, folder)
    subprocess.run(command, env=tool.environment, stdout=subprocess.DEVNULL, check=True, timeout=_LIMIT_SECONDS)
    return folder / "trace.clew"
