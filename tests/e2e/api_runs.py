"""Runs `clew api`, and reads what it tells."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.e2e import runs


def run_clew(*arguments: str | Path) -> subprocess.CompletedProcess[bytes]:
    """`clew api` with some arguments, which has to succeed."""
    command = [sys.executable, "-m", "clew", "api", *map(str, arguments)]
    environ = {**runs.environment(), "PYTHONPATH": str(runs.ROOT / "src")}
    return subprocess.run(command, env=environ, capture_output=True, check=True, timeout=120)


def told_lines(path: Path) -> list[str]:
    """Lines without threads, times and addresses."""
    lines = (re.sub(r"^\d+ [\d.]+ | <[\d.]+>$", "", line) for line in path.read_text().splitlines())
    return [re.sub(r"0x[0-9a-f]{6,}", "SHELF", line) for line in lines]
