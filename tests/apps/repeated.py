"""A command run natively once and recorded again and again: the same, every time.

Runs on the machine that tests.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

from tests.e2e import runs

REPEATS = 10
TIMEOUT_SECONDS = 300.0


def expect_same(
    command: runs.Command,
    tmp_path: Path,
    *,
    hide: str = r"(?!)",
    lost: frozenset[str] = frozenset(),
    **how: Any,
) -> list[dict[str, Any]]:
    """Run natively once and recorded often: the same, but for what matches `hide`. The processes of the last time.

    Nothing is lost but `lost`, by the names of the summary.
    """

    def blurred(run: runs.Run) -> tuple[int, bytes, bytes]:
        return run.status, re.sub(hide.encode(), b"*", run.stdout), re.sub(hide.encode(), b"*", run.stderr)

    native = runs.run(command, timeout_seconds=TIMEOUT_SECONDS, **how)
    processes: list[dict[str, Any]] = []
    for number in range(REPEATS):
        trace = tmp_path / f"{number}.clew"
        recorded = runs.record(command, trace, timeout_seconds=TIMEOUT_SECONDS, **how)
        assert blurred(recorded) == blurred(native), f"time {number}"
        processes = runs.read(trace, lost=lost).summary["processes"]
        shutil.rmtree(trace)
    return processes
