"""What a result says of the machine and the sources that it was measured on; no name or path of either.

Runs on the machine that measures.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.tools import ROOT, Tool


def describe_machine(peers: Sequence[Tool]) -> dict[str, Any]:
    """Processor, number of processors, kernel, Python, and versions of the peers by name."""
    return {
        "processor": _read_processor(),
        "processors": os.cpu_count(),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "peers": {tool.name: tool.version for tool in peers},
    }


def _read_processor() -> str:
    """Its name, with family and model: different kinds may go by one name, on virtual machines above all."""
    lines = Path("/proc/cpuinfo").read_text().split("\n\n", maxsplit=1)[0].splitlines()
    facts = {key.strip(): value.strip() for key, _, value in (line.partition(":") for line in lines)}
    name = facts.get("model name", "")
    if "cpu family" not in facts:
        return name
    return f"{name}, family {facts['cpu family']} model {facts.get('model', '?')}"


def read_revision() -> str:
    """Of this repository, as `git describe` says it; empty outside of git."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    return done.stdout.strip()
