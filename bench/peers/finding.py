"""Which peers this machine has: those that are installed and can run `true`. The others are named, with the reason.

Runs each once. Knows no ratios.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

from bench.measure import Limit, measure
from bench.peers import frida_stalker, qbdi_preload, valgrind
from bench.tools import Tool

FAMILIES: dict[str, ModuleType] = {"frida": frida_stalker, "qbdi": qbdi_preload, "valgrind": valgrind}
_TRIAL_LIMIT = Limit(cpu_seconds=60.0, wall_seconds=120.0)


def find_peers(names: Sequence[str], trial: Sequence[str]) -> list[Tool]:
    """The peers of these names, of tools or of whole families (none: all), that can run the command `trial`.

    A peer that is missing or cannot is left out, and stderr says why. SystemExit for a name that is none.
    """
    known = {*FAMILIES, *(name for module in FAMILIES.values() for name in module.NAMES)}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"no such peer: {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    found = []
    for family, module in FAMILIES.items():
        wanted = [name for name in module.NAMES if not names or name in names or family in names]
        if not wanted:
            continue
        try:
            tools: list[Tool] = module.make_tools()
        except FileNotFoundError as error:
            print(f"{', '.join(wanted)}: {error}; left out", file=sys.stderr)
            continue
        for tool in tools:
            if tool.name not in wanted:
                continue
            reason = _try(tool, trial)
            if reason:
                print(f"{tool.name}: {reason}; left out", file=sys.stderr)
            else:
                found.append(tool)
    return found


def _try(tool: Tool, trial: Sequence[str]) -> str:
    """Why the tool cannot run the command; empty when it can."""
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as name:
        environment = {**tool.environment, "TMPDIR": name}
        measured = measure(tool.wrap(trial, Path(name)), environment, limit=_TRIAL_LIMIT)
    if measured.was_cut:
        return f"hangs on `{Path(trial[0]).name}`"
    if measured.status:
        return f"status {measured.status} on `{Path(trial[0]).name}`: {measured.said}"
    return ""
