"""Which peers this machine has: those that are installed and can run `true`. The others are named, with the reason.

Runs each once. Knows no ratios.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from bench.measure import measure
from bench.peers import frida_stalker, qbdi_preload, valgrind
from bench.tools import Tool

FAMILIES: dict[str, Callable[[], list[Tool]]] = {
    "frida": frida_stalker.make_tools,
    "qbdi": qbdi_preload.make_tools,
    "valgrind": valgrind.make_tools,
}
_TRIAL_SECONDS = 60.0


def find_peers(names: Sequence[str], trial: Sequence[str]) -> list[Tool]:
    """The peers of these names, of tools or of whole families (none: all), that can run the command `trial`.

    A peer that is missing or cannot is left out, and stderr says why. SystemExit for a name that is none.
    """
    found = []
    known = set(FAMILIES)
    for family, make_tools in FAMILIES.items():
        try:
            tools = make_tools()
        except FileNotFoundError as error:
            print(f"{family}: {error}; left out", file=sys.stderr)
            known.update(name for name in names if name.startswith(family) or name == "callgrind")
            continue
        known.update(tool.name for tool in tools)
        for tool in tools:
            if names and tool.name not in names and family not in names:
                continue
            reason = _try(tool, trial)
            if reason:
                print(f"{tool.name}: {reason}; left out", file=sys.stderr)
            else:
                found.append(tool)
    unknown = [name for name in names if name not in known]
    if unknown:
        raise SystemExit(f"no such peer: {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    return found


def _try(tool: Tool, trial: Sequence[str]) -> str:
    """Why the tool cannot run the command; empty when it can."""
    with tempfile.TemporaryDirectory(prefix="clew-bench-") as name:
        environment = {**tool.environment, "TMPDIR": name}
        measured = measure(tool.wrap(trial, Path(name)), environment, limit_seconds=_TRIAL_SECONDS)
    if measured.was_cut:
        return f"hangs on `{Path(trial[0]).name}`"
    if measured.status:
        return f"status {measured.status} on `{Path(trial[0]).name}`: {measured.said}"
    return ""
